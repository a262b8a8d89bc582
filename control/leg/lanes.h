// The flows of one leg: reserved, opened, counted, closed.
//
// Pure. A lane is a flow by its place in the handshake. What it asks of the board it puts into Effects; what
// the board says of a flow comes as FlowEvent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "control/board/figures.h"
#include "control/board/worker_figures.h"
#include "control/words/effects.h"
#include "control/words/events.h"

namespace sluice::transfer {

class LaneSet {
 public:
  explicit LaneSet(LegId leg) : leg_(leg) {}

  // ---- from nothing to open flows ----
  void reserved(SessionSlotId session, const std::vector<Grant>& grants);
  void credited(const std::vector<uint32_t>& credit_extents);
  void name_flows(const std::vector<uint64_t>& flow_ids);  // a source: the destination named them
  void invent_names();                                     // a destination: unlike those of any former life
  void shrink(uint32_t lanes, Effects& out);
  void open(const Agreement& agreement, Role role, Effects& out);
  // A source whose flows send so many echoes before any data; a destination takes what can be.
  void ask_echoes(uint32_t echoes, uint32_t bytes) {
    echoes_ = echoes;
    echo_bytes_ = bytes;
  }
  // kInternal when the dataplane refused one.
  Status refused() const;
  bool all_open() const;
  // Of an earlier life of this control.
  void restore(const LegRecord& record);

  // ---- to their end ----
  void close(Effects& out);
  bool all_closed() const;
  void drop();  // the board, or the attempt, is gone: its figures stay

  // The flow was opened, or closed; false when the closing is none of ours.
  bool on(const FlowEvent& event);
  void read(const Tick& event);  // its counters

  LegId leg() const { return leg_; }
  size_t size() const { return lanes_.size(); }
  bool empty() const { return lanes_.empty(); }
  SessionSlotId session() const { return session_; }
  std::vector<uint16_t> local_ports() const;
  std::vector<uint64_t> flow_ids() const;
  std::vector<uint32_t> credit_extents() const;
  bool same_flows(const std::vector<uint64_t>& flow_ids) const;
  std::vector<FlowRecord> records() const;                                       // of those that are open
  const board::FlowFigures& figures() const { return figures_; }                 // of this attempt
  const board::FlowFigures& former_figures() const { return former_; }           // of those before this one
  board::FlowFigures all_figures() const;                                        // of those before as well
  const std::vector<board::WorkerFigures>& workers() const { return workers_; }  // that have the lanes

 private:
  enum class State : uint8_t { kReserved, kOpening, kOpen, kRefused, kClosing, kClosed };
  struct Lane {
    Grant grant;
    uint64_t flow_id = 0;
    uint32_t credit_extents = 0;
    State state = State::kReserved;
    uint64_t refusal = 0;        // errno
    board::FlowFigures figures;  // as they were at its end
  };
  board::FlowConfig config(const Lane& lane, const Agreement& agreement, Role role, uint16_t peer_port) const;

  const LegId leg_;
  SessionSlotId session_;
  uint32_t echoes_ = 0;
  uint32_t echo_bytes_ = 0;
  Indexed<LaneId, Lane> lanes_;
  board::FlowFigures figures_;
  board::FlowFigures former_;  // of the attempts before this one
  std::vector<board::WorkerFigures> workers_;
};

}  // namespace sluice::transfer
