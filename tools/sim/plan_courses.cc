// Sessions in which more than two nodes take part.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/sim/plan.h"
#include "tools/sim/random.h"

namespace sluice::sim {
namespace {

constexpr uint64_t kMsNs = 1'000'000;
constexpr uint64_t kSecondNs = 1'000'000'000;

uint64_t busy_ns(const Plan& p) {
  return std::min(p.safety_ns, 30 * kMsNs + p.bytes() * 16 * kSecondNs / p.rate_bps);
}

// What is judged between two nodes only, and what would end such a session for reasons of its own.
void leave_out(Plan& p) {
  if (p.legs != 1) choose_legs(&p, 1);
  p.nat = p.stranger_alone = p.called_loses_journal = p.damage = p.misread = p.stays_narrow = false;
  p.growing = p.packs = false;
  p.nat_forgets_ns.clear();
  p.troubles.clear();
  p.forged_per_million = p.journal_lost_ns = p.removed_ns = p.snapshot_ns = p.source_changes_ns = 0;
  p.carries_bytes = 0;
  p.freeze = {};
  std::erase_if(p.actions, [](const Action& a) { return a.act == Act::kCancel; });
  p.resume_timeout_ns = std::max(p.resume_timeout_ns, 20 * kSecondNs);
  p.healed_ns_max = 400 * kSecondNs;
}

void add_nodes(Plan& p, uint32_t sources) {
  p.sources = sources;
  for (uint32_t node = 2; node < p.nodes(); ++node) {
    p.path[node] = p.path[kSource];
    p.disk[node] = p.disk[kSource];
  }
}

void calm_down(Plan& p) {
  p.several.calm = true;
  p.crashes.clear();
  p.cuts.clear();
  p.actions.clear();
  p.leg_deaths.clear();
  p.blackhole_per_second = p.stall_per_million = p.crash_at_points_per_million = p.full_per_million = 0;
  p.device_burst = p.device_keeps = 0;
  p.device_ring = 1024;
  for (uint32_t node = 0; node < p.nodes(); ++node) {
    const emulator::Settings before = p.path[node];
    p.path[node] = {};
    p.path[node].delay.fixed_us = before.delay.fixed_us;
    DiskPlan& d = p.disk[node];
    d.sync_error_per_million = d.error_per_million = d.slow_per_million = 0;
    d.full = false;
  }
}

// One source at least is as it should be.
void choose_sources(Plan& p, Random& r) {
  p.initiator = kDestination;
  constexpr std::array<uint32_t, 4> kTaken = {0, 64, 100, 4096};
  p.several.digests_unanswered = kTaken[p.seed % kTaken.size()];
  add_nodes(p, r.chance(700'000) ? 3 : 2);
  p.rx_extents *= p.sources;
  if (r.chance(300'000)) calm_down(p);
  const auto source = [](uint64_t number) { return static_cast<uint32_t>(number == 0 ? 0 : number + 1); };
  const uint64_t good = r.below(p.sources);
  const auto bad = [&] { return source((good + 1 + r.below(p.sources - 1)) % p.sources); };
  for (uint64_t n = 0; n < p.sources; ++n) {
    emulator::Settings& path = p.path[source(n)];
    path.delay.fixed_us = static_cast<double>(r.scale(1, 20'000));
    if (r.chance(250'000)) {  // slow: a tenth of the rate, or less
      path.rate = {.bits_per_s = std::max<uint64_t>(1'000'000, p.rate_bps / r.between(10, 50)),
                   .queue_bytes = r.scale(20'000, 1'000'000),
                   .overhead_bytes = 24};
    }
    if (!p.several.calm && r.chance(250'000))
      path.loss.probability = static_cast<double>(r.scale(1'000, 200'000)) * 1e-6;
  }
  if (r.chance(300'000)) {
    p.several.lie = r.flip() ? Lie::kOtherFiles : Lie::kWrongDigests;
    p.several.liar = bad();
  }
  if (r.chance(200'000)) {
    p.several.changes = bad();
    p.several.changes_ns = 1 + r.below(busy_ns(p));
  }
  if (r.chance(300'000)) {
    p.several.dies = bad();
    p.several.dies_ns = 1 + r.below(busy_ns(p));
    p.resume_timeout_ns = 20 * kSecondNs;
  }
  // So that seeds of before keep their meaning, most of them.
  p.several.listed = p.seed % 7 == 1;
  if (p.several.listed && p.several.lie == Lie::kNone) {
    p.several.lie = Lie::kOtherFiles;
    p.several.liar = bad();
  }
  if (p.several.calm) return;
  for (Crash& crash : p.crashes)
    if (crash.node != kDestination) crash.node = source(r.below(p.sources));
  for (uint64_t n = r.below(3); n > 0; --n) {
    p.leg_deaths.push_back({.time_ns = r.below(busy_ns(p)),
                            .node = kDestination,
                            .leg = static_cast<uint32_t>(r.below(p.sources))});
  }
  if (r.chance(100'000)) p.removed_ns = 1 + r.below(busy_ns(p));
}

void choose_rivals(Plan& p, Random& r) {
  p.initiator = kSource;
  p.sizes.resize(1);
  add_nodes(p, 2);
  p.rx_extents *= 2;
  p.rivals.second_ns = r.below(2 * busy_ns(p));
  const uint64_t kind = r.below(6);
  if (kind == 0) p.rivals.epochs = {1, 1};
  if (kind == 1) p.rivals.epochs = {2, 1};
  for (Crash& crash : p.crashes)
    if (crash.node == kSource && r.flip()) crash.node = kRival;
}

void choose_grant(Plan& p, Random& r) {
  p.initiator = kSource;
  p.grant.what = static_cast<GrantCase>(r.below(6));
  p.grant.at_ns = r.below(2 * busy_ns(p));
  add_nodes(p, p.grant.what == GrantCase::kStolen ? 2 : 1);
}

constexpr const char* kCourses[] = {"two-nodes", "sources", "rivals", "grant"};

}  // namespace

const char* course_name(Course course) { return kCourses[static_cast<size_t>(course)]; }

Course course_named(const std::string& name, bool* known) {
  for (size_t i = 0; i < std::size(kCourses); ++i) {
    *known = name == kCourses[i];
    if (*known) return static_cast<Course>(i);
  }
  return Course::kTwoNodes;
}

std::vector<std::string> course_names() { return {std::begin(kCourses), std::end(kCourses)}; }

// Drawn from streams of their own.
Course course_of(uint64_t seed) {
  Random random(seed, 18);
  if (random.chance(60'000)) return Course::kSources;
  if (random.chance(20'000)) return Course::kRivals;
  return random.chance(20'000) ? Course::kGrant : Course::kTwoNodes;
}

void choose_course(Plan* plan, Course course) {
  plan->course = course;
  if (course == Course::kTwoNodes) return;
  Random random(plan->seed, 19);
  leave_out(*plan);
  if (course == Course::kSources) choose_sources(*plan, random);
  if (course == Course::kRivals) choose_rivals(*plan, random);
  if (course == Course::kGrant) choose_grant(*plan, random);
}

std::string course_text(const Plan& plan) {
  if (plan.course == Course::kTwoNodes) return "";
  std::string out = fmt::format("course {} with {} sources\n", course_name(plan.course), plan.sources);
  if (plan.course == Course::kSources) {
    const SourcesPlan& s = plan.several;
    constexpr const char* kLies[] = {"nobody lies", "has other files", "says wrong digests"};
    out += fmt::format(
        "{}: {}; {} changes at {} ns, {} dies at {} ns; calm {}; listed {}; digests unanswered {}\n",
        node_name(s.liar), kLies[static_cast<size_t>(s.lie)], node_name(s.changes), s.changes_ns,
        node_name(s.dies), s.dies_ns, s.calm, s.listed, s.digests_unanswered);
    for (uint32_t node = 2; node < plan.nodes(); ++node)
      out += fmt::format("path[{}] {}\n", node, emulator::to_json(plan.path[node]).dump());
  } else if (plan.course == Course::kRivals) {
    out += fmt::format("the second one begins at {} ns, epochs {} and {}\n", plan.rivals.second_ns,
                       plan.rivals.epochs[0], plan.rivals.epochs[1]);
  } else {
    constexpr const char* kCases[] = {"honest", "late", "stolen", "replayed", "forgotten", "ends"};
    out += fmt::format("the grant: {}, at {} ns\n", kCases[static_cast<size_t>(plan.grant.what)],
                       plan.grant.at_ns);
  }
  return out;
}

}  // namespace sluice::sim
