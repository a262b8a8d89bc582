// SPDX-License-Identifier: Apache-2.0
#define SLUICE_FOLD_TARGET "pclmul"

#include "dataplane/crc/reduce.h"
#include "dataplane/crc/variants.h"

namespace sluice::crc {
namespace {

// A carry-less product of reflected operands is short of one x.
SLUICE_FOLD __m128i times_x(__m128i value) {
  const __m128i carry = _mm_slli_si128(_mm_srli_epi64(value, 63), 8);
  return _mm_or_si128(_mm_slli_epi64(value, 1), carry);
}

// Values of CRC-32C stand in the low half, 32 places below their own (distance.h): so one of the two operands
// is lifted to where it belongs.
template <CrcKind kKind>
SLUICE_FOLD uint64_t product(uint64_t a, uint64_t b) {
  constexpr unsigned kLift = kKind == CrcKind::kCrc64Ecma ? 0 : 32;
  const __m128i whole = _mm_clmulepi64_si128(pair(a & Folding<kKind>::kOnes, 0), pair(b << kLift, 0), 0x00);
  return reduced<kKind>(times_x(whole)) ^ Folding<kKind>::kOnes;
}

}  // namespace

SLUICE_FOLD_ENTRY uint64_t multiply_by_words(CrcKind kind, uint64_t a, uint64_t b) {
  return kind == CrcKind::kCrc64Ecma ? product<CrcKind::kCrc64Ecma>(a, b) : product<CrcKind::kCrc32c>(a, b);
}

}  // namespace sluice::crc
