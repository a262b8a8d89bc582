// SPDX-License-Identifier: Apache-2.0
#include "dataplane/crc/adler32.h"

#include <isa-l/igzip_lib.h>

namespace sluice::adler32 {
namespace {

// A sum has two parts: a = 1 + all bytes, and b = the sum of a after each byte; both modulo a prime.
constexpr uint64_t kModulus = 65521;

uint32_t packed(uint64_t a, uint64_t b) { return static_cast<uint32_t>((b % kModulus) << 16 | a % kModulus); }

}  // namespace

uint32_t compute(uint32_t seed, const void* data, size_t bytes) {
  return isal_adler32(seed, static_cast<const unsigned char*>(data), bytes);
}

uint32_t combine(uint32_t first, uint32_t second, uint64_t second_bytes) {
  const uint64_t a = first & 0xFFFF;
  // The second piece began with a = 1; in truth it began with that of the first, at each of its bytes.
  const uint64_t ahead = a + kModulus - 1;
  return packed((second & 0xFFFF) + ahead, (first >> 16) + (second >> 16) + second_bytes % kModulus * ahead);
}

uint32_t of_zeros(uint64_t bytes) { return packed(1, bytes % kModulus); }

}  // namespace sluice::adler32
