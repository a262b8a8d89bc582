// What folding multiplies by: the constants of Gopal et al., "Fast CRC Computation for Generic Polynomials
// Using PCLMULQDQ Instruction" (Intel, 2009), bit-reflected form, worked out by the compiler from each
// polynomial. Internal to crc/; pure, constexpr.
//
// One arithmetic for both kinds: the remainder of M x^64 modulo P x^32 is that of M x^32 modulo P, times
// x^32. So CRC-32C is a CRC of 64 bits whose generator is P x^32, and reflected its value, its polynomial and
// its initial ones all stand in the low 32 bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/crc/field.h"

namespace sluice::crc {

using wire::CrcKind;

// Multiplies the two halves of 16 bytes so that they stand so much further from the end. One less than the
// distance: a carry-less product of reflected operands is short of one x.
struct Distance {
  uint64_t low;  // for the first eight bytes, which stand 64 bits higher
  uint64_t high;
};

template <CrcKind kKind>
struct Folding {
  static constexpr Field kGenerator{64, field_of(kKind).polynomial};
  static constexpr uint64_t kOnes = field_of(kKind).width == 64 ? ~0ULL : 0xFFFFFFFFULL;

  // x^(8 * bytes), less that one x.
  static constexpr uint64_t power(uint64_t bytes) { return power_of_x(kGenerator, 8 * bytes - 1); }
  static constexpr Distance distance(uint64_t bytes) { return {power(bytes + 8), power(bytes)}; }

  // Over the 0 to 63 bytes of an end shorter than a register; [0] is not used.
  static constexpr std::array<Distance, 64> make_ends() {
    std::array<Distance, 64> ends{};
    for (uint64_t bytes = 1; bytes < ends.size(); ++bytes) ends[bytes] = distance(bytes);
    return ends;
  }
  static constexpr std::array<Distance, 64> kEnds = make_ends();

  // Barrett's reduction of 128 bits (section "Bit-Reflected Barrett Reduction" there): the generator without
  // its x^0, and its quotient below x^128 without its own. Reflected, the quotient is the generator's inverse
  // as a power series.
  static constexpr uint64_t kDivisor = (kGenerator.polynomial << 1) | 1;
  static constexpr bool kDivisorHasOne = (kGenerator.polynomial >> 63) != 0;
  static constexpr uint64_t make_quotient() {
    uint64_t quotient = 0;
    uint64_t rest = 1;
    for (unsigned bit = 0; bit < 64; ++bit) {
      if (((rest >> bit) & 1) == 0) continue;
      quotient |= 1ULL << bit;
      rest ^= kDivisor << bit;
    }
    return quotient;
  }
  static constexpr uint64_t kQuotient = make_quotient();
};

}  // namespace sluice::crc
