// Who may use what of the board: session slots, flow slots, UDP ports, and extent buffers by credit.
//
// Pure. Flow slots and ports are taken first; then a receiving session takes credit, a sending one its
// share of the read buffers. A session that waits for receive credit may hold nothing that another
// could wait for while holding credit (rx before tx, everywhere), so that two nodes cannot deadlock.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/base/number.h"
#include "dataplane/board/board.h"

namespace sluice::board {

inline constexpr uint32_t kCreditMin = 2;
inline constexpr uint32_t kCreditStart = 16;      // at first; more follows once the sender knows its path
inline constexpr uint32_t kCreditSpareShare = 4;  // this part of the extents is left for sessions to come
inline constexpr uint32_t kRepairExtents = 2;     // per worker, kept free of credit
inline constexpr uint32_t kTxExtentsPerFlow = 2;
inline constexpr uint32_t kLanesMax = 16;

struct FlowGrant {
  FlowSlotId slot;
  uint32_t worker = 0;
  uint16_t local_port = 0;
};

class FlowTable {
 public:
  void reset(const PortInfo& port);

  std::optional<SessionSlotId> take_session();
  void release_session(SessionSlotId session);
  bool flow_taken(FlowSlotId slot) const { return flow(slot).taken; }
  bool session_taken(SessionSlotId session) const { return sessions_[session.value()]; }

  // `lanes` flows, each on the worker with the fewest of them; nothing when slots or ports lack.
  std::optional<std::vector<FlowGrant>> take_flows(uint32_t lanes);
  // Extents of credit for every flow, or nothing now. Workers' budgets are shared out so that later
  // sessions find something: a newcomer gets at most half of what is free.
  std::optional<std::vector<uint32_t>> take_credit(const std::vector<FlowGrant>& flows);
  // A receiving flow could use a window of `wanted`. What it has then: at most twice what it had, and half of
  // what is left, so that flows that grow at the same time share.
  uint32_t grow_credit(FlowSlotId slot, uint32_t wanted);
  // How much each flow of a worker may keep where these flows find too little for a first credit: an even
  // share. 0: they find enough at that worker.
  std::array<uint32_t, kWorkersMax> shares_for(const std::vector<FlowGrant>& flows) const;
  // The flow's window is `share` from now on, if it was more. Returns the window. The rest is free once
  // `give_back` has said so, since the sender has been granted it.
  uint32_t cut_credit(FlowSlotId slot, uint32_t share);
  // The sender of a flow that was cut has this much left. True: others have more than before.
  bool give_back(FlowSlotId slot, uint64_t outstanding);
  bool gives_back(FlowSlotId slot) const { return flow(slot).window < flow(slot).credit; }
  uint32_t credit(FlowSlotId slot) const { return flow(slot).credit; }
  // Others may have the credit of a flow that is not open yet, and not soon. It takes the same again before
  // it is opened, also where that is more than is free: until others give theirs back, what finds no buffer
  // is dropped and comes again.
  void lend_credit(FlowSlotId slot);
  void take_back_credit(FlowSlotId slot);
  bool take_buffers(const std::vector<FlowGrant>& flows);  // tx
  void release_flow(FlowSlotId slot);                      // with its credit or buffers
  void hold(const FlowGrant& grant);                       // nobody may have it until it is released
  // What a former control took, and its flows still use. False when that cannot be.
  bool adopt(SessionSlotId session, const std::vector<FlowGrant>& flows, const std::vector<uint32_t>& credit);

  // Lanes that a session can have when it is alone on the node.
  uint32_t lanes_max(Direction direction) const;
  uint32_t worker_of(FlowSlotId slot) const { return flow(slot).grant.worker; }
  uint32_t free_credit(uint32_t worker) const { return rx_free_[worker]; }

 private:
  struct Flow {
    bool taken = false;
    FlowGrant grant;
    uint32_t credit = 0;
    uint32_t window = 0;  // of its credit, what it keeps; less after a cut
    uint32_t lent = 0;    // of its credit
    uint32_t buffers = 0;
  };
  void give_credit(uint32_t worker, uint32_t extents);
  void check_invariants() const;  // where DCHECKs are on
  Flow& flow(FlowSlotId slot) { return flows_[slot.value()]; }
  const Flow& flow(FlowSlotId slot) const { return flows_[slot.value()]; }
  std::vector<uint32_t> flows_per_worker(const std::vector<FlowGrant>& flows) const;

  PortInfo port_{};
  bool sessions_[kSessionsMax] = {};
  Flow flows_[kFlowsMax];
  uint32_t rx_free_[kWorkersMax] = {};
  uint32_t rx_owed_[kWorkersMax] = {};  // what was taken back and was not free
  uint32_t tx_free_[kWorkersMax] = {};
};

}  // namespace sluice::board
