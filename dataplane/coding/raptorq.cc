// SPDX-License-Identifier: Apache-2.0
#include "dataplane/coding/raptorq.h"

#include <algorithm>

#include "dataplane/crates/raptorq_c.h"

namespace sluice::coding {
namespace {

thread_local RaptorQ::ArenaUse last_arena_use;

Coded answer_of(int result) {
  switch (result) {
    case SLUICE_RAPTORQ_DONE:
      return Coded::kYes;
    case SLUICE_RAPTORQ_NEEDS_MORE:
      return Coded::kNeedsMore;
    default:
      return Coded::kRefused;
  }
}

// Takes what a call needs for its own lists from the front of an arena.
template <typename T>
T* carve(std::span<uint8_t>* arena, size_t count) {
  const size_t bytes = (count * sizeof(T) + 63) / 64 * 64;
  if (arena->size() < bytes) return nullptr;
  T* const place = reinterpret_cast<T*>(arena->data());
  *arena = arena->subspan(bytes);
  return place;
}

sluice_raptorq_arena rest_of(std::span<uint8_t> arena) {
  return {.bytes = arena.data(), .size = arena.size(), .used_max = 0, .missed = 0};
}

void note(const sluice_raptorq_arena& arena) { last_arena_use = {arena.used_max, arena.missed}; }

}  // namespace

std::unique_ptr<RaptorQ> RaptorQ::make(uint32_t source_symbols) {
  if (source_symbols == 0 || source_symbols > kSourceSymbolsMax) return nullptr;
  sluice_raptorq_plan* const plan = sluice_raptorq_plan_new(source_symbols);
  if (plan == nullptr) return nullptr;
  return std::unique_ptr<RaptorQ>(new RaptorQ(source_symbols, plan));
}

RaptorQ::~RaptorQ() { sluice_raptorq_plan_free(plan_); }

sluice_raptorq_block RaptorQ::block(std::span<const uint8_t* const> source, uint32_t symbol_bytes) const {
  return {.source_symbols = source_symbols_,
          .symbol_bytes = symbol_bytes,
          .source_count = static_cast<uint32_t>(source.size()),
          .source = source.data()};
}

Coded RaptorQ::encode(const Encoding& encoding, std::span<uint8_t> arena) const {
  const std::span<uint8_t* const> repair = encoding.repair;
  if (encoding.source.empty() || encoding.source.size() > source_symbols_ ||
      repair.size() > kRepairSymbolsMax || encoding.first_id > kRepairSymbolsMax - repair.size() ||
      !is_symbol_size(encoding.symbol_bytes)) {
    return Coded::kRefused;
  }
  if (repair.empty()) return Coded::kYes;
  const sluice_raptorq_block whole = block(encoding.source, encoding.symbol_bytes);
  sluice_raptorq_arena memory = rest_of(arena);
  const int result = sluice_raptorq_encode(plan_, &whole, encoding.first_id, repair.data(),
                                           static_cast<uint32_t>(repair.size()), &memory);
  note(memory);
  return answer_of(result);
}

Coded RaptorQ::decode(const Decoding& decoding, std::span<uint8_t> arena) const {
  const std::span<uint8_t* const> source = decoding.source;
  const std::span<const uint32_t> missing = decoding.missing;
  const std::span<const RepairSymbol> repair = decoding.repair;
  if (source.empty() || source.size() > source_symbols_ || missing.size() > source.size() ||
      repair.size() > kRepairSymbolsMax || !is_symbol_size(decoding.symbol_bytes)) {
    return Coded::kRefused;
  }
  if (missing.empty()) return Coded::kYes;
  if (repair.size() < missing.size()) return Coded::kNeedsMore;
  auto* const here = carve<const uint8_t*>(&arena, source.size());
  auto* const ids = here == nullptr ? nullptr : carve<uint32_t>(&arena, repair.size());
  auto* const symbols = ids == nullptr ? nullptr : carve<const uint8_t*>(&arena, repair.size());
  if (symbols == nullptr) return Coded::kRefused;
  std::copy(source.begin(), source.end(), here);
  for (size_t i = 0; i < missing.size(); ++i) {
    if (missing[i] >= source.size() || (i > 0 && missing[i] <= missing[i - 1])) return Coded::kRefused;
    here[missing[i]] = nullptr;
  }
  for (size_t i = 0; i < repair.size(); ++i) {
    if (repair[i].id >= kRepairSymbolsMax) return Coded::kRefused;
    ids[i] = repair[i].id;
    symbols[i] = repair[i].bytes;
  }
  const sluice_raptorq_block whole = block({here, source.size()}, decoding.symbol_bytes);
  sluice_raptorq_arena memory = rest_of(arena);
  const int result = sluice_raptorq_decode(&whole, source.data(), ids, symbols,
                                           static_cast<uint32_t>(repair.size()), &memory);
  note(memory);
  return answer_of(result);
}

// Measured (raptorq_test.cc holds it). A decoder has each symbol three times: as it came, in the system that
// it solves, and in its result. Its matrices take some KiB for each source symbol.
size_t RaptorQ::arena_bytes(uint32_t symbol_bytes, uint32_t repair_symbols) const {
  constexpr size_t kMoreRows = 16;
  constexpr size_t kOfMatrices = 5000;
  const size_t rows = size_t{source_symbols_} + repair_symbols + kMoreRows;
  return rows * (size_t{symbol_bytes} * 7 / 2 + 64) + (source_symbols_ + kMoreRows) * kOfMatrices;
}

RaptorQ::ArenaUse RaptorQ::last_use() { return last_arena_use; }

}  // namespace sluice::coding
