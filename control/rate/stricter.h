// Two limits of a rate may hold at once: the lower one counts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::rate {

// 0: there is no such limit.
constexpr uint64_t stricter_bps(uint64_t a_bps, uint64_t b_bps) {
  return a_bps == 0 || b_bps == 0 ? std::max(a_bps, b_bps) : std::min(a_bps, b_bps);
}

}  // namespace sluice::rate
