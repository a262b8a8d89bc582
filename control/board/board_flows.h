// The flows of a board, as control has them: who has which slot, what goes to the workers, what comes from
// them.
//
// Pure: it works on a board in memory. The daemon's AttachedBoard and the simulator both use it. Whoever
// drives it calls push_commands, drain and tend_credit, about once a millisecond while there are flows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "control/board/admission.h"
#include "control/board/flow_table.h"
#include "control/board/user.h"
#include "dataplane/board/board.h"

namespace sluice::board {

// Events of a worker that are handled in one turn of control's loop, at most. The rest waits for the next,
// which comes at once.
inline constexpr uint32_t kEventsPerTurn = 512;

class BoardFlows {
 public:
  // `doorbell`: a command was put into this worker's ring.
  BoardFlows(Board& board, const PortInfo& port, std::function<void(uint32_t worker)> doorbell);

  const PortInfo& port() const { return port_; }
  FlowTable& table() { return table_; }
  const FlowTable& table() const { return table_; }

  // ---- slots and buffers ----
  void ask_flows(BoardUser* user, uint32_t lanes, bool may_wait, std::optional<SessionSlotId> session = {});
  void ask_buffers(BoardUser* user, Direction direction, std::vector<FlowGrant> flows);
  void give_up(BoardUser* user);
  void release_session(SessionSlotId session);
  // What a former control took, and its flows still use: they are the user's. False when that cannot be.
  bool adopt(BoardUser* user, SessionSlotId session, std::vector<FlowGrant> flows,
             const std::vector<uint64_t>& flow_ids, const std::vector<uint32_t>& credit_extents);

  // ---- flows ----
  FlowSlot& flow(FlowSlotId slot) { return board_.flows[slot.value()]; }
  // That have these flows: each once, in the order of the first flow of each.
  std::vector<const WorkerSlot*> workers(const std::vector<FlowGrant>& flows) const;
  void open_flow(FlowSlotId slot, const FlowConfig& config, BoardUser* user);
  // That the next flow of this slot will have.
  uint32_t next_tag(FlowSlotId slot) const { return board_.flows[slot.value()].config.tag + 1; }
  void close_flow(FlowSlotId slot);
  // Frees the slot: at once when its flow is closed or was never opened, else when the worker says so.
  void release_flow(FlowSlotId slot);
  // FlowTable's; whoever waits may have it.
  void lend_credit(FlowSlotId slot) {
    table_.lend_credit(slot);
    grant();
  }
  bool session_has_flows(SessionSlotId session);
  // Never fails: a full ring is tried again at the next turn.
  void command(const Command& command);
  // What control knows of a receiving flow, for its worker: these did not arrive, below that all is said.
  void settle(FlowSlotId slot, const std::vector<Gap>& gaps, uint64_t settled_below);
  // Receiving flows whose senders could use more credit get it. While a session waits for its first, those
  // that have more than an even share get no new credit until the rest has come back: what a sender was
  // granted it may use, so credit comes back as extents are completed.
  void tend_credit();
  size_t backlog() const;  // commands that wait for room
  void push_commands();
  // Hands at most kEventsPerTurn events of each worker to their users, in order. True: there may be more.
  bool drain();
  void forget(BoardUser* user);  // no calls to it any more; its slots stay as they are

  // Before users come: flows that a former control left and nobody goes on with are closed.
  uint32_t close_leftovers();  // how many there are
  uint32_t leftovers() const;  // that have not ended yet
  void forget_leftovers();     // they have ended, or been waited for long enough: users may come

 private:
  struct Flow {
    BoardUser* user = nullptr;
    bool open = false;      // kOpenFlow was given, kFlowClosed not yet seen
    bool answered = false;  // kFlowOpened was seen, and was no refusal
    bool released = false;  // nobody waits for it any more
    bool left = false;      // by a former control
    bool was_cut = false;   // its credit was
    // The sender has been granted no more extents than this in all. It is set one turn after the cut, when
    // the worker goes by the new window.
    std::optional<uint64_t> granted_end = {};
  };
  void handle(const Event& event);
  void grant();
  bool receives(FlowSlotId slot) const;
  void ask_back();
  bool take_what_comes_back();
  uint32_t worker_of(uint16_t local_port) const;

  Board& board_;
  const PortInfo port_;
  const std::function<void(uint32_t)> doorbell_;
  FlowTable table_;
  Admission admission_{table_};
  std::array<Flow, kFlowsMax> flows_;
  std::array<std::deque<Command>, kWorkersMax> backlog_;
};

}  // namespace sluice::board
