// Sums of bytes that are zeros, and need not be there: holes of files.
//
// Pure, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "dataplane/crc/adler32.h"
#include "dataplane/crc/crc.h"

namespace sluice::crc {

// The sum when so many zeros follow the bytes whose sum is `crc`: at once.
inline uint64_t with_zeros(CrcKind kind, uint64_t crc, uint64_t bytes) {
  return shift(kind, crc, bytes) ^ of_zeros(kind, bytes);
}

}  // namespace sluice::crc

namespace sluice::adler32 {

inline uint32_t with_zeros(uint32_t adler, uint64_t bytes) { return combine(adler, of_zeros(bytes), bytes); }

}  // namespace sluice::adler32

namespace sluice::zeros {

// For a hash, which has to see each of them: add(data, bytes) for one piece after the other.
template <typename Add>
void in_pieces(uint64_t bytes, Add add) {
  static constexpr std::array<uint8_t, 64U << 10> kZeros{};
  for (uint64_t left = bytes; left != 0;) {
    const uint64_t some = std::min<uint64_t>(left, kZeros.size());
    add(kZeros.data(), some);
    left -= some;
  }
}

}  // namespace sluice::zeros
