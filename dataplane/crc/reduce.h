// The end of every sum by carry-less multiplication: 128 bits to the CRC. Internal to crc/.
//
// Who includes this says first for what CPU: #define SLUICE_FOLD_TARGET "pclmul", or more. Everything is in
// an unnamed namespace, since each file has its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "dataplane/crc/distance.h"

#define SLUICE_FOLD __attribute__((target(SLUICE_FOLD_TARGET), always_inline)) inline
#define SLUICE_FOLD_ENTRY __attribute__((target(SLUICE_FOLD_TARGET)))

namespace sluice::crc {
namespace {

SLUICE_FOLD __m128i pair(uint64_t low, uint64_t high) {
  return _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
}

// The remainder of 128 bits, with the last XOR: Barrett's two multiplications.
template <CrcKind kKind>
SLUICE_FOLD uint64_t reduced(__m128i sum) {
  using Constants = Folding<kKind>;
  const __m128i by = pair(Constants::kQuotient, Constants::kDivisor);
  const __m128i quotient = _mm_clmulepi64_si128(sum, by, 0x00);
  __m128i rest = _mm_xor_si128(sum, _mm_clmulepi64_si128(quotient, by, 0x10));
  if constexpr (Constants::kDivisorHasOne) rest = _mm_xor_si128(rest, _mm_slli_si128(quotient, 8));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(rest, rest))) ^ Constants::kOnes;
}

}  // namespace
}  // namespace sluice::crc
