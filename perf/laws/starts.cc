// How `adaptive` starts: many sessions over one bottleneck with packets in virtual time, each with other
// random losses. A start is what of the path a session takes from its `settled_s`-th second on, for
// `judged_s` seconds.
//
// One JSON object per cell of round trip, loss and buffer on stdout: how many starts, the least, the
// hundredth part and the median of what they took of what the path carries, how many took less than 0.7, and
// the seed of the worst.
//
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "control/rate/adaptive_rate.h"
#include "control/rate/dumbbell_for_test.h"

namespace {

using namespace sluice::rate;

constexpr double kRttsS[] = {0.001, 0.02, 0.1, 0.2};
constexpr double kLosses[] = {0, 0.001, 0.01, 0.05, 0.1};
constexpr double kBuffersOfBdp[] = {0.1, 0.5, 1, 2};  // of what the path carries in a round trip
constexpr double kLeastBufferBytes = 5 * Dumbbell::kDatagramBytes;
constexpr uint64_t kCapBps = 10'000'000'000;
constexpr double kBad = 0.7;

struct Cell {
  double rtt_s;
  double loss;
  double buffer;
  std::vector<double> took;  // by seed
};

struct Plan {
  double capacity_bps = 1e9;
  double settled_s = 5;
  double judged_s = 3;
  int starts = 1000;
  int first_seed = 1;
};

double one_start(const Cell& cell, const Plan& plan, uint64_t seed) {
  const double bdp_bytes = plan.capacity_bps * cell.rtt_s / 8;
  Dumbbell path({.capacity_bps = plan.capacity_bps,
                 .buffer_bytes = std::max(kLeastBufferBytes, cell.buffer * bdp_bytes),
                 .loss = cell.loss},
                seed);
  path.add(std::make_unique<AdaptiveRate>(kCapBps, 0, Dumbbell::kStartNs), cell.rtt_s);
  path.run(plan.settled_s);
  path.reset();
  path.run(plan.settled_s + plan.judged_s);
  return path.utilisation();
}

void tell(const Cell& cell, const Plan& plan) {
  std::vector<double> sorted = cell.took;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double q) {
    return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1))];
  };
  const auto worst = std::min_element(cell.took.begin(), cell.took.end()) - cell.took.begin();
  fmt::print(
      "{{\"rtt_ms\": {}, \"loss_percent\": {}, \"buffer_bdp\": {}, \"starts\": {}, \"least\": {:.4f}, "
      "\"p1\": {:.4f}, \"median\": {:.4f}, \"bad\": {}, \"worst_seed\": {}}}\n",
      cell.rtt_s * 1e3, cell.loss * 100, cell.buffer, sorted.size(), sorted.front(), at(0.01), at(0.5),
      std::lower_bound(sorted.begin(), sorted.end(), kBad) - sorted.begin(), worst + plan.first_seed);
}

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  CLI::App app("What sessions take of a path some seconds after they began, in virtual time");
  app.add_option("--starts", plan.starts, "Starts of each cell")->check(CLI::Range(1, 1'000'000));
  app.add_option("--seed", plan.first_seed, "Of the first start; the others follow");
  app.add_option("--capacity-bps", plan.capacity_bps, "Of the bottleneck")->check(CLI::Range(1e6, 1e11));
  app.add_option("--settled-s", plan.settled_s, "Nothing is judged before")->check(CLI::Range(0.0, 1000.0));
  app.add_option("--judged-s", plan.judged_s, "For so long it is judged")->check(CLI::Range(0.1, 1000.0));
  CLI11_PARSE(app, argc, argv);

  std::vector<Cell> cells;
  for (const double rtt_s : kRttsS)
    for (const double loss : kLosses)
      for (const double buffer : kBuffersOfBdp)
        cells.push_back({rtt_s, loss, buffer, std::vector<double>(static_cast<size_t>(plan.starts))});
  for (Cell& cell : cells) {
    std::atomic<int> next{0};
    const auto work = [&] {
      for (int at = next++; at < plan.starts; at = next++)
        cell.took[static_cast<size_t>(at)] =
            one_start(cell, plan, static_cast<uint64_t>(plan.first_seed + at));
    };
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(work);
    work();
    threads.clear();  // all have ended
    tell(cell, plan);
    std::fflush(stdout);
  }
  return 0;
}
