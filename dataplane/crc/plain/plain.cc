// SPDX-License-Identifier: Apache-2.0
#include "dataplane/crc/plain/plain.h"

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace sluice::crc::plain {
namespace {

constexpr size_t kStep = 8;

// [k][b]: what byte b becomes with k more bytes behind it.
template <typename Word>
using Tables = std::array<std::array<Word, 256>, kStep>;

template <typename Word>
constexpr Tables<Word> tables_of(Word polynomial) {
  Tables<Word> tables{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    Word value = byte;
    for (int bit = 0; bit < 8; ++bit)
      value = static_cast<Word>(value >> 1) ^ ((value & 1) != 0 ? polynomial : Word{0});
    tables[0][byte] = value;
  }
  for (size_t k = 1; k < kStep; ++k) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      const Word before = tables[k - 1][byte];
      tables[k][byte] = static_cast<Word>(before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr Tables<uint32_t> kCrc32c = tables_of<uint32_t>(0x82F63B78);
constexpr Tables<uint64_t> kCrc64 = tables_of<uint64_t>(0xC96C5795D7870F42);

template <typename Word>
Word sum(const Tables<Word>& tables, Word state, const uint8_t* data, size_t bytes) {
  for (; bytes >= kStep; bytes -= kStep, data += kStep) {
    uint64_t eight = 0;
    std::memcpy(&eight, data, kStep);
    eight ^= state;
    state = 0;
    for (size_t i = 0; i < kStep; ++i) state ^= tables[kStep - 1 - i][(eight >> (8 * i)) & 0xFF];
  }
  for (; bytes > 0; --bytes, ++data)
    state = static_cast<Word>(state >> 8) ^ tables[0][(state ^ *data) & 0xFF];
  return state;
}

constexpr size_t kBlock = 16;
constexpr size_t kBlocksMax = 340;  // so many sums fit in 32 bits

struct BlockSums {
  uint64_t bytes = 0;     // all
  uint64_t before = 0;    // of each block, all that stands before it
  uint64_t weighted = 0;  // of each block, 16 times its first byte, 15 times the next, and so on
};

uint64_t total(__m128i words) {
  alignas(16) std::array<uint32_t, 4> four{};
  _mm_store_si128(reinterpret_cast<__m128i*>(four.data()), words);
  return uint64_t{four[0]} + four[1] + four[2] + four[3];
}

BlockSums block_sums(const uint8_t* data, size_t blocks) {
  const __m128i zero = _mm_setzero_si128();
  const __m128i first_weights = _mm_set_epi16(9, 10, 11, 12, 13, 14, 15, 16);
  const __m128i last_weights = _mm_set_epi16(1, 2, 3, 4, 5, 6, 7, 8);
  __m128i bytes = zero;
  __m128i before = zero;
  __m128i weighted = zero;
  for (size_t i = 0; i < blocks; ++i) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + i * kBlock));
    before = _mm_add_epi32(before, bytes);
    bytes = _mm_add_epi32(bytes, _mm_sad_epu8(block, zero));
    weighted = _mm_add_epi32(weighted, _mm_madd_epi16(_mm_unpacklo_epi8(block, zero), first_weights));
    weighted = _mm_add_epi32(weighted, _mm_madd_epi16(_mm_unpackhi_epi8(block, zero), last_weights));
  }
  return {total(bytes), total(before), total(weighted)};
}

}  // namespace

uint32_t crc32c(uint32_t state, const uint8_t* data, size_t bytes) {
  return sum(kCrc32c, state, data, bytes);
}

uint64_t crc64_ecma(uint64_t state, const uint8_t* data, size_t bytes) {
  return sum(kCrc64, state, data, bytes);
}

// A sum has two parts: a = 1 + all bytes, and b = the sum of a after each byte; both modulo a prime.
uint32_t adler32(uint32_t seed, const uint8_t* data, size_t bytes) {
  constexpr uint64_t kModulus = 65521;
  uint64_t a = seed & 0xFFFF;
  uint64_t b = seed >> 16;
  while (bytes > 0) {
    const size_t blocks = std::min(bytes / kBlock, kBlocksMax);
    const BlockSums sums = block_sums(data, blocks);
    b += kBlock * (blocks * a + sums.before) + sums.weighted;
    a += sums.bytes;
    data += blocks * kBlock;
    bytes -= blocks * kBlock;
    for (; bytes > 0 && bytes < kBlock; --bytes, ++data) {
      a += *data;
      b += a;
    }
    a %= kModulus;
    b %= kModulus;
  }
  return static_cast<uint32_t>(b << 16 | a);
}

}  // namespace sluice::crc::plain
