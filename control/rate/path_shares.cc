// SPDX-License-Identifier: Apache-2.0
#include "control/rate/path_shares.h"

#include <algorithm>
#include <numeric>

namespace sluice::rate {
namespace {

// What each has reserved and may have. If all of that is more than can be reserved, each gives up the same
// part of it.
std::vector<uint64_t> reservations(uint64_t total_bps, const std::vector<Demand>& demands) {
  std::vector<uint64_t> reserved;
  double sum_bps = 0;
  bool others = false;
  for (const Demand& demand : demands) {
    reserved.push_back(std::min(demand.reserved_bps, demand.most_bps));
    sum_bps += static_cast<double>(reserved.back());
    others |= demand.reserved_bps == 0;
  }
  const uint64_t free_bps = total_bps - (others ? total_bps / kUnreservedShare : 0);
  const double part = static_cast<double>(free_bps) / std::max(sum_bps, 1.0);
  if (part >= 1) return reserved;
  for (uint64_t& each : reserved) each = static_cast<uint64_t>(static_cast<double>(each) * part);
  return reserved;
}

}  // namespace

std::vector<uint64_t> path_shares(uint64_t total_bps, const std::vector<Demand>& demands) {
  const std::vector<uint64_t> reserved = reservations(total_bps, demands);
  std::vector<uint64_t> shares(demands.size());
  std::vector<size_t> open(demands.size());
  std::iota(open.begin(), open.end(), size_t{0});
  std::sort(open.begin(), open.end(),
            [&](size_t a, size_t b) { return demands[a].most_bps < demands[b].most_bps; });
  uint64_t left_bps = total_bps;
  // Equal parts; whoever gets less than it has reserved gets that instead, which leaves less for the others,
  // so it is looked again. Each round settles one at least.
  while (!open.empty()) {
    uint64_t round_bps = left_bps;
    for (size_t i = 0; i < open.size(); ++i) {
      shares[open[i]] = std::min(demands[open[i]].most_bps, round_bps / (open.size() - i));
      round_bps -= shares[open[i]];
    }
    const size_t before = open.size();
    std::erase_if(open, [&](size_t each) {
      if (shares[each] >= reserved[each]) return false;
      shares[each] = std::min(reserved[each], left_bps);
      left_bps -= shares[each];
      return true;
    });
    if (open.size() == before) break;
  }
  return shares;
}

}  // namespace sluice::rate
