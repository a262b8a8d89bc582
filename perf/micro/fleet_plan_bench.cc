// The planner of `sluice fleet`: both readings of a made list of files with lognormal sizes. `ns_per_file`
// is CPU time without the making of the list; `worst_over_mean` is the balance; `table_mib` are the planner's
// own tables, `rss_growth_mib` what the process grew by.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "tools/fleet/plan/lognormal_for_test.h"
#include "tools/fleet/plan/planner.h"

namespace sluice::fleet {
namespace {

double rss_max_mib() {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Of this process: what else runs on the machine is not counted.
double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void fleet_plan(benchmark::State& state) {
  const auto files = static_cast<uint64_t>(state.range(0));
  const auto shards = static_cast<uint32_t>(state.range(1));
  constexpr size_t kBatch = 65'536;  // of the list that is made between the measured parts
  std::vector<Item> batch(kBatch);
  double seconds = 0;
  double worst = 0;
  double tables = 0;
  const double before = rss_max_mib();
  for (auto _ : state) {
    Planner planner({.shards = shards, .name_cost_bytes = 1U << 20, .align_bytes = 4U << 20});
    double iteration = 0;
    const auto reading = [&](auto each) {
      LognormalSizes sizes(100e3, 2.5, 7);
      for (uint64_t done = 0; done < files; done += kBatch) {
        const size_t count = std::min<uint64_t>(kBatch, files - done);
        for (size_t i = 0; i < count; ++i) batch[i].bytes = sizes.next();
        const double began = cpu_s();
        for (size_t i = 0; i < count; ++i) each(batch[i]);
        iteration += cpu_s() - began;
      }
    };
    reading([&](const Item& item) { planner.consider(item); });
    const double began = cpu_s();
    planner.settle();
    iteration += cpu_s() - began;
    tables = static_cast<double>(planner.memory_bytes()) / (1U << 20);
    reading([&](const Item& item) { benchmark::DoNotOptimize(planner.place(item).front().shard); });
    uint64_t largest = 0;
    uint64_t sum = 0;
    for (const auto& load : planner.loads()) {
      largest = std::max(largest, load.cost);
      sum += load.cost;
    }
    worst = static_cast<double>(largest) * shards / static_cast<double>(sum);
    state.SetIterationTime(iteration);
    seconds += iteration;
  }
  const double each = static_cast<double>(files) * static_cast<double>(state.iterations());
  state.counters["ns_per_file"] = seconds * 1e9 / each;
  state.counters["worst_over_mean"] = worst;
  state.counters["table_mib"] = tables;
  state.counters["rss_growth_mib"] = rss_max_mib() - before;
}
BENCHMARK(fleet_plan)
    ->ArgNames({"files", "shards"})
    ->Args({1'000'000, 1000})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
// By hand: sluice-bench --benchmark_filter=fleet_plan_of_20_million
void fleet_plan_of_20_million(benchmark::State& state) { fleet_plan(state); }
BENCHMARK(fleet_plan_of_20_million)
    ->ArgNames({"files", "shards"})
    ->Args({20'000'000, 1000})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
// As many as SLUICE_PLAN_FILES says: `./dev lab scale` asks for up to 10^9.
void fleet_plan_at_scale(benchmark::State& state) { fleet_plan(state); }
void files_asked(benchmark::internal::Benchmark* plan) {
  const char* const files = std::getenv("SLUICE_PLAN_FILES");
  plan->Args({files == nullptr ? 100'000 : std::atoll(files), 1000});
}
BENCHMARK(fleet_plan_at_scale)
    ->ArgNames({"files", "shards"})
    ->Apply(files_asked)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice::fleet
