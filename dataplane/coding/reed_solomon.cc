// SPDX-License-Identifier: Apache-2.0
#include "dataplane/coding/reed_solomon.h"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <bitset>

#include "dataplane/base/check.h"
#include "dataplane/coding/gf_product.h"

namespace sluice::coding {
namespace {

constexpr uint32_t kFieldOrder = 255;
constexpr uint32_t kLineBytes = 64;

size_t aligned(size_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

}  // namespace

ReedSolomon::ReedSolomon(uint32_t source_symbols) : source_symbols_(source_symbols) {
  CHECK(source_symbols > 0 && source_symbols < kShardsMax, "a block has 1 to 254 source symbols");
  const uint32_t k = source_symbols;
  std::vector<uint8_t> whole(size_t{kShardsMax} * k);
  gf_gen_cauchy1_matrix(whole.data(), kShardsMax, static_cast<int>(k));
  matrix_.assign(whole.begin() + static_cast<std::ptrdiff_t>(size_t{k} * k),
                 whole.end());  // less the identity
  uint8_t element = 1;
  for (uint32_t i = 0; i < kFieldOrder; ++i) {
    power_[i] = element;
    log_[element] = static_cast<uint16_t>(i);
    element = gf_mul(element, 2);
  }
}

size_t ReedSolomon::arena_bytes(uint32_t /*symbol_bytes*/, uint32_t repair_symbols) const {
  return aligned(size_t{source_symbols_} * repair_symbols) +
         product_table_bytes(source_symbols_, repair_symbols);
}

Coded ReedSolomon::encode(const Encoding& encoding, std::span<uint8_t> arena) const {
  const auto columns = static_cast<uint32_t>(encoding.source.size());
  const auto rows = static_cast<uint32_t>(encoding.repair.size());
  if (columns == 0 || columns > source_symbols_ || rows > repair_symbols_max() ||
      encoding.first_id > repair_symbols_max() - rows || !is_symbol_size(encoding.symbol_bytes) ||
      arena.size() < arena_bytes(encoding.symbol_bytes, rows)) {
    return Coded::kRefused;
  }
  if (rows == 0) return Coded::kYes;
  uint8_t* const matrix = arena.data();
  for (uint32_t row = 0; row < rows; ++row)
    std::copy_n(&matrix_[size_t{encoding.first_id + row} * source_symbols_], columns, matrix + row * columns);
  multiply({.in = encoding.source.data(),
            .out = encoding.repair.data(),
            .columns = columns,
            .rows = rows,
            .symbol_bytes = encoding.symbol_bytes},
           matrix, arena.data() + aligned(size_t{columns} * rows));
  return Coded::kYes;
}

Coded ReedSolomon::decode(const Decoding& decoding, std::span<uint8_t> arena) const {
  const std::span<uint8_t* const> source = decoding.source;
  const std::span<const uint32_t> missing = decoding.missing;
  const auto columns = static_cast<uint32_t>(source.size());
  const auto lost = static_cast<uint32_t>(missing.size());
  if (columns == 0 || columns > source_symbols_ || lost > columns || !is_symbol_size(decoding.symbol_bytes))
    return Coded::kRefused;
  if (lost == 0) return Coded::kYes;
  if (decoding.repair.size() < lost) return Coded::kNeedsMore;
  if (lost > repair_symbols_max() || arena.size() < arena_bytes(decoding.symbol_bytes, lost))
    return Coded::kRefused;

  // What is multiplied: the source symbols that are here, then the repair symbols. The matrix knows each by
  // its point: j of source symbol j, K + r of repair symbol r.
  const uint8_t* in[kShardsMax];
  uint8_t* out[kShardsMax];
  uint8_t points[kShardsMax];
  uint32_t count = 0;
  uint32_t next = 0;
  for (uint32_t j = 0; j < columns; ++j) {
    if (next < lost && missing[next] == j) {
      out[next++] = source[j];
      continue;
    }
    in[count] = source[j];
    points[count++] = static_cast<uint8_t>(j);
  }
  if (next != lost) return Coded::kRefused;  // out of order, twice, or no symbol of this block
  std::bitset<kShardsMax> used;
  for (const RepairSymbol& symbol : decoding.repair.first(lost)) {
    if (symbol.id >= repair_symbols_max() || used.test(symbol.id)) return Coded::kRefused;
    used.set(symbol.id);
    in[count] = symbol.bytes;
    points[count++] = static_cast<uint8_t>(source_symbols_ + symbol.id);
  }
  uint8_t* const matrix = arena.data();
  plan(missing, {points, count}, {points + count - lost, lost}, matrix);
  multiply({.in = in, .out = out, .columns = count, .rows = lost, .symbol_bytes = decoding.symbol_bytes},
           matrix, arena.data() + aligned(size_t{count} * lost));
  return Coded::kYes;
}

// The matrix that makes the missing symbols of what is here. Let x be the points of the repair symbols, y
// those of the missing ones. The coefficient of what has point v, for the missing symbol j, is
//
//     product over l != j of (v + y_l) / (y_j + y_l)  *  product over i of (x_i + y_j) / (x_i + v)
//
// less the factor that is zero where v is one of x. As a function of v it is the sum of fractions that row j
// of the inverse makes: it has their poles, is 1 at y_j and 0 at all other y. It is worked out in logarithms,
// of which the parts that depend on v alone, or on j alone, are summed once. Addition is XOR.
void ReedSolomon::plan(std::span<const uint32_t> missing, std::span<const uint8_t> columns,
                       std::span<const uint8_t> repair_points, uint8_t* matrix) const {
  // A sum of at most 510 logarithms is below this, so nothing is ever negative.
  constexpr uint32_t kBias = 2 * kFieldOrder * kFieldOrder;
  uint16_t of_column[kShardsMax];
  for (size_t c = 0; c < columns.size(); ++c) {
    const uint32_t v = columns[c];
    uint32_t sum = kBias;
    for (const uint32_t y : missing) sum += log_[v ^ y];
    for (const uint32_t x : repair_points) sum -= x == v ? 0 : log_[x ^ v];
    of_column[c] = static_cast<uint16_t>(sum % kFieldOrder);
  }
  for (size_t j = 0; j < missing.size(); ++j) {
    const uint32_t y_j = missing[j];
    uint32_t sum = kBias;
    for (const uint32_t x : repair_points) sum += log_[x ^ y_j];
    for (const uint32_t y : missing) sum -= y == y_j ? 0 : log_[y_j ^ y];
    const uint32_t of_row = sum % kFieldOrder + kFieldOrder;
    uint8_t* const row = matrix + j * columns.size();
    for (size_t c = 0; c < columns.size(); ++c)
      row[c] = power_[(of_column[c] + of_row - log_[columns[c] ^ y_j]) % kFieldOrder];
  }
}

}  // namespace sluice::coding
