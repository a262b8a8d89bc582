// A block of random bytes with what a code makes of it, for tests, fuzzers and benchmarks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "dataplane/coding/block_code.h"
#include "dataplane/core/hot.h"

namespace sluice::coding {

// Memory that begins at a line, as an arena does.
class AlignedBytes {
 public:
  explicit AlignedBytes(size_t bytes = 0) : lines_((bytes + 63) / 64), bytes_(bytes) {}
  std::span<uint8_t> span() { return {lines_.empty() ? nullptr : lines_.front().bytes, bytes_}; }

 private:
  struct alignas(64) Line {
    uint8_t bytes[64] = {};
  };
  std::vector<Line> lines_;
  size_t bytes_;
};

// So many symbols, each with memory of its own, so that sanitizers see what is written behind one.
struct SymbolsForTest {
  SymbolsForTest(size_t count, uint32_t symbol_bytes) : bytes(count, std::vector<uint8_t>(symbol_bytes)) {
    for (auto& symbol : bytes) places.push_back(symbol.data());
  }
  SymbolsForTest(const SymbolsForTest& from) : SymbolsForTest(from.bytes.size(), from.bytes.front().size()) {
    std::copy(from.bytes.begin(), from.bytes.end(), bytes.begin());
    for (size_t i = 0; i < bytes.size(); ++i) places[i] = bytes[i].data();
  }
  SymbolsForTest& operator=(const SymbolsForTest&) = delete;
  ~SymbolsForTest() = default;
  SymbolsForTest(SymbolsForTest&&) = default;
  SymbolsForTest& operator=(SymbolsForTest&&) = default;

  std::vector<const uint8_t*> sources() const { return {places.begin(), places.end()}; }

  std::vector<std::vector<uint8_t>> bytes;
  std::vector<uint8_t*> places;
};

inline SymbolsForTest random_symbols(std::mt19937_64& random, size_t count, uint32_t symbol_bytes) {
  SymbolsForTest symbols(count, symbol_bytes);
  for (auto& symbol : symbols.bytes) {
    for (uint8_t& byte : symbol) byte = static_cast<uint8_t>(random());
  }
  return symbols;
}

// `count` of the numbers below `bound`, ascending.
inline std::vector<uint32_t> random_choice(std::mt19937_64& random, uint32_t bound, uint32_t count) {
  std::vector<uint32_t> all(bound);
  for (uint32_t i = 0; i < bound; ++i) all[i] = i;
  std::shuffle(all.begin(), all.end(), random);
  all.resize(count);
  std::sort(all.begin(), all.end());
  return all;
}

// Repair symbols first_id and so on; empty: the code refused.
inline SymbolsForTest repair_of(const BlockCode& code, const SymbolsForTest& source, uint32_t first_id,
                                uint32_t count) {
  const auto symbol_bytes = static_cast<uint32_t>(source.bytes.front().size());
  SymbolsForTest repair(count, symbol_bytes);
  AlignedBytes arena(code.arena_bytes(symbol_bytes, count));
  const auto sources = source.sources();
  const Encoding encoding{
      .source = sources, .symbol_bytes = symbol_bytes, .first_id = first_id, .repair = repair.places};
  const auto encode = [&] {
    const HotScope hot;  // nothing may be allocated in here (tools/hotmalloc)
    return code.encode(encoding, arena.span());
  };
  const Coded coded = encode();
  return coded == Coded::kYes ? std::move(repair) : SymbolsForTest(0, 0);
}

// What a decoder makes of a block whose `missing` symbols are rubbish, with these repair symbols of `repair`.
inline Coded decode_for_test(const BlockCode& code, SymbolsForTest* source, std::span<const uint32_t> missing,
                             const SymbolsForTest& repair, std::span<const uint32_t> repair_ids) {
  const auto symbol_bytes = static_cast<uint32_t>(source->bytes.front().size());
  for (const uint32_t i : missing) std::fill(source->bytes[i].begin(), source->bytes[i].end(), 0xEE);
  std::vector<RepairSymbol> here;
  for (const uint32_t id : repair_ids) here.push_back({.id = id, .bytes = repair.places[id]});
  AlignedBytes arena(code.arena_bytes(symbol_bytes, static_cast<uint32_t>(here.size())));
  const HotScope hot;
  return code.decode(
      {.source = source->places, .symbol_bytes = symbol_bytes, .missing = missing, .repair = here},
      arena.span());
}

}  // namespace sluice::coding
