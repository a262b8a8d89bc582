// SPDX-License-Identifier: Apache-2.0
#include "control/rate/lane_shares.h"

#include <algorithm>

namespace sluice::rate {

Indexed<LaneId, uint64_t> lane_shares(uint64_t rate_bps, const Indexed<LaneId, bool>& busy) {
  const uint64_t lanes = busy.size();
  const auto with_work = static_cast<uint64_t>(std::count(busy.begin(), busy.end(), true));
  if (lanes == 0) return {};
  if (with_work == 0) return Indexed<LaneId, uint64_t>(lanes, rate_bps / lanes);
  const uint64_t idle_bps = rate_bps / kIdleLaneShare;
  const uint64_t busy_bps = (rate_bps - idle_bps * (lanes - with_work)) / with_work;
  Indexed<LaneId, uint64_t> shares;
  for (const bool works : busy) shares.push_back(works ? busy_bps : idle_bps);
  return shares;
}

}  // namespace sluice::rate
