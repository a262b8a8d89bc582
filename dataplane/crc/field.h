// Arithmetic of polynomials over GF(2) modulo a CRC's generator, reflected: bit i is the coefficient of
// x^(width-1-i), so that 1 is the top bit. Pure, constexpr.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dataplane/core/wire.h"

namespace sluice::crc {

struct Field {
  unsigned width;
  uint64_t polynomial;
};

inline constexpr Field kEcma{64, 0xC96C5795D7870F42};  // ECMA-182
inline constexpr Field kCastagnoli{32, 0x82F63B78};    // RFC 3720

constexpr Field field_of(wire::CrcKind kind) {
  return kind == wire::CrcKind::kCrc64Ecma ? kEcma : kCastagnoli;
}

constexpr uint64_t multiply(Field f, uint64_t a, uint64_t b) {
  uint64_t product = 0;
  for (uint64_t bit = 1ULL << (f.width - 1); bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b & 1) ? (b >> 1) ^ f.polynomial : b >> 1;
  }
  return product;
}

constexpr uint64_t power_of_x(Field f, uint64_t exponent) {
  uint64_t result = 1ULL << (f.width - 1);
  for (uint64_t square = 1ULL << (f.width - 2); exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = multiply(f, result, square);
    square = multiply(f, square, square);
  }
  return result;
}

}  // namespace sluice::crc
