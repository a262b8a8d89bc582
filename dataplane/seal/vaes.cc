// Eight blocks at a time, in four registers. While they go through the rounds of AES, the eight before them
// are hashed: both use the same few execution units, and neither alone keeps them busy.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/seal/vaes.h"

#include <cpuid.h>

#include <algorithm>
#include <cstring>

#include "dataplane/seal/ghash.h"

namespace sluice::seal {
namespace {

constexpr size_t kBlockBytes = 16;
constexpr size_t kPairBytes = 32;
constexpr size_t kGroupBytes = 128;

struct Group {
  __m256i a, b, c, d;
};

SLUICE_VAES Group load_group(const uint8_t* at) {
  return {load_pair(at), load_pair(at + kPairBytes), load_pair(at + 2 * kPairBytes),
          load_pair(at + 3 * kPairBytes)};
}
SLUICE_VAES void store_group(uint8_t* at, const Group& g) {
  store_pair(at, g.a);
  store_pair(at + kPairBytes, g.b);
  store_pair(at + 2 * kPairBytes, g.c);
  store_pair(at + 3 * kPairBytes, g.d);
}
SLUICE_VAES Group turned(const Group& g) { return {turned(g.a), turned(g.b), turned(g.c), turned(g.d)}; }

SLUICE_VAES __m256i round_key(const VaesKey& key, int round) {
  return _mm256_broadcastsi128_si256(load_block(&key.rounds[static_cast<size_t>(round)]));
}

SLUICE_VAES void one_round(Group* g, __m256i by) {
  g->a = _mm256_aesenc_epi128(g->a, by);
  g->b = _mm256_aesenc_epi128(g->b, by);
  g->c = _mm256_aesenc_epi128(g->c, by);
  g->d = _mm256_aesenc_epi128(g->d, by);
}

template <int kRounds>
SLUICE_VAES __m128i enciphered(const VaesKey& key, __m128i block) {
  block = _mm_xor_si128(block, load_block(&key.rounds[0]));
  for (size_t round = 1; round < kRounds; ++round) {
    block = _mm_aesenc_si128(block, load_block(&key.rounds[round]));
  }
  return _mm_aesenclast_si128(block, load_block(&key.rounds[kRounds]));
}

// Numbers blocks; the number stands in the last four bytes, which are the first once they are turned.
struct Counter {
  __m256i next;

  SLUICE_VAES explicit Counter(__m128i first) {
    const __m256i both = _mm256_broadcastsi128_si256(turned(first));
    next = _mm256_add_epi32(both, _mm256_set_epi32(0, 0, 0, 2, 0, 0, 0, 1));
  }
  SLUICE_VAES __m256i take(__m256i key) {
    const __m256i blocks = _mm256_xor_si256(turned(next), key);
    next = _mm256_add_epi32(next, _mm256_set_epi32(0, 0, 0, 2, 0, 0, 0, 2));
    return blocks;
  }
};

// The next eight blocks of the counter through all rounds but the last.
template <int kRounds>
SLUICE_VAES Group begun(const VaesKey& key, Counter* counter) {
  const __m256i first = round_key(key, 0);
  Group g{counter->take(first), counter->take(first), counter->take(first), counter->take(first)};
  for (int round = 1; round < kRounds; ++round) one_round(&g, round_key(key, round));
  return g;
}

// The same, and `hashed` after what `*hash` has. The rounds stand between what waits for one another there.
template <int kRounds>
SLUICE_VAES Group begun(const VaesKey& key, Counter* counter, const Group& hashed, __m128i* hash) {
  const __m256i first = round_key(key, 0);
  Group g{counter->take(first), counter->take(first), counter->take(first), counter->take(first)};
  Product p = no_product();
  one_round(&g, round_key(key, 1));
  add_product(&p, _mm256_xor_si256(hashed.a, _mm256_zextsi128_si256(*hash)), &key.powers[0], &key.sums[0]);
  one_round(&g, round_key(key, 2));
  add_product(&p, hashed.b, &key.powers[2], &key.sums[2]);
  one_round(&g, round_key(key, 3));
  add_product(&p, hashed.c, &key.powers[4], &key.sums[4]);
  one_round(&g, round_key(key, 4));
  add_product(&p, hashed.d, &key.powers[6], &key.sums[6]);
  one_round(&g, round_key(key, 5));
  const __m256i middle = without_low(p);
  one_round(&g, round_key(key, 6));
  one_round(&g, round_key(key, 7));
  *hash = without_middle(p, middle);
  for (int round = 8; round < kRounds; ++round) one_round(&g, round_key(key, round));
  return g;
}

SLUICE_VAES __m128i hashed_group(const VaesKey& key, const Group& g, __m128i hash) {
  Product p = no_product();
  add_product(&p, _mm256_xor_si256(g.a, _mm256_zextsi128_si256(hash)), &key.powers[0], &key.sums[0]);
  add_product(&p, g.b, &key.powers[2], &key.sums[2]);
  add_product(&p, g.c, &key.powers[4], &key.sums[4]);
  add_product(&p, g.d, &key.powers[6], &key.sums[6]);
  return reduced(p);
}

// Any number of bytes, the last block filled up with zeros.
SLUICE_VAES __m128i hashed_bytes(const VaesKey& key, const uint8_t* from, size_t bytes, __m128i hash) {
  for (size_t at = 0; at < bytes; at += kGroupBytes) {
    const size_t part = std::min(bytes - at, kGroupBytes);
    const size_t blocks = (part + kBlockBytes - 1) / kBlockBytes;
    // Zeros in front of the hash change nothing, so that the last block always has the first power.
    alignas(kPairBytes) std::array<uint8_t, kGroupBytes + kBlockBytes> padded{};
    uint8_t* const begin = &padded[kGroupBytes - blocks * kBlockBytes];
    std::memcpy(begin, from + at, part);
    store_block(begin, _mm_xor_si128(load_block(begin), turned(hash)));
    hash = hashed_group(key, turned(load_group(padded.data())), _mm_setzero_si128());
  }
  return hash;
}

// The last round is added together with the text: aesenclast() does not care which.
template <int kRounds>
SLUICE_VAES Group finished(const VaesKey& key, const Group& g, const Group& text) {
  const __m256i last = round_key(key, kRounds);
  return {_mm256_aesenclast_epi128(g.a, _mm256_xor_si256(last, text.a)),
          _mm256_aesenclast_epi128(g.b, _mm256_xor_si256(last, text.b)),
          _mm256_aesenclast_epi128(g.c, _mm256_xor_si256(last, text.c)),
          _mm256_aesenclast_epi128(g.d, _mm256_xor_si256(last, text.d))};
}

template <int kRounds, bool kSealing>
SLUICE_VAES_ENTRY void crypt(const VaesKey& key, const uint8_t* iv, std::span<const uint8_t> aad,
                             std::span<const uint8_t> in, uint8_t* out, uint8_t* tag) {
  alignas(kBlockBytes) uint8_t first[kBlockBytes] = {};
  std::memcpy(first, iv, kIvBytes);
  first[kBlockBytes - 1] = 1;
  const __m128i mask = enciphered<kRounds>(key, load_block(first));
  Counter counter(load_block(first));
  __m128i hash = hashed_bytes(key, aad.data(), aad.size(), _mm_setzero_si128());
  size_t at = 0;
  if (in.size() >= kGroupBytes) {
    Group g = begun<kRounds>(key, &counter);
    for (;;) {
      const Group text = load_group(&in[at]);
      g = finished<kRounds>(key, g, text);
      store_group(out + at, g);
      const Group to_hash = turned(kSealing ? g : text);
      at += kGroupBytes;
      if (in.size() - at < kGroupBytes) {
        hash = hashed_group(key, to_hash, hash);
        break;
      }
      g = begun<kRounds>(key, &counter, to_hash, &hash);
    }
  }
  if (const size_t left = in.size() - at; left > 0) {
    if constexpr (!kSealing) hash = hashed_bytes(key, &in[at], left, hash);
    alignas(kPairBytes) std::array<uint8_t, kGroupBytes> end{};
    std::memcpy(end.data(), &in[at], left);
    store_group(end.data(), finished<kRounds>(key, begun<kRounds>(key, &counter), load_group(end.data())));
    std::memcpy(out + at, end.data(), left);
    if constexpr (kSealing) hash = hashed_bytes(key, end.data(), left, hash);
  }
  const __m128i bits =
      _mm_set_epi64x(static_cast<int64_t>(8 * aad.size()), static_cast<int64_t>(8 * in.size()));
  hash = product(_mm_xor_si128(hash, bits), load_block(&key.powers.back()));
  store_block(tag, _mm_xor_si128(turned(hash), mask));
}

// FIPS 197, 5.2. What aesenclast() does to equal columns is to substitute their bytes.
SLUICE_VAES __m128i last_word(__m128i key) {
  return _mm_aesenclast_si128(_mm_shuffle_epi32(key, 0xFF), _mm_setzero_si128());
}
SLUICE_VAES __m128i rotated(__m128i words, int constant) {
  const __m128i turned_words = _mm_or_si128(_mm_srli_epi32(words, 8), _mm_slli_epi32(words, 24));
  return _mm_xor_si128(turned_words, _mm_set1_epi32(constant));
}
SLUICE_VAES __m128i next_words(__m128i key, __m128i add) {
  key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
  key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
  return _mm_xor_si128(key, add);
}
int next_constant(int constant) { return (constant << 1) ^ ((constant & 0x80) != 0 ? 0x11B : 0); }

SLUICE_VAES void expand_128(VaesKey* key, const uint8_t* bytes) {
  __m128i words = load_block(bytes);
  store_block(&key->rounds[0], words);
  for (int round = 1, constant = 1; round <= 10; ++round, constant = next_constant(constant)) {
    words = next_words(words, rotated(last_word(words), constant));
    store_block(&key->rounds[static_cast<size_t>(round)], words);
  }
}

SLUICE_VAES void expand_256(VaesKey* key, const uint8_t* bytes) {
  __m128i even = load_block(bytes), odd = load_block(bytes + kBlockBytes);
  store_block(&key->rounds[0], even);
  store_block(&key->rounds[1], odd);
  for (size_t round = 2; round <= 14; round += 2) {
    even = next_words(even, rotated(last_word(odd), 1 << (round / 2 - 1)));
    store_block(&key->rounds[round], even);
    if (round == 14) break;
    odd = next_words(odd, last_word(even));
    store_block(&key->rounds[round + 1], odd);
  }
}

}  // namespace

bool vaes_runs_here() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("aes") ||
      !__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("vpclmulqdq")) {
    return false;
  }
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c & bit_VAES) != 0;
}

SLUICE_VAES_ENTRY void vaes_set(VaesKey* key, Cipher cipher, const uint8_t* bytes) {
  __m128i zero = _mm_setzero_si128();
  if (cipher == Cipher::kAes128Gcm) {
    expand_128(key, bytes);
    zero = enciphered<10>(*key, zero);
  } else {
    expand_256(key, bytes);
    zero = enciphered<14>(*key, zero);
  }
  const __m128i hash_key = times_x(turned(zero));
  __m128i power = hash_key;
  for (size_t i = key->powers.size(); i-- > 0; power = product(power, hash_key)) {
    store_block(&key->powers[i], power);
    store_block(&key->sums[i], sum_of_halves(power));
  }
}

void vaes_seal(const VaesKey& key, Cipher cipher, const uint8_t* iv, std::span<const uint8_t> aad,
               std::span<const uint8_t> in, uint8_t* out, uint8_t* tag) {
  (cipher == Cipher::kAes128Gcm ? crypt<10, true> : crypt<14, true>)(key, iv, aad, in, out, tag);
}

void vaes_open(const VaesKey& key, Cipher cipher, const uint8_t* iv, std::span<const uint8_t> aad,
               std::span<const uint8_t> in, uint8_t* out, uint8_t* tag) {
  (cipher == Cipher::kAes128Gcm ? crypt<10, false> : crypt<14, false>)(key, iv, aad, in, out, tag);
}

}  // namespace sluice::seal
