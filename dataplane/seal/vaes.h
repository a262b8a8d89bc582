// AES-GCM by VAES and VPCLMULQDQ on registers of 256 bits, for CPUs that have both and no AVX-512, as Zen 3;
// internal to seal/ (docs/decisions/0031-a-cipher-of-our-own.md says why it is not a library's).
//
// Pure functions, hot but vaes_set(). Neither time nor addresses depend on keys or bytes: they use the CPU's
// instructions for AES and carry-less multiplication, and no table. Only for CPUs of which vaes_runs_here()
// is true.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "dataplane/seal/gcm.h"

namespace sluice::seal {

struct VaesKey {
  using Block = std::array<uint8_t, 16>;
  alignas(32) std::array<Block, 15> rounds;  // 11 of them for AES-128
  // Of the hash key, from the eighth power to the first, as ghash.h has them; and the sum of each one's
  // halves.
  alignas(32) std::array<Block, 8> powers;
  alignas(32) std::array<Block, 8> sums;
};

bool vaes_runs_here();
// `bytes` has key_bytes(cipher).
void vaes_set(VaesKey* key, Cipher cipher, const uint8_t* bytes);
// As GcmKey's. vaes_open() gives the tag that is right, and compares nothing.
void vaes_seal(const VaesKey& key, Cipher cipher, const uint8_t* iv, std::span<const uint8_t> aad,
               std::span<const uint8_t> in, uint8_t* out, uint8_t* tag);
void vaes_open(const VaesKey& key, Cipher cipher, const uint8_t* iv, std::span<const uint8_t> aad,
               std::span<const uint8_t> in, uint8_t* out, uint8_t* tag);

}  // namespace sluice::seal
