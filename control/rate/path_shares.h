// How the sessions that share a path divide what it carries. Pure.
//
// All alike, but for those that may not have as much, and those that need more to be in time: what these have
// reserved they get first. Whoever has reserved nothing keeps a tenth of the path among them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::rate {

inline constexpr uint64_t kUnreservedShare = 10;  // 1/10 of the path cannot be reserved away from the others

// What one session can use of a path.
struct Demand {
  uint64_t most_bps = 0;      // it may not, or cannot, have more
  uint64_t reserved_bps = 0;  // it needs so much; 0: it takes what there is
};

// Bit/s of each; together at most `total_bps`.
std::vector<uint64_t> path_shares(uint64_t total_bps, const std::vector<Demand>& demands);

}  // namespace sluice::rate
