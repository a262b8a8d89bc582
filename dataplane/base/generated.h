// The bytes of generated sources (`memory:SIZE`): each extent is the beginning of one fixed pseudo-random
// sequence (xorshift64), which the dataplane sends and control sums up again after a restart.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

namespace sluice {

inline void fill_generated(std::span<uint8_t> extent) {
  uint64_t x = 0x9E3779B97F4A7C15;
  for (size_t i = 0; i < extent.size(); i += 8) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    std::memcpy(extent.data() + i, &x, std::min<size_t>(8, extent.size() - i));
  }
}

}  // namespace sluice
