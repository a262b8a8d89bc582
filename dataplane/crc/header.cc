// SPDX-License-Identifier: Apache-2.0
#define SLUICE_FOLD_TARGET "pclmul"

#include "dataplane/crc/reduce.h"
#include "dataplane/crc/variants.h"

namespace sluice::crc {
namespace {

static_assert(wire::kHeaderCoveredBytes == 56, "seven words, each multiplied by its own power");

SLUICE_FOLD __m128i load(const uint8_t* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }

// Six multiplications that do not wait for each other, instead of a chain: all words go straight to where the
// reduction wants them, and the last stands there already. The seed, which comes last (it is the payload's
// digest), waits for one of them and the reduction.
template <CrcKind kKind>
SLUICE_FOLD uint64_t sum(uint64_t seed, const uint8_t* header) {
  using Constants = Folding<kKind>;
  const __m128i by0 = pair(Constants::power(56), Constants::power(48));
  const __m128i by2 = pair(Constants::power(40), Constants::power(32));
  const __m128i by4 = pair(Constants::power(24), Constants::power(16));
  const __m128i word0 = load(header);
  const __m128i word2 = load(header + 16);
  const __m128i word4 = load(header + 32);
  const __m128i word6 = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(header + 48));
  const __m128i sum2 =
      _mm_xor_si128(_mm_clmulepi64_si128(word2, by2, 0x00), _mm_clmulepi64_si128(word2, by2, 0x11));
  const __m128i sum4 =
      _mm_xor_si128(_mm_clmulepi64_si128(word4, by4, 0x00), _mm_clmulepi64_si128(word4, by4, 0x11));
  const __m128i rest =
      _mm_xor_si128(_mm_xor_si128(sum2, sum4), _mm_xor_si128(word6, _mm_clmulepi64_si128(word0, by0, 0x11)));
  const __m128i first = _mm_xor_si128(word0, pair(seed ^ Constants::kOnes, 0));
  return reduced<kKind>(_mm_xor_si128(rest, _mm_clmulepi64_si128(first, by0, 0x00)));
}

}  // namespace

SLUICE_FOLD_ENTRY uint64_t header_by_words(CrcKind kind, uint64_t seed, const uint8_t* header) {
  return kind == CrcKind::kCrc64Ecma ? sum<CrcKind::kCrc64Ecma>(seed, header)
                                     : sum<CrcKind::kCrc32c>(seed, header);
}

}  // namespace sluice::crc
