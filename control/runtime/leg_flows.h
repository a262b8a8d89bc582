// The flows of one leg on the real board.
//
// On the loop's thread. While there is no dataplane, each effect is answered with daemon_not_running.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/board/flow_set.h"
#include "control/board/user.h"
#include "control/runtime/board_objects.h"
#include "control/runtime/events.h"
#include "control/runtime/leg_stream.h"
#include "control/runtime/services.h"

namespace sluice::runtime {

class LegFlows final : public board::BoardUser {
 public:
  // `stream`: the leg's; the keys of flows come from there. `objects`: of the transfer. Both outlive this.
  LegFlows(std::shared_ptr<Services> services, std::weak_ptr<EventQueue> queue, transfer::LegId leg,
           std::string session_id, const LegStream& stream, BoardObjects& objects);
  ~LegFlows();
  LegFlows(const LegFlows&) = delete;
  LegFlows& operator=(const LegFlows&) = delete;
  void join();  // the board's users: events come from here on

  void perform(const transfer::ClaimFlows& effect);
  void perform(const transfer::DropClaim& effect);
  void perform(const transfer::ReserveFlows& effect);
  void perform(const transfer::ReserveBuffers& effect);
  void perform(const transfer::ShrinkLanes& effect);
  void perform(const transfer::OpenFlow& effect);
  void perform(const transfer::CloseFlow& effect);
  void perform(const transfer::CommandLane& effect);
  void perform(const transfer::SetRate& effect);
  void perform(const transfer::SettleLane& effect);
  void perform(const transfer::DrainEvents& effect);
  void perform(const transfer::ReleaseFlows& effect);

  // It cannot use its extent buffers soon: until its flows are opened, others may have them.
  void lend_buffers();
  std::vector<board::FlowGrant> lanes() const { return flows_.grants(); }  // in their order

  // ---- BoardUser ----
  void on_attached(attach::AttachedBoard& board) override;
  void on_event(const board::Event& event, const board::FlowState& flow) override;
  void on_tick(uint64_t now_ns) override;
  void on_admitted(const board::Admitted& admitted) override;
  void on_board_lost() override;
  void on_claimed(bool adopted) override;

 private:
  board::BoardFlows* flows() const;  // nothing while there is no dataplane
  void post(transfer::Event event) const;
  void granted(const board::FlowsGranted& granted);
  void adopt_log_level(attach::AttachedBoard& board);
  void look_at_log(board::BoardFlows& board);
  // Coroutines outlive this object: they take what they need with them, or find nothing in `self`.
  static asio::awaitable<void> open_with_keys(std::shared_ptr<LegFlows*> self,
                                              std::shared_ptr<attach::AttachedBoard> board, LaneId lane,
                                              uint64_t number, std::shared_ptr<board::AttachRequest> keys,
                                              board::FlowConfig config);
  static asio::awaitable<void> release(std::shared_ptr<Services> services, std::weak_ptr<EventQueue> queue,
                                       std::shared_ptr<attach::AttachedBoard> board, SessionSlotId session,
                                       transfer::LegId leg);

  const std::shared_ptr<Services> services_;
  const std::weak_ptr<EventQueue> queue_;
  const transfer::LegId leg_;
  const std::string session_id_;
  const LegStream& stream_;
  BoardObjects& objects_;
  board::FlowSet flows_;
  const std::shared_ptr<board::SessionLog> log_;
  std::set<LaneId> noting_;  // whose workers have opened them for us: other slots hold notes of others
  std::optional<transfer::ClaimFlows> claim_;
  bool asked_flows_ = false;
  bool asked_buffers_ = false;
  bool opened_ = false;  // a flow, or it was to be
  // Flows whose keys are on their way to the dataplane: those are opened when they are there, and these
  // closed then. Each opening has a number: one that was given up meanwhile opens nothing.
  std::map<LaneId, uint64_t> opening_;
  uint64_t openings_ = 0;
  std::set<LaneId> close_when_open_;
  const std::shared_ptr<LegFlows*> self_ = std::make_shared<LegFlows*>(this);
};

}  // namespace sluice::runtime
