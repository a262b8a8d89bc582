// GHASH (NIST SP 800-38D, 6.4): a polynomial over the blocks, modulo x^128 + x^7 + x^2 + x + 1, at the point
// that is the hash key. Internal to seal/, for vaes.cc.
//
// The standard writes a block's bits in the reverse order. With the bytes turned around, the CPU's product of
// two such blocks stands one bit too low; the hash key is multiplied by x once and for all, and it fits
// (Gueron and Kounavis, "Intel Carry-Less Multiplication Instruction and its Usage for Computing the GCM
// Mode"). Eight blocks are multiplied by eight powers of the key, their products added, and reduced once. A
// product takes three multiplications of 64 bits (Karatsuba), for which each power has the sum of its halves
// beside it. The reduction takes two, each of which brings the lowest 64 bits up by 128.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <cstdint>

#define SLUICE_VAES_ENTRY __attribute__((target("avx2,aes,vaes,pclmul,vpclmulqdq")))
#define SLUICE_VAES __attribute__((target("avx2,aes,vaes,pclmul,vpclmulqdq"), always_inline)) inline

namespace sluice::seal {
namespace {

// Of two pairs of blocks, side by side.
struct Product {
  __m256i low, middle, high;
};

SLUICE_VAES __m128i load_block(const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); }
SLUICE_VAES void store_block(void* at, __m128i block) { _mm_storeu_si128(static_cast<__m128i*>(at), block); }
SLUICE_VAES __m256i load_pair(const void* at) { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }
SLUICE_VAES void store_pair(void* at, __m256i pair) { _mm256_storeu_si256(static_cast<__m256i*>(at), pair); }

SLUICE_VAES __m128i turned(__m128i block) {
  return _mm_shuffle_epi8(block, _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
SLUICE_VAES __m256i turned(__m256i pair) {
  const __m128i order = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm256_shuffle_epi8(pair, _mm256_broadcastsi128_si256(order));
}

constexpr int kHalvesSwapped = 0x4E;
SLUICE_VAES __m128i sum_of_halves(__m128i block) {
  return _mm_xor_si128(block, _mm_shuffle_epi32(block, kHalvesSwapped));
}

SLUICE_VAES Product no_product() {
  return {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
}

// `power` and `sum`: of 32 bytes each.
SLUICE_VAES void add_product(Product* p, __m256i pair, const void* power, const void* sum) {
  const __m256i by = load_pair(power);
  const __m256i folded = _mm256_xor_si256(pair, _mm256_shuffle_epi32(pair, kHalvesSwapped));
  p->low = _mm256_xor_si256(p->low, _mm256_clmulepi64_epi128(pair, by, 0x00));
  p->high = _mm256_xor_si256(p->high, _mm256_clmulepi64_epi128(pair, by, 0x11));
  p->middle = _mm256_xor_si256(p->middle, _mm256_clmulepi64_epi128(folded, load_pair(sum), 0x00));
}

SLUICE_VAES __m256i brought_up(__m256i part) {
  const auto polynomial = static_cast<int64_t>(0xC200000000000000);
  const __m256i by = _mm256_set_epi64x(polynomial, 1, polynomial, 1);
  return _mm256_xor_si256(_mm256_shuffle_epi32(part, kHalvesSwapped),
                          _mm256_clmulepi64_epi128(by, part, 0x01));
}
// The reduction in two steps, between which others have time; then the two blocks are added.
SLUICE_VAES __m256i without_low(const Product& p) {
  return _mm256_xor_si256(_mm256_xor_si256(p.middle, _mm256_xor_si256(p.low, p.high)), brought_up(p.low));
}
SLUICE_VAES __m128i without_middle(const Product& p, __m256i middle) {
  const __m256i both = _mm256_xor_si256(p.high, brought_up(middle));
  return _mm_xor_si128(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
}
SLUICE_VAES __m128i reduced(const Product& p) { return without_middle(p, without_low(p)); }

SLUICE_VAES __m128i product(__m128i block, __m128i by) {
  Product p = no_product();
  const __m256i power = _mm256_zextsi128_si256(by), sum = _mm256_zextsi128_si256(sum_of_halves(by));
  add_product(&p, _mm256_zextsi128_si256(block), &power, &sum);
  return reduced(p);
}

// The hash key as the standard has it, times x.
SLUICE_VAES __m128i times_x(__m128i block) {
  const auto polynomial = static_cast<int64_t>(0xC200000000000001);  // and the carry between the halves
  const __m128i carries = _mm_srai_epi32(_mm_shuffle_epi32(block, 0xD3), 31);
  return _mm_xor_si128(_mm_add_epi64(block, block), _mm_and_si128(carries, _mm_set_epi64x(polynomial, 1)));
}

}  // namespace
}  // namespace sluice::seal
