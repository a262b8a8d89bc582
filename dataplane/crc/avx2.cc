// SPDX-License-Identifier: Apache-2.0
#define SLUICE_FOLD_TARGET "avx2,vpclmulqdq,pclmul"

#include "dataplane/crc/fold.h"

namespace sluice::crc {
namespace {

struct End {
  __m128i low, high;
};

template <typename Piece, bool kCopying>
SLUICE_FOLD void push(End* end, const uint8_t* from, uint8_t* to, size_t* at) {
  constexpr int kBytes = sizeof(Piece);
  Piece piece;
  std::memcpy(&piece, from + *at, kBytes);
  if constexpr (kCopying) std::memcpy(to + *at, &piece, kBytes);
  *at += kBytes;
  end->low = _mm_alignr_epi8(end->high, end->low, kBytes);
  end->high = _mm_alignr_epi8(pair(piece, 0), end->high, kBytes);
}

struct Vector {
  using Register = __m256i;
  static constexpr size_t kBytes = 32;
  static constexpr bool kStreamsAnywhere = false;

  SLUICE_FOLD static Register load(const uint8_t* at) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  }
  SLUICE_FOLD static void store(uint8_t* at, Register v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), v);
  }
  SLUICE_FOLD static void stream(uint8_t* at, Register v) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(at), v);
  }
  SLUICE_FOLD static Register everywhere(const Distance& d) {
    return _mm256_broadcastsi128_si256(pair(d.low, d.high));
  }
  SLUICE_FOLD static Register folded(Register sum, Register by, Register next) {
    return _mm256_xor_si256(
        _mm256_xor_si256(_mm256_clmulepi64_epi128(sum, by, 0x00), _mm256_clmulepi64_epi128(sum, by, 0x11)),
        next);
  }
  SLUICE_FOLD static void add_state(Register* a, Register*, uint64_t state, size_t) {
    *a = _mm256_xor_si256(*a, _mm256_zextsi128_si256(pair(state, 0)));
  }
  // The last bytes, at the end of a register, into which they are pushed piece by piece.
  template <bool kCopying>
  SLUICE_FOLD static Register take_end(const uint8_t* from, uint8_t* to, size_t bytes) {
    End end{_mm_setzero_si128(), _mm_setzero_si128()};
    if ((bytes & 16) != 0) {
      end.high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      if constexpr (kCopying) _mm_storeu_si128(reinterpret_cast<__m128i*>(to), end.high);
    }
    size_t at = bytes & 16;
    if ((bytes & 8) != 0) push<uint64_t, kCopying>(&end, from, to, &at);
    if ((bytes & 4) != 0) push<uint32_t, kCopying>(&end, from, to, &at);
    if ((bytes & 2) != 0) push<uint16_t, kCopying>(&end, from, to, &at);
    if ((bytes & 1) != 0) push<uint8_t, kCopying>(&end, from, to, &at);
    return _mm256_set_m128i(end.high, end.low);
  }
  // 128 bits with the same remainder as the sum with 64 zeros behind it.
  template <CrcKind kKind>
  SLUICE_FOLD static __m128i joined(Register sum) {
    using Constants = Folding<kKind>;
    constexpr Distance k0 = Constants::distance(24), k1 = Constants::distance(8);
    const __m256i by = _mm256_set_m128i(pair(k1.low, k1.high), pair(k0.low, k0.high));
    const __m256i parts = folded(sum, by, _mm256_setzero_si256());
    return _mm_xor_si128(_mm256_castsi256_si128(parts), _mm256_extracti128_si256(parts, 1));
  }
};

}  // namespace

SLUICE_FOLD_ENTRY uint64_t sum_avx2(CrcKind kind, uint64_t seed, const void* data, size_t bytes) {
  return fold<Vector, Copy::kNone>(kind, seed, data, nullptr, bytes);
}

SLUICE_FOLD_ENTRY uint64_t copy_avx2(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes) {
  return fold<Vector, Copy::kOrdinary>(kind, seed, from, to, bytes);
}

SLUICE_FOLD_ENTRY uint64_t stream_avx2(CrcKind kind, uint64_t seed, const void* from, void* to,
                                       size_t bytes) {
  return fills_blocks(to, bytes, Vector::kBytes)
             ? fold<Vector, Copy::kPastCaches>(kind, seed, from, to, bytes)
             : fold<Vector, Copy::kOrdinary>(kind, seed, from, to, bytes);
}

}  // namespace sluice::crc
