// SPDX-License-Identifier: Apache-2.0
#include "control/destination/destination_leg.h"

#include <algorithm>
#include <utility>

namespace sluice::transfer {

void DestinationLeg::begin(const DataEnd::Way& way) {
  open(way.stream);
  detectors_.assign(way.lanes, {});
  arrived_bytes_ = 0;
}

void DestinationLeg::adopt(const DataEnd::Way& way, std::span<const board::FlowSlot* const> lanes) {
  begin(way);
  detectors_.clear();
  for (const board::FlowSlot* lane : lanes) {
    detectors_.push_back(recovery::LossDetector(lane->control.settled_below.load(std::memory_order_acquire)));
  }
}

void DestinationLeg::settle_losses(const Tick& event, uint64_t now_ns, Effects& out) {
  const size_t lanes = std::min(detectors_.size(), event.lanes.size());
  for (uint32_t i = 0; i < lanes; ++i) {
    const LaneId lane(i);
    const uint64_t before = detectors_[lane].settled_below();
    std::vector<board::Gap> gaps = recovery::find_losses(&detectors_[lane], *event.lanes[i], now_ns);
    const uint64_t settled_below = detectors_[lane].settled_below();
    if (gaps.empty() && settled_below == before) continue;
    out.add(SettleLane{.leg = id(), .lane = lane, .gaps = std::move(gaps), .settled_below = settled_below});
  }
}

void DestinationLeg::limit_source(uint64_t limit_bps, Effects& out) {
  if (std::exchange(limit_bps_, limit_bps) == limit_bps) return;
  limit_was_set_ = true;
  say_limit(out);
}

}  // namespace sluice::transfer
