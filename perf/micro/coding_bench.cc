// Erasure codes: blocks that come from memory one behind the other, as extents do, of which each misses a
// tenth. Bytes are those of source symbols; a block that misses none costs nothing, since no code sees it.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <vector>

#include "dataplane/coding/block_digest.h"
#include "dataplane/coding/block_for_test.h"
#include "dataplane/coding/block_layout.h"

namespace sluice::coding {
namespace {

// Beyond the last level of cache of most machines, and as many extents as a flow may have open.
constexpr size_t kColdBytes = 128U << 20;
constexpr uint32_t kExtentBytes = 1U << 20;

// Extents that lie one behind the other. Each block's repair symbols lie together, as a receiver keeps them.
struct Extents {
  Extents(Scheme scheme, uint32_t chunk_bytes, double loss)
      : symbol_bytes(chunk_bytes),
        k(source_symbols(scheme, {.extent_bytes = kExtentBytes, .chunk_bytes = chunk_bytes})),
        layout(kExtentBytes / chunk_bytes, k),
        code(make_code(scheme, k)),
        lost(static_cast<uint32_t>(k * loss + 0.5)),
        repair_count(scheme == Scheme::kRaptorQ ? lost + 2 : lost),
        bytes(kColdBytes) {
    std::mt19937_64 random(1);
    const auto first = bytes.span().first(kExtentBytes);
    for (uint8_t& byte : first) byte = static_cast<uint8_t>(random());
    for (size_t at = kExtentBytes; at < kColdBytes; at += kExtentBytes)
      std::copy(first.begin(), first.end(), bytes.span().data() + at);
    const size_t blocks = kColdBytes / kExtentBytes * layout.blocks();
    repair = AlignedBytes(blocks * repair_count * symbol_bytes);
    arena = AlignedBytes(code->arena_bytes(symbol_bytes, repair_count));
    for (size_t i = 0; i < blocks; ++i) {
      place(i);
      const std::vector<const uint8_t*> sources(source.begin(), source.end());
      (void)code->encode({.source = sources, .symbol_bytes = symbol_bytes, .first_id = 0, .repair = repairs},
                         arena.span());
      missing.push_back(random_choice(random, static_cast<uint32_t>(source.size()), lost));
    }
  }
  // Where the symbols of a block are.
  void place(size_t index) {
    const auto block = static_cast<uint32_t>(index % layout.blocks());
    uint8_t* const extent = bytes.span().data() + index / layout.blocks() * kExtentBytes;
    source.resize(layout.chunks_of(block));
    for (uint32_t i = 0; i < source.size(); ++i)
      source[i] = extent + size_t{layout.chunk_at(block, i)} * symbol_bytes;
    repairs.resize(repair_count);
    here.resize(repair_count);
    for (uint32_t i = 0; i < repair_count; ++i) {
      repairs[i] = repair.span().data() + (index * repair_count + i) * symbol_bytes;
      here[i] = {.id = i, .bytes = repairs[i]};
    }
  }
  size_t blocks() const { return missing.size(); }

  uint32_t symbol_bytes;
  uint32_t k;
  BlockLayout layout;
  std::unique_ptr<BlockCode> code;
  uint32_t lost;
  uint32_t repair_count;
  AlignedBytes bytes;
  AlignedBytes repair;
  AlignedBytes arena;
  std::vector<std::vector<uint32_t>> missing;
  std::vector<uint8_t*> source;
  std::vector<uint8_t*> repairs;
  std::vector<RepairSymbol> here;
};

void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"scheme", "bytes", "permille"});
  for (const Scheme scheme : {Scheme::kReedSolomon, Scheme::kRaptorQ}) {
    if (!is_built_in(scheme)) continue;
    for (const int64_t bytes : {1280, 8192}) {
      for (const int64_t permille : {10, 100}) {
        benchmark->Args({static_cast<int64_t>(scheme), bytes, permille});
      }
    }
  }
}

// One for each shape: to make them takes longer than to measure.
Extents* extents_of(benchmark::State& state) {
  const auto scheme = static_cast<Scheme>(state.range(0));
  state.SetLabel(std::string(scheme_name(scheme)));
  static std::unique_ptr<Extents> extents;
  static std::vector<int64_t> made_for;
  const std::vector<int64_t> shape{state.range(0), state.range(1), state.range(2)};
  if (made_for != shape) {
    extents.reset();
    extents = std::make_unique<Extents>(scheme, static_cast<uint32_t>(state.range(1)),
                                        static_cast<double>(state.range(2)) / 1000);
    made_for = shape;
  }
  return extents.get();
}

void decode(benchmark::State& state, bool checked) {
  Extents* const extents = extents_of(state);
  size_t at = 0;
  int64_t bytes = 0;
  for (auto _ : state) {
    if (at == extents->blocks()) at = 0;
    extents->place(at);
    const Coded coded = extents->code->decode({.source = extents->source,
                                               .symbol_bytes = extents->symbol_bytes,
                                               .missing = extents->missing[at],
                                               .repair = extents->here},
                                              extents->arena.span());
    benchmark::DoNotOptimize(coded);
    if (checked) {
      const std::vector<const uint8_t*> symbols(extents->source.begin(), extents->source.end());
      benchmark::DoNotOptimize(block_digest(symbols, extents->symbol_bytes, extents->symbol_bytes));
    }
    bytes += static_cast<int64_t>(extents->source.size()) * extents->symbol_bytes;
    ++at;
  }
  state.SetBytesProcessed(bytes);
}
void coding_decode(benchmark::State& state) { decode(state, false); }
BENCHMARK(coding_decode)->Apply(shapes);
// With the digest that decides whether the block is believed.
void coding_decode_checked(benchmark::State& state) { decode(state, true); }
BENCHMARK(coding_decode_checked)->Apply(shapes);

// As many repair symbols as a tenth of the block, whatever is lost.
void coding_encode(benchmark::State& state) {
  Extents* const extents = extents_of(state);
  size_t at = 0;
  int64_t bytes = 0;
  for (auto _ : state) {
    if (at == extents->blocks()) at = 0;
    extents->place(at++);
    const std::vector<const uint8_t*> sources(extents->source.begin(), extents->source.end());
    benchmark::DoNotOptimize(extents->code->encode(
        {.source = sources, .symbol_bytes = extents->symbol_bytes, .first_id = 0, .repair = extents->repairs},
        extents->arena.span()));
    bytes += static_cast<int64_t>(sources.size()) * extents->symbol_bytes;
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(coding_encode)->Apply(shapes);

// What a code costs once for each K.
void coding_plan(benchmark::State& state) {
  const auto scheme = static_cast<Scheme>(state.range(0));
  state.SetLabel(std::string(scheme_name(scheme)));
  for (auto _ : state) benchmark::DoNotOptimize(make_code(scheme, static_cast<uint32_t>(state.range(1))));
}
BENCHMARK(coding_plan)->Apply([](benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"scheme", "k"})->Args({static_cast<int64_t>(Scheme::kReedSolomon), 64});
  if (!is_built_in(Scheme::kRaptorQ)) return;
  for (const int64_t k : {128, 250}) benchmark->Args({static_cast<int64_t>(Scheme::kRaptorQ), k});
});

}  // namespace
}  // namespace sluice::coding
