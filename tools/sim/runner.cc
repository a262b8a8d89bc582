// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/runner.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <new>

namespace sluice::sim {
namespace {

struct Totals {
  uint64_t runs = 0;
  uint64_t failures = 0;
  uint64_t faults = 0;
  uint64_t crashes = 0;
  uint64_t bytes = 0;
  uint64_t ended = 0;  // with a named reason other than done
  uint64_t virtual_ns = 0;
  uint64_t hash = 0;  // of all traces, in any order
  Reached reached;

  void add(const Totals& o) {
    runs += o.runs;
    failures += o.failures;
    faults += o.faults;
    crashes += o.crashes;
    bytes += o.bytes;
    ended += o.ended;
    virtual_ns += o.virtual_ns;
    reached.add(o.reached);
    hash += o.hash;
  }
};

// What a process runs just now, in memory that outlives it: a seed that kills its process is named.
using Running = std::atomic<uint64_t>;
Running* running = nullptr;

Running* shared_running() {
  void* const page =
      mmap(nullptr, sizeof(Running), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? nullptr : new (page) Running;
}

// `legs` and `course`: instead of those of `options`.
Plan plan_of(uint64_t seed, const RunOptions& options, uint32_t legs, std::optional<Course> course) {
  Plan plan = course ? make_plan(seed, *course) : make_plan(seed);
  if (legs != 0 && plan.course == Course::kTwoNodes) choose_legs(&plan, legs);
  if (options.coded) have_coded(&plan);
  plan.broken = options.broken;
  return plan;
}

void say_failure(const Plan& plan, const Outcome& out, bool coded) {
  fmt::print("FAILED seed {}: {}\n{}last events:\n{}replay: ./dev sim --seed {} --course {}{}\n", plan.seed,
             out.failure, plan.text(), out.tail, plan.seed, course_name(plan.course),
             coded ? " --coded" : "");
  std::fflush(stdout);
}

// Twice: the same seed must take the same course.
Outcome run_plan(const Plan& plan, bool twice, bool print) {
  Outcome out = World(plan, print).run();
  if (twice && out.failure.empty()) {
    const Outcome again = World(plan).run();
    if (again.hash != out.hash) {
      out.failure = fmt::format("two runs differ: {:x} after {} events, {:x} after {}", out.hash, out.events,
                                again.hash, again.events);
    }
  }
  return out;
}

bool run_into(const Plan& plan, bool twice, const RunOptions& options, Totals* totals) {
  if (running != nullptr) running->store(plan.seed, std::memory_order_relaxed);
  const Outcome out = run_plan(plan, twice, false);
  ++totals->runs;
  totals->faults += out.faults;
  totals->crashes += out.crashes;
  totals->bytes += out.bytes;
  totals->virtual_ns += out.virtual_ns;
  totals->reached.add(out.reached);
  totals->hash += mix(plan.seed ^ out.hash);
  if (out.end != End::kDone && out.failure.empty()) ++totals->ended;
  if (out.failure.empty()) return true;
  ++totals->failures;
  if (options.broken == Break::kNone) say_failure(plan, out, options.coded);
  return false;
}

// Shares `count` indices among processes; each takes every jobs-th.
Totals in_processes(uint32_t jobs, const std::function<Totals(uint32_t job)>& work) {
  if (jobs <= 1) return work(0);
  Totals all;
  struct Child {
    pid_t pid;
    int end;
    Running* running;
  };
  std::vector<Child> children;
  for (uint32_t job = 0; job < jobs; ++job) {
    int ends[2];
    if (pipe(ends) != 0) return all;
    std::fflush(stdout);
    Running* const its_running = shared_running();
    const pid_t child = fork();
    if (child == 0) {
      running = its_running;
      const Totals totals = work(job);
      std::fflush(stdout);
      (void)!write(ends[1], &totals, sizeof totals);
      _exit(0);
    }
    close(ends[1]);
    children.push_back({child, ends[0], its_running});
  }
  for (const auto& [child, end, its_running] : children) {
    Totals totals;
    if (read(end, &totals, sizeof totals) == sizeof totals) {
      all.add(totals);
    } else {
      ++all.failures;
      const uint64_t seed = its_running != nullptr ? its_running->load() : 0;
      fmt::print("FAILED seed {}: its process died\nreplay: ./dev sim --seed {}\n", seed, seed);
    }
    close(end);
    waitpid(child, nullptr, 0);
  }
  return all;
}

int summary(const char* what, const Totals& t, double seconds, bool want_failure) {
  fmt::print(
      "reached: {} attempts, {} objects resumed, {} adoptions, {} renewals, {} pauses, {} queued, {} "
      "partings, {} grown lists, {} legs killed, {} "
      "inquiries, {} freezes, {} narrowed, {} objects failed, {} needs, {} rereads, {} syncs ({} failed), {} "
      "read back, {} chunks decoded, {:.1f} MiB restored; {} sessions of several sources done, {} ended and "
      "named a source; {} "
      "leases taken, {} refused; {} grants taken, {} refused, {} shown twice; traces {:016x}\n",
      t.reached.attempts, t.reached.resumed, t.reached.adoptions, t.reached.renewals, t.reached.pauses,
      t.reached.queued, t.reached.partings, t.reached.growths, t.reached.legs_killed, t.reached.inquiries,
      t.reached.freezes, t.reached.narrowed, t.reached.objects_failed, t.reached.needs, t.reached.rereads,
      t.reached.syncs, t.reached.failed_syncs, t.reached.read_backs, t.reached.decoded_chunks,
      static_cast<double>(t.reached.restored_bytes) / (1 << 20), t.reached.of_several, t.reached.liars_named,
      t.reached.leases_taken, t.reached.leases_refused, t.reached.grants_taken, t.reached.grants_refused,
      t.reached.grants_shown_twice, t.hash);
  fmt::print(
      "{} {}: {:.0f}/min, {:.0f} s of virtual time, {} faults injected, {} crashes, {:.1f} MiB, {} ended "
      "with a named reason, {} failures\n",
      t.runs, what, static_cast<double>(t.runs) / seconds * 60, static_cast<double>(t.virtual_ns) * 1e-9,
      t.faults, t.crashes, static_cast<double>(t.bytes) / (1 << 20), t.ended, t.failures);
  return (t.failures > 0) == want_failure ? 0 : 1;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() + 1e-9;
}

}  // namespace

int run_one(uint64_t seed, const RunOptions& options) {
  const Plan plan = plan_of(seed, options, options.legs, options.course);
  fmt::print("{}", plan.text());
  std::fflush(stdout);
  const auto begin = std::chrono::steady_clock::now();
  const Outcome out = run_plan(plan, true, options.verbose);
  fmt::print("end {}, {:.3f} ms of virtual time, {} events, {} frames, {} bytes sent of {}, trace {:016x}\n",
             end_name(out.end), static_cast<double>(out.virtual_ns) * 1e-6, out.events, out.frames,
             out.bytes_sent, out.bytes, out.hash);
  if (!out.failure.empty()) say_failure(plan, out, options.coded);
  const Totals totals{.runs = 1,
                      .failures = out.failure.empty() ? 0U : 1U,
                      .faults = out.faults,
                      .crashes = out.crashes,
                      .bytes = out.bytes,
                      .ended = 0,
                      .virtual_ns = out.virtual_ns,
                      .reached = out.reached};
  return summary("seed", totals, seconds_since(begin), options.broken != Break::kNone);
}

int run_seeds(const RunOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const bool broken = options.broken != Break::kNone;
  const auto run_seed = [&](uint64_t seed, bool twice, Totals* totals, uint32_t legs,
                            std::optional<Course> course) {
    const bool good = run_into(plan_of(seed, options, legs, course), twice, options, totals);
    if (options.verbose || (broken && !good)) fmt::print("seed {} {}\n", seed, good ? "held" : "failed");
    return good;
  };
  Totals all;
  for (const auto& [seed, course] : options.regressions) {
    // What was listed by its seed alone it had with two nodes, and one leg.
    const Course of = course.value_or(Course::kTwoNodes);
    run_seed(seed, true, &all, options.legs, of);
    if (options.legs == 0 && make_plan(seed, of).legs != 1) run_seed(seed, true, &all, 1, of);
  }
  all.add(in_processes(options.jobs, [&](uint32_t job) {
    Totals totals;
    for (uint64_t i = job; i < options.seeds; i += options.jobs) {
      const uint64_t seed = options.first + i;
      const uint64_t of_this_process = i / options.jobs;
      // A deliberate defect needs to be found once.
      const bool twice = of_this_process % options.twice_every == 0 && !broken;
      if (!run_seed(seed, twice, &totals, options.legs, options.course) && broken) break;
      if (job == 0 && of_this_process % 10'000 == 9'999) {
        fmt::print("... {} seeds of this process, {} failures, {:.0f} s\n", totals.runs, totals.failures,
                   seconds_since(begin));
        std::fflush(stdout);
      }
    }
    return totals;
  }));
  return summary("seeds", all, seconds_since(begin), broken);
}

Plan pattern_plan(uint64_t forward_bits, uint64_t backward_bits) {
  Plan p;
  p.seed = forward_bits << 32 | backward_bits;
  p.sizes = {3 * 65536 - 1000};
  p.chunk_bytes = 8896;
  p.partition_bytes = 2 * 65536;
  p.credit = 2;
  p.lost_frames = {forward_bits, backward_bits};
  for (auto& path : p.path) path.delay.fixed_us = 100;
  p.safety_ns = 1'000'000'000;
  return p;
}

int run_exhaustive(const RunOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const uint64_t patterns = uint64_t{1} << options.bits;
  const uint32_t half = options.bits / 2;
  const Totals all = in_processes(options.jobs, [&](uint32_t job) {
    Totals totals;
    const auto run = [&](uint64_t forward, uint64_t backward) {
      run_into(pattern_plan(forward, backward), false, options, &totals);
    };
    for (uint64_t bits = job; bits < patterns; bits += options.jobs) {
      run(bits, 0);
      run(0, bits);
      run(bits & ((uint64_t{1} << half) - 1), bits >> half);  // of both directions together
    }
    return totals;
  });
  return summary("loss patterns", all, seconds_since(begin), false);
}

}  // namespace sluice::sim
