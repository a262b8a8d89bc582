// SPDX-License-Identifier: Apache-2.0
#include "dataplane/crc/fold.h"

#include <immintrin.h>
#include <isa-l/crc64.h>

#include <cstring>

#include "dataplane/crc/field.h"

#define SLUICE_FOLD __attribute__((target("avx2,pclmul,vpclmulqdq"), always_inline)) inline
#define SLUICE_FOLD_ENTRY __attribute__((target("avx2,pclmul,vpclmulqdq")))

namespace sluice::crc {
namespace {

constexpr size_t kStride = 128;  // four registers: the multiplier's latency is hidden

// Multiplies the two halves of 16 bytes so that they stand `bytes` further on. One less than the distance:
// a product of reflected operands is short of one x.
struct Distance {
  uint64_t low;  // for the first eight bytes, which stand 64 bits higher
  uint64_t high;
};
constexpr Distance distance(uint64_t bytes) {
  return {power_of_x(kEcma, 8 * bytes + 64 - 1), power_of_x(kEcma, 8 * bytes - 1)};
}
constexpr Distance kByStride = distance(kStride);
constexpr Distance kToLast[7] = {distance(112), distance(96), distance(80), distance(64),
                                 distance(48),  distance(32), distance(16)};

SLUICE_FOLD __m256i folded(__m256i sum, __m256i by, __m256i next) {
  return _mm256_xor_si256(
      _mm256_xor_si256(_mm256_clmulepi64_epi128(sum, by, 0x00), _mm256_clmulepi64_epi128(sum, by, 0x11)),
      next);
}

SLUICE_FOLD __m128i moved(__m128i sum, const Distance& d) {
  const __m128i by = _mm_set_epi64x(static_cast<int64_t>(d.high), static_cast<int64_t>(d.low));
  return _mm_xor_si128(_mm_clmulepi64_si128(sum, by, 0x00), _mm_clmulepi64_si128(sum, by, 0x11));
}

enum class Copy : uint8_t { kNone, kOrdinary, kPastCaches };

template <Copy kCopy>
SLUICE_FOLD __m256i load(const uint8_t* from, uint8_t* to, size_t at) {
  const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at));
  if constexpr (kCopy == Copy::kOrdinary) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + at), v);
  if constexpr (kCopy == Copy::kPastCaches) _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at), v);
  return v;
}

// Folds whole strides into the last 16 bytes of them, which leave the same remainder; ISA-L does the rest.
template <Copy kCopy>
SLUICE_FOLD uint64_t fold(uint64_t seed, const uint8_t* from, uint8_t* to, size_t bytes) {
  const __m256i by =
      _mm256_set_epi64x(static_cast<int64_t>(kByStride.high), static_cast<int64_t>(kByStride.low),
                        static_cast<int64_t>(kByStride.high), static_cast<int64_t>(kByStride.low));
  __m256i a = load<kCopy>(from, to, 0);
  __m256i b = load<kCopy>(from, to, 32);
  __m256i c = load<kCopy>(from, to, 64);
  __m256i d = load<kCopy>(from, to, 96);
  a = _mm256_xor_si256(a, _mm256_set_epi64x(0, 0, 0, static_cast<int64_t>(~seed)));
  size_t at = kStride;
  for (; at + kStride <= bytes; at += kStride) {
    a = folded(a, by, load<kCopy>(from, to, at));
    b = folded(b, by, load<kCopy>(from, to, at + 32));
    c = folded(c, by, load<kCopy>(from, to, at + 64));
    d = folded(d, by, load<kCopy>(from, to, at + 96));
  }
  __m128i last = _mm256_extracti128_si256(d, 1);
  last = _mm_xor_si128(last, moved(_mm256_castsi256_si128(a), kToLast[0]));
  last = _mm_xor_si128(last, moved(_mm256_extracti128_si256(a, 1), kToLast[1]));
  last = _mm_xor_si128(last, moved(_mm256_castsi256_si128(b), kToLast[2]));
  last = _mm_xor_si128(last, moved(_mm256_extracti128_si256(b, 1), kToLast[3]));
  last = _mm_xor_si128(last, moved(_mm256_castsi256_si128(c), kToLast[4]));
  last = _mm_xor_si128(last, moved(_mm256_extracti128_si256(c, 1), kToLast[5]));
  last = _mm_xor_si128(last, moved(_mm256_castsi256_si128(d), kToLast[6]));
  uint8_t rest[16 + kStride];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), last);
  if constexpr (kCopy != Copy::kNone) std::memcpy(to + at, from + at, bytes - at);
  const uint64_t sum = crc64_ecma_refl(~0ULL, rest, 16);                   // all ones: a state of zero
  const uint8_t* const tail = kCopy == Copy::kNone ? from + at : to + at;  // each byte of `from` is read once
  return at == bytes ? sum : crc64_ecma_refl(sum, tail, bytes - at);
}

}  // namespace

const bool kFoldWins = __builtin_cpu_supports("vpclmulqdq") != 0 && __builtin_cpu_supports("avx2") != 0 &&
                       __builtin_cpu_supports("avx512f") == 0;

SLUICE_FOLD_ENTRY uint64_t fold_ecma(uint64_t seed, const void* data, size_t bytes) {
  return fold<Copy::kNone>(seed, static_cast<const uint8_t*>(data), nullptr, bytes);
}

SLUICE_FOLD_ENTRY uint64_t fold_ecma_copying(uint64_t seed, const void* from, void* to, size_t bytes) {
  return fold<Copy::kOrdinary>(seed, static_cast<const uint8_t*>(from), static_cast<uint8_t*>(to), bytes);
}

SLUICE_FOLD_ENTRY uint64_t fold_ecma_streaming(uint64_t seed, const void* from, void* to, size_t bytes) {
  return fold<Copy::kPastCaches>(seed, static_cast<const uint8_t*>(from), static_cast<uint8_t*>(to), bytes);
}

void stream(const void* from, void* to, size_t bytes) {
  const auto* p = static_cast<const uint8_t*>(from);
  auto* q = static_cast<uint8_t*>(to);
  size_t at = 0;
  for (; at + 16 <= bytes; at += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(q + at),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + at)));
  }
  std::memcpy(q + at, p + at, bytes - at);
}

}  // namespace sluice::crc
