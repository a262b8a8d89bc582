// The board's rings between control and a worker.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <sched.h>

#include <memory>

#include "dataplane/board/board.h"

namespace sluice::board {
namespace {

using Events = SpscRing<Event, kEventSlots>;

// Both ends on one CPU: the instructions alone.
void board_ring_one_thread(benchmark::State& state) {
  const auto ring = std::make_unique<Events>();
  Event out;
  for (auto _ : state) {
    ring->push({.kind = EventKind::kExtentSent, .offset = 1});
    ring->pop(&out);
    benchmark::DoNotOptimize(out);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * sizeof(Event)));
}
BENCHMARK(board_ring_one_thread);

// As between the two daemons: the lines move from cache to cache. Whoever has to wait gives its CPU away.
void board_ring_two_threads(benchmark::State& state) {
  static Events ring;
  if (state.thread_index() == 0) {
    for (auto _ : state) {
      while (!ring.push({.kind = EventKind::kExtentSent, .offset = 1})) sched_yield();
    }
  } else {
    Event out;
    for (auto _ : state) {
      while (!ring.pop(&out)) sched_yield();
      benchmark::DoNotOptimize(out);
    }
    state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
    state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * sizeof(Event)));
  }
}
BENCHMARK(board_ring_two_threads)->Threads(2)->UseRealTime();

}  // namespace
}  // namespace sluice::board
