// What a worker keeps per flow and per extent: chunk maps, the sequence window, the sent ring, the table and
// the pool of extents.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <atomic>
#include <memory>
#include <vector>

#include "dataplane/board/board.h"
#include "dataplane/core/chunk_map.h"
#include "dataplane/core/extent_table.h"
#include "dataplane/core/sent_ring.h"
#include "dataplane/core/seq_window.h"
#include "storage/extent_pool.h"

namespace sluice {
namespace {

constexpr uint32_t kExtentBytes = 1U << 20;

// Every chunk of an extent looked up and set once, as it arrives.
void chunk_map_fill(benchmark::State& state) {
  const uint32_t chunks = chunk_count(kExtentBytes, static_cast<uint32_t>(state.range(0)));
  ChunkMap map;
  for (auto _ : state) {
    map.reset(chunks);
    for (uint32_t i = 0; i < chunks; ++i) {
      if (!map.has(i)) map.set(i);
    }
    benchmark::DoNotOptimize(map.complete());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * chunks));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kExtentBytes));
}
BENCHMARK(chunk_map_fill)->ArgName("chunk")->Arg(512)->Arg(8192);

// The missing runs of an extent that lacks every 16th chunk.
void chunk_map_missing(benchmark::State& state) {
  const uint32_t chunks = chunk_count(kExtentBytes, static_cast<uint32_t>(state.range(0)));
  ChunkMap map;
  map.reset(chunks);
  for (uint32_t i = 0; i < chunks; ++i) {
    if (i % 16 != 7) map.set(i);
  }
  for (auto _ : state) {
    uint32_t runs = 0;
    uint32_t end = 0;
    for (uint32_t at = map.next_missing(0, &end); at < chunks; at = map.next_missing(end, &end)) ++runs;
    benchmark::DoNotOptimize(runs);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * chunks));
}
BENCHMARK(chunk_map_missing)->ArgName("chunk")->Arg(512)->Arg(8192);

// Numbers in order, each `skip`-th never arriving (0: all do).
void seq_window_mark(benchmark::State& state) {
  std::vector<std::atomic<uint64_t>> words(board::kWindowBits / 64);
  SeqWindow window(words.data(), board::kWindowBits);
  const auto skip = static_cast<uint64_t>(state.range(0));
  uint64_t seq = 0;
  for (auto _ : state) {
    ++seq;
    if (skip != 0 && seq % skip == 0) ++seq;
    if (window.check(seq) == SeqWindow::Novelty::kNew) window.mark(seq);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(seq_window_mark)->ArgName("skip")->Arg(0)->Arg(100);

constexpr uint32_t kSentRemembered = 1U << 16;

void sent_ring_put(benchmark::State& state) {
  SentRing ring(kSentRemembered);
  uint64_t seq = 0;
  for (auto _ : state) {
    ring.put(seq, {.offset = seq * 8192, .object = 1, .length = 8192});
    ++seq;
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(sent_ring_put);

// A report of a loss, half a ring back, that comes twice.
void sent_ring_take(benchmark::State& state) {
  SentRing ring(kSentRemembered);
  for (uint64_t seq = 0; seq < kSentRemembered; ++seq)
    ring.put(seq, {.offset = seq, .object = 1, .length = 1});
  uint64_t seq = kSentRemembered;
  for (auto _ : state) {
    ring.put(seq, {.offset = seq, .object = 1, .length = 1});
    benchmark::DoNotOptimize(ring.take(seq - kSentRemembered / 2));
    benchmark::DoNotOptimize(ring.take(seq - kSentRemembered / 2));
    ++seq;
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(sent_ring_take);

// The extent of each chunk that arrives, among as many as a worker holds; one is replaced every 128 chunks.
void extent_table_find(benchmark::State& state) {
  const auto extents = static_cast<uint32_t>(state.range(0));
  ExtentTable table(extents);
  const auto key = [](uint64_t number) { return ExtentKey{.session = 3, .object = 1, .number = number}; };
  for (uint32_t i = 0; i < extents; ++i) table.insert(key(i), i);
  uint64_t first = 0;
  uint32_t chunk = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(table.find(key(first + chunk % extents)));
    if (++chunk % 128 == 0) {
      table.erase(key(first));
      table.insert(key(first + extents), static_cast<uint32_t>(first % extents));
      ++first;
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(extent_table_find)->ArgName("extents")->Arg(8)->Arg(64)->Arg(512);

void extent_pool_turn(benchmark::State& state) {
  storage::ExtentPool pool(0, 64, 2);
  for (auto _ : state) {
    const uint32_t one = pool.take(false);
    const uint32_t other = pool.take(false);
    benchmark::DoNotOptimize(one);
    pool.give_back(one);
    pool.give_back(other);
  }
  state.SetItemsProcessed(static_cast<int64_t>(2 * state.iterations()));
}
BENCHMARK(extent_pool_turn);

}  // namespace
}  // namespace sluice
