// A control's flows in its node's dataplane: opened, found again after a restart, closed; commands out,
// events in.
//
// Pure. Flows are counted by lane: the order of their slots.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "control/recovery/lane_command.h"
#include "tools/sim/host.h"

namespace sluice::sim {

class Lanes {
 public:
  struct Lane {
    uint32_t slot = 0;
    uint32_t worker = 0;
    uint64_t flow_id = 0;
    bool open = false;
    bool closed = false;
  };

  Lanes(Host& host, board::Direction direction) : host_(host), direction_(direction) {}

  // False: the dataplane is gone, or another one; then the lanes are gone as well.
  bool attached() const { return host_.dataplane != nullptr && host_.dataplane->generation() == generation_; }
  void attach();  // to the dataplane of now; finds flows that another control left there

  // Never in the slots used last: an answer to an earlier control's kCloseFlow may still come.
  uint32_t next_slots() const { return (slots_ + kLanesMax) % (3 * kLanesMax); }
  void open(const std::vector<uint64_t>& flow_ids);
  bool all_open() const;
  bool any_closed() const;  // also by a command that an earlier control left
  void close();
  bool all_closed();  // then forgets them
  void drop() {
    lanes_.clear();
    backlog_.clear();
  }

  // Events of every worker, in order; then commands that wait. A reader of old boards may have left events.
  void poll(const std::function<void(const board::Event&, uint32_t lane)>& take);
  void command(board::CommandKind kind, uint32_t lane, uint32_t object, recovery::Range range, uint32_t tag);
  void command(const recovery::LaneCommand& c) {
    command(c.kind, c.lane.value(), c.object.value(), c.range, c.tag);
  }

  size_t size() const { return lanes_.size(); }
  const Lane& at(size_t lane) const { return lanes_[lane]; }
  board::FlowSlot& slot(size_t lane) const { return host_.dataplane->board().flows[lanes_[lane].slot]; }
  std::vector<uint64_t> flow_ids() const;
  size_t backlog() const { return backlog_.size(); }

 private:
  struct Waiting {
    uint32_t worker = 0;
    board::Command command;
  };
  void push();

  Host& host_;
  board::Direction direction_;
  static constexpr uint32_t kLanesMax = 8;
  uint64_t generation_ = 0;
  uint32_t slots_ = 0;  // the first of those used last
  std::vector<Lane> lanes_;
  std::deque<Waiting> backlog_;
};

}  // namespace sluice::sim
