// Waits between tries: each twice the one before, up to a limit.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace sluice::unattended {

inline constexpr int64_t kOneSecondNs = 1'000'000'000;
inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

struct Waits {
  int64_t first_ns = 5 * kOneSecondNs;
  int64_t most_ns = 600 * kOneSecondNs;

  // After `failures` in a row, at least one.
  int64_t after_ns(uint32_t failures) const {
    int64_t wait_ns = std::min(first_ns, most_ns);
    for (uint32_t i = 1; i < failures && wait_ns < most_ns; ++i) wait_ns *= 2;
    return std::min(wait_ns, most_ns);
  }
};

}  // namespace sluice::unattended
