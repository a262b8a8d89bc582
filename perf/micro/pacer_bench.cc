// The pacer as the sending loop uses it: at every turn, and for every frame.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include "dataplane/core/pacer.h"

namespace sluice {
namespace {

constexpr uint32_t kWireBytes = 9038;

// One frame: ready, sent.
void pacer_frame(benchmark::State& state) {
  Pacer pacer;
  pacer.set_rate(static_cast<uint64_t>(state.range(0)) * 1'000'000'000);
  uint64_t now_ns = 1'000'000;
  for (auto _ : state) {
    if (!pacer.ready(now_ns)) return state.SkipWithError("not ready");
    pacer.sent(now_ns, kWireBytes);
    now_ns = pacer.next_ns();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(pacer_frame)->ArgName("gbps")->Arg(1)->Arg(25)->Arg(100);

// A turn in which nothing may leave: the rate, which has not changed, and the question.
void pacer_turn(benchmark::State& state) {
  Pacer pacer;
  uint64_t rate_bps = 10'000'000'000;
  pacer.set_rate(rate_bps);
  pacer.sent(1'000'000, kWireBytes);
  uint64_t now_ns = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(rate_bps);
    benchmark::DoNotOptimize(now_ns);
    pacer.set_rate(rate_bps);
    benchmark::DoNotOptimize(pacer.ready(now_ns));
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(pacer_turn);

// A rate controller's step, with what is owed carried over.
void pacer_new_rate(benchmark::State& state) {
  Pacer pacer;
  uint64_t rate_bps = 10'000'000'000;
  pacer.set_rate(rate_bps);
  pacer.sent(1'000'000, kWireBytes);
  for (auto _ : state) {
    rate_bps ^= 1'000'000;
    pacer.set_rate(rate_bps);
    benchmark::DoNotOptimize(pacer);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(pacer_new_rate);

}  // namespace
}  // namespace sluice
