// SPDX-License-Identifier: Apache-2.0
#include "dataplane/coding/raptorq.h"

#include <isa-l/erasure_code.h>

#include <algorithm>

#include "dataplane/coding/gf_product.h"
#include "dataplane/crates/raptorq_c.h"

namespace sluice::coding {
namespace {

// Repair symbols whose coefficients are kept. A sender begins with number 0 for each block, and goes on only
// where more is lost.
constexpr uint32_t kKnownRepairs = 256;

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

// What a product with few rows takes of an arena.
struct Few {
  static constexpr size_t bytes(size_t rows, size_t columns) {
    return table_bytes(rows, columns) + 2 * rows * (columns + rows);
  }
  Few(size_t rows, size_t columns, uint8_t* arena)
      : tables(arena),
        matrix(tables + table_bytes(rows, columns)),
        sums(matrix + rows * columns),
        square(sums + rows * columns),
        inverse(square + rows * rows) {}

  uint8_t* tables;
  uint8_t* matrix;
  uint8_t* sums;    // the repair symbols' coefficients, of what is here
  uint8_t* square;  // and of what is missing
  uint8_t* inverse;

 private:
  static constexpr size_t table_bytes(size_t rows, size_t columns) {
    return product_table_bytes(static_cast<uint32_t>(columns), static_cast<uint32_t>(rows));
  }
};

void note(const sluice_raptorq_arena& arena) { last_arena_use = {arena.used_max, arena.missed}; }

}  // namespace

std::unique_ptr<RaptorQ> RaptorQ::make(uint32_t source_symbols) {
  if (source_symbols == 0 || source_symbols > kSourceSymbolsMax) return nullptr;
  sluice_raptorq_plan* const plan = sluice_raptorq_plan_new(source_symbols);
  if (plan == nullptr) return nullptr;
  return std::unique_ptr<RaptorQ>(new RaptorQ(source_symbols, plan));
}

// The repair symbols of unit vectors are the coefficients.
RaptorQ::RaptorQ(uint32_t source_symbols, sluice_raptorq_plan* plan)
    : source_symbols_(source_symbols), plan_(plan) {
  const uint32_t k = source_symbols;
  if (k > kProductColumnsMax) return;
  constexpr uint32_t kSymbolBytes = kProductColumnsMax;
  std::vector<uint8_t> units(size_t{k} * kSymbolBytes);
  std::vector<uint8_t> sums(size_t{kKnownRepairs} * kSymbolBytes);
  std::vector<const uint8_t*> source(k);
  std::vector<uint8_t*> repair(kKnownRepairs);
  for (uint32_t i = 0; i < k; ++i) {
    source[i] = &units[size_t{i} * kSymbolBytes];
    units[size_t{i} * kSymbolBytes + i] = 1;
  }
  for (uint32_t id = 0; id < kKnownRepairs; ++id) repair[id] = &sums[size_t{id} * kSymbolBytes];
  const sluice_raptorq_block whole = block(source, kSymbolBytes);
  sluice_raptorq_arena memory = rest_of({});
  if (sluice_raptorq_encode(plan_, &whole, 0, repair.data(), kKnownRepairs, &memory) != SLUICE_RAPTORQ_DONE)
    return;
  coefficients_.resize(size_t{kKnownRepairs} * k);
  for (uint32_t id = 0; id < kKnownRepairs; ++id) std::copy_n(repair[id], k, &coefficients_[size_t{id} * k]);
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
  const auto rows = static_cast<uint32_t>(repair.size());
  if (encoding.first_id + rows <= kKnownRepairs && are_few(rows, encoding.source.size(), arena)) {
    encode_few(encoding, arena);
    return Coded::kYes;
  }
  const sluice_raptorq_block whole = block(encoding.source, encoding.symbol_bytes);
  sluice_raptorq_arena memory = rest_of(arena);
  const int result = sluice_raptorq_encode(plan_, &whole, encoding.first_id, repair.data(), rows, &memory);
  note(memory);
  return answer_of(result);
}

bool RaptorQ::are_few(size_t symbols, size_t columns, std::span<const uint8_t> arena) const {
  return !coefficients_.empty() && symbols <= kFewMax && Few::bytes(symbols, columns) <= arena.size();
}

void RaptorQ::encode_few(const Encoding& encoding, std::span<uint8_t> arena) const {
  const auto columns = static_cast<uint32_t>(encoding.source.size());
  const auto rows = static_cast<uint32_t>(encoding.repair.size());
  const Few few(rows, columns, arena.data());
  for (uint32_t row = 0; row < rows; ++row)
    std::copy_n(coefficients(encoding.first_id + row), columns, few.matrix + size_t{row} * columns);
  multiply({.in = encoding.source.data(),
            .out = encoding.repair.data(),
            .columns = columns,
            .rows = rows,
            .symbol_bytes = encoding.symbol_bytes},
           few.matrix, few.tables);
}

// The missing symbols times their coefficients (square) are the repair symbols less what is here times its
// own (sums). Few::sums has a unit matrix beside it, for the repair symbols.
bool RaptorQ::decode_few(const Decoding& decoding, std::span<uint8_t> arena) const {
  const std::span<const uint32_t> missing = decoding.missing;
  const auto columns = static_cast<uint32_t>(decoding.source.size());
  const auto lost = static_cast<uint32_t>(missing.size());
  const Few few(lost, columns, arena.data());
  const uint8_t* in[kProductColumnsMax];
  uint8_t* out[kFewMax];
  uint8_t* sums[kFewMax];
  uint8_t* rows[kFewMax];
  for (uint32_t row = 0; row < lost; ++row) {
    const RepairSymbol& symbol = decoding.repair[row];
    if (symbol.id >= kKnownRepairs) return false;
    in[columns - lost + row] = symbol.bytes;
    out[row] = decoding.source[missing[row]];
    sums[row] = few.sums + size_t{row} * columns;
    rows[row] = few.matrix + size_t{row} * columns;
    std::fill_n(sums[row] + columns - lost, lost, uint8_t{0});
    sums[row][columns - lost + row] = 1;
  }
  uint32_t gone = 0;
  for (uint32_t j = 0; j < columns; ++j) {
    const bool is_missing = gone < lost && missing[gone] == j;
    for (uint32_t row = 0; row < lost; ++row) {
      const uint8_t coefficient = coefficients(decoding.repair[row].id)[j];
      (is_missing ? few.square[size_t{row} * lost + gone] : sums[row][j - gone]) = coefficient;
    }
    if (is_missing) {
      ++gone;
    } else {
      in[j - gone] = decoding.source[j];
    }
  }
  const auto size = static_cast<int>(lost);
  if (gf_invert_matrix(few.square, few.inverse, size) != 0) return false;
  ec_init_tables(size, size, few.inverse, few.tables);
  ec_encode_data(static_cast<int>(columns), size, size, few.tables, sums, rows);
  multiply({.in = in, .out = out, .columns = columns, .rows = lost, .symbol_bytes = decoding.symbol_bytes},
           few.matrix, few.tables);
  return true;
}

Coded RaptorQ::decode(const Decoding& decoding, std::span<uint8_t> arena) const {
  const std::span<uint8_t* const> source = decoding.source;
  const std::span<const uint32_t> missing = decoding.missing;
  const std::span<const RepairSymbol> repair = decoding.repair;
  if (source.empty() || source.size() > source_symbols_ || missing.size() > source.size() ||
      repair.size() > kRepairSymbolsMax || !is_symbol_size(decoding.symbol_bytes)) {
    return Coded::kRefused;
  }
  for (size_t i = 0; i < missing.size(); ++i)
    if (missing[i] >= source.size() || (i > 0 && missing[i] <= missing[i - 1])) return Coded::kRefused;
  if (std::ranges::any_of(repair, [](const auto& symbol) { return symbol.id >= kRepairSymbolsMax; }))
    return Coded::kRefused;
  if (missing.empty()) return Coded::kYes;
  if (repair.size() < missing.size()) return Coded::kNeedsMore;
  if (are_few(missing.size(), source.size(), arena) && decode_few(decoding, arena)) return Coded::kYes;

  auto* const here = carve<const uint8_t*>(&arena, source.size());
  auto* const ids = here == nullptr ? nullptr : carve<uint32_t>(&arena, repair.size());
  auto* const symbols = ids == nullptr ? nullptr : carve<const uint8_t*>(&arena, repair.size());
  if (symbols == nullptr) return Coded::kRefused;
  std::copy(source.begin(), source.end(), here);
  for (const uint32_t i : missing) here[i] = nullptr;
  for (size_t i = 0; i < repair.size(); ++i) {
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
