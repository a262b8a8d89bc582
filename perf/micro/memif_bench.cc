// A memif's rings, both ends in one thread: what a frame costs without its bytes, and with them.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <vector>

#include "dataplane/crc/crc.h"
#include "dataplane/memif/region_for_test.h"

namespace sluice {
namespace {

constexpr uint32_t kBurst = 32;
constexpr uint32_t kBufferBytes = 9216;
constexpr uint32_t kChunkBytes = 8192;

// `fill` and `take` get the buffer of each frame.
template <typename Fill, typename Take>
void carry_bursts(benchmark::State& state, Fill fill, Take take) {
  memif::SharedRegionForTest shared(1, 8, kBufferBytes);
  memif::Ring from(shared.region, 0, true, true, kBufferBytes);
  memif::Ring to(shared.region, 0, false, false, kBufferBytes);
  for (auto _ : state) {
    if (from.ready() < kBurst) state.SkipWithError("a ring without room");
    for (uint32_t i = 0; i < kBurst; ++i) {
      memif::Descriptor& slot = from.slot(i);
      slot.length = kChunkBytes;
      fill(from.buffer(slot, kChunkBytes));
    }
    from.give(kBurst);
    const uint32_t there = to.ready();
    for (uint32_t i = 0; i < there; ++i) {
      const memif::Descriptor slot = to.read(i);
      take(to.buffer(slot, slot.length));
    }
    to.give(there);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * kBurst);
}

void memif_frame(benchmark::State& state) {
  carry_bursts(
      state, [](uint8_t* buffer) { benchmark::DoNotOptimize(buffer); },
      [](const uint8_t* buffer) { benchmark::DoNotOptimize(buffer); });
}
BENCHMARK(memif_frame);

// Summed and copied into the ring, summed where it lies there: a chunk's way over a memif, within one cache.
void memif_chunk(benchmark::State& state) {
  const std::vector<uint8_t> chunk(kChunkBytes, 0x5A);
  constexpr auto kKind = wire::CrcKind::kCrc64Ecma;
  carry_bursts(
      state,
      [&](uint8_t* buffer) {
        benchmark::DoNotOptimize(crc::copy(kKind, 0, chunk.data(), buffer, kChunkBytes));
      },
      [](const uint8_t* buffer) { benchmark::DoNotOptimize(crc::compute(kKind, 0, buffer, kChunkBytes)); });
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * kBurst * kChunkBytes);
}
BENCHMARK(memif_chunk);

}  // namespace
}  // namespace sluice
