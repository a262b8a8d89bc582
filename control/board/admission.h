// Who gets slots, flows and extent buffers next: first come, first served.
//
// Pure, over a FlowTable: whoever waits is named by a number of the caller's. What can be had is given by
// `grant`, which the caller runs whenever something was asked for or given back. Flows come before buffers,
// everywhere, so that two nodes cannot wait for each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "control/board/flow_table.h"
#include "dataplane/base/error.h"

namespace sluice::board {

using Waiter = uint64_t;

struct FlowsGranted {
  SessionSlotId session;
  std::vector<FlowGrant> flows;
};
struct BuffersGranted {
  std::vector<uint32_t> credit_extents;  // of each flow, when receiving
};
struct Admitted {
  Waiter waiter = 0;
  std::variant<FlowsGranted, BuffersGranted, Error> what;
};

class Admission {
 public:
  explicit Admission(FlowTable& table) : table_(table) {}

  // `may_wait`: until there are so many; otherwise kResources at once. `session`: the slot that the transfer
  // has already, for flows of another leg; nothing: one is taken.
  void ask_flows(Waiter waiter, uint32_t lanes, bool may_wait, std::optional<SessionSlotId> session = {});
  void ask_buffers(Waiter waiter, Direction direction, std::vector<FlowGrant> flows);
  // What can be had now. Each question is answered once, unless it is given up.
  std::vector<Admitted> grant();
  void give_up(Waiter waiter);
  // The board is gone: nobody waits any more.
  void clear();
  bool waits(Waiter waiter) const;
  bool waits_for_credit() const { return !for_credit_.empty(); }
  const std::vector<FlowGrant>& next_for_credit() const { return for_credit_.front().flows; }

 private:
  struct ForFlows {
    Waiter waiter = 0;
    uint32_t lanes = 0;
    bool may_wait = false;
    std::optional<SessionSlotId> session = {};
  };
  struct ForBuffers {
    Waiter waiter = 0;
    std::vector<FlowGrant> flows;
  };
  bool grant_flows(std::vector<Admitted>* out);
  bool grant_buffers(Direction direction, std::vector<Admitted>* out);
  std::deque<ForBuffers>& queue(Direction direction) {
    return direction == Direction::kRx ? for_credit_ : for_read_buffers_;
  }

  FlowTable& table_;
  std::deque<ForFlows> for_flows_;
  std::deque<ForBuffers> for_credit_;
  std::deque<ForBuffers> for_read_buffers_;
};

}  // namespace sluice::board
