// Control's loss detector: one step over what a millisecond of 100 Gbit/s brought.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <atomic>
#include <vector>

#include "control/recovery/loss_detector.h"
#include "dataplane/board/board.h"

namespace sluice::recovery {
namespace {

constexpr uint64_t kStepPackets = 1500;
constexpr uint64_t kStepNs = 1'000'000;

// `period`: one packet of so many is lost (0: none); a power of two, so that the pattern fits the window as
// often as it is gone round, and nobody has to mark what arrives.
void loss_detector_step(benchmark::State& state) {
  const auto period = static_cast<uint64_t>(state.range(0));
  std::vector<std::atomic<uint64_t>> words(board::kWindowBits / 64);
  for (uint64_t seq = 0; seq < board::kWindowBits; ++seq) {
    if (period == 0 || seq % period != period / 2) words[seq / 64].fetch_or(1ULL << (seq % 64));
  }
  LossDetector detector;
  std::vector<board::Gap> lost;
  lost.reserve(board::kGapSlots);
  uint64_t end = 0;
  uint64_t now_ns = 1'000'000'000;
  uint64_t runs = 0;
  for (auto _ : state) {
    end += kStepPackets;
    now_ns += kStepNs;
    lost.clear();
    detector.step(WindowView(words.data(), board::kWindowBits, end), {}, now_ns, board::kGapSlots, &lost);
    runs += lost.size();
  }
  if (detector.fell_out() > 0) return state.SkipWithError("packets left the window unsettled");
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kStepPackets));
  state.counters["runs"] = benchmark::Counter(static_cast<double>(runs), benchmark::Counter::kAvgIterations);
}
BENCHMARK(loss_detector_step)->ArgName("period")->Arg(0)->Arg(1024)->Arg(128)->Arg(16);

}  // namespace
}  // namespace sluice::recovery
