// SPDX-License-Identifier: Apache-2.0
#define SLUICE_FOLD_TARGET "avx512f,avx512bw,avx512vbmi,vpclmulqdq,pclmul"

// The compiler's own header begins with registers that it leaves undefined on purpose (GCC bug 105593).
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include "dataplane/crc/fold.h"

namespace sluice::crc {
namespace {

constexpr std::array<uint8_t, 64> make_places() {
  std::array<uint8_t, 64> places{};
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<uint8_t>(i);
  return places;
}
alignas(64) constexpr std::array<uint8_t, 64> kPlaces = make_places();

struct Vector {
  using Register = __m512i;
  static constexpr size_t kBytes = 64;
  static constexpr bool kStreamsAnywhere = true;

  SLUICE_FOLD static Register load(const uint8_t* at) { return _mm512_loadu_si512(at); }
  SLUICE_FOLD static void store(uint8_t* at, Register v) { _mm512_storeu_si512(at, v); }
  SLUICE_FOLD static void stream(uint8_t* at, Register v) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(at), v);
  }
  SLUICE_FOLD static Register everywhere(const Distance& d) {
    return _mm512_broadcast_i32x4(pair(d.low, d.high));
  }
  SLUICE_FOLD static Register folded(Register sum, Register by, Register next) {
    constexpr int kXorOfThree = 0x96;
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sum, by, 0x00),
                                     _mm512_clmulepi64_epi128(sum, by, 0x11), next, kXorOfThree);
  }
  // Each byte so many places up; the highest come back at the bottom.
  SLUICE_FOLD static Register turned_up(Register v, size_t places) {
    return _mm512_permutexvar_epi8(
        _mm512_sub_epi8(load(kPlaces.data()), _mm512_set1_epi8(static_cast<char>(places))), v);
  }
  // A register's bytes from the skew-th on. What stands before them in memory is neither read nor written.
  SLUICE_FOLD static Register take_begin(const uint8_t* from, uint8_t* to, size_t skew) {
    const __mmask64 those = ~0ULL << skew;
    const Register v = _mm512_maskz_loadu_epi8(those, from);
    _mm512_mask_storeu_epi8(to, those, v);
    return v;
  }
  // XORs the state to the eight bytes from the skew-th on: some of them may be in the second register.
  SLUICE_FOLD static void add_state(Register* a, Register* b, uint64_t state, size_t skew) {
    const Register turned = turned_up(_mm512_zextsi128_si512(pair(state, 0)), skew);
    const __mmask64 those = ~0ULL << skew;
    *a = _mm512_xor_si512(*a, _mm512_maskz_mov_epi8(those, turned));
    *b = _mm512_xor_si512(*b, _mm512_maskz_mov_epi8(~those, turned));
  }
  // The last bytes, at the end of a register. They are stored from their line's beginning on: a masked store
  // that begins in the line before waits until that, which went past the caches, has come back (Zen 4: 300
  // ns).
  template <bool kCopying>
  SLUICE_FOLD static Register take_end(const uint8_t* from, uint8_t* to, size_t bytes) {
    const __mmask64 those = ~0ULL >> (kBytes - bytes);
    const Register v = _mm512_maskz_loadu_epi8(those, from);
    if constexpr (kCopying) _mm512_mask_storeu_epi8(to, those, v);
    return turned_up(v, kBytes - bytes);
  }
  // 128 bits with the same remainder as the sum with 64 zeros behind it.
  template <CrcKind kKind>
  SLUICE_FOLD static __m128i joined(Register sum) {
    using Constants = Folding<kKind>;
    constexpr Distance k0 = Constants::distance(56), k1 = Constants::distance(40);
    constexpr Distance k2 = Constants::distance(24), k3 = Constants::distance(8);
    __m512i by = _mm512_castsi128_si512(pair(k0.low, k0.high));
    by = _mm512_inserti32x4(by, pair(k1.low, k1.high), 1);
    by = _mm512_inserti32x4(by, pair(k2.low, k2.high), 2);
    by = _mm512_inserti32x4(by, pair(k3.low, k3.high), 3);
    const __m512i parts = folded(sum, by, _mm512_setzero_si512());
    const __m256i two = _mm256_xor_si256(_mm512_castsi512_si256(parts), _mm512_extracti64x4_epi64(parts, 1));
    return _mm_xor_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
  }
};

}  // namespace

SLUICE_FOLD_ENTRY uint64_t sum_avx512(CrcKind kind, uint64_t seed, const void* data, size_t bytes) {
  return fold<Vector, Copy::kNone>(kind, seed, data, nullptr, bytes);
}

SLUICE_FOLD_ENTRY uint64_t copy_avx512(CrcKind kind, uint64_t seed, const void* from, void* to,
                                       size_t bytes) {
  return fold<Vector, Copy::kOrdinary>(kind, seed, from, to, bytes);
}

SLUICE_FOLD_ENTRY uint64_t stream_avx512(CrcKind kind, uint64_t seed, const void* from, void* to,
                                         size_t bytes) {
  return fold<Vector, Copy::kPastCaches>(kind, seed, from, to, bytes);
}

}  // namespace sluice::crc
