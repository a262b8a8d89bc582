// Symbols times a matrix over GF(256), by ISA-L (polynomial 0x11D, which RFC 6330 has in 5.7.2, too).
//
// Pure; any thread; nothing is allocated. What it costs grows with rows times columns: a code that few
// symbols are asked of is quickest so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::coding {

inline constexpr uint32_t kProductColumnsMax = 256;
inline constexpr uint32_t kProductRowsMax = 256;

// out[r] = the sum over c of matrix[r * columns + c] * in[c], of symbols of `symbol_bytes` bytes.
struct Product {
  const uint8_t* const* in;
  uint8_t* const* out;
  uint32_t columns;  // at most kProductColumnsMax
  uint32_t rows;     // at most kProductRowsMax
  uint32_t symbol_bytes;
};

// The memory that multiply() needs besides; rounded up to whole lines of 64 bytes.
constexpr size_t product_table_bytes(uint32_t columns, uint32_t rows) {
  constexpr size_t kTableBytes = 32;  // what ISA-L's documentation asks for, for each coefficient
  return (size_t{columns} * rows * kTableBytes + 63) / 64 * 64;
}
void multiply(const Product& product, uint8_t* matrix, uint8_t* tables);

}  // namespace sluice::coding
