// The flows of one leg of a transfer on the board of now, by lane: what performs a transfer's effects speaks
// of slots.
//
// Pure. The daemon's performer and the simulator's both use it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "control/board/admission.h"
#include "control/recovery/receiver.h"

namespace sluice::board {

class FlowSet {
 public:
  void granted(const FlowsGranted& granted) {
    session_ = granted.session;
    for (const FlowGrant& grant : granted.flows) lanes_.push_back(grant);
  }
  // Slots behind the first `lanes`, which are to be released.
  std::vector<FlowSlotId> shrink(uint32_t lanes) {
    std::vector<FlowSlotId> released;
    while (lanes_.size() > lanes) {
      released.push_back(lanes_.back().slot);
      lanes_.pop_back();
    }
    return released;
  }
  void clear() {
    lanes_.clear();
    session_.reset();
  }

  std::optional<LaneId> lane_of(FlowSlotId slot) const {
    for (uint32_t i = 0; i < lanes_.size(); ++i) {
      if (lanes_[LaneId(i)].slot == slot) return LaneId(i);
    }
    return std::nullopt;
  }
  bool contains(LaneId lane) const { return lanes_.contains(lane); }
  FlowSlotId slot(LaneId lane) const { return lanes_[lane].slot; }
  size_t size() const { return lanes_.size(); }
  std::optional<SessionSlotId> session() const { return session_; }
  std::vector<FlowGrant> grants() const { return {lanes_.begin(), lanes_.end()}; }
  // For the worker of the lane.
  Command command(const recovery::LaneCommand& command) const {
    return {.kind = command.kind,
            .flow = slot(command.flow.lane).value(),
            .object = command.object.value(),
            .tag = command.tag,
            .offset = command.range.offset,
            .length = command.range.length};
  }

 private:
  std::optional<SessionSlotId> session_;
  Indexed<LaneId, FlowGrant> lanes_;
};

}  // namespace sluice::board
