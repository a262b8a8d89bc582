// Sums of one extent that digests of a whole object are joined of, besides the session's own CRC: which a
// dataplane has, which of an object are wanted, and their values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::board {

inline constexpr uint32_t kSumBlake3 = 1U << 0;
inline constexpr uint32_t kSumCrc64 = 1U << 1;
inline constexpr uint32_t kSumCrc32c = 1U << 2;
inline constexpr uint32_t kSumAdler32 = 1U << 3;
inline constexpr uint32_t kSumsKnown = kSumBlake3 | kSumCrc64 | kSumCrc32c | kSumAdler32;

// Those that are not wanted are 0.
struct ExtentSums {
  // The chaining value of its subtree, of an extent that is the whole object: the digest.
  uint8_t blake3[32];
  uint64_t crc64;
  uint32_t crc32c;
  uint32_t adler32;
  bool operator==(const ExtentSums&) const = default;
};

}  // namespace sluice::board
