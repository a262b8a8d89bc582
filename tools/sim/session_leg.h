// One leg of a simulated transfer: its flows on the board, and its control stream.
//
// It performs nothing itself (session.h does), but hears of its own flows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "control/board/flow_set.h"
#include "control/board/user.h"
#include "control/words/events.h"
#include "tools/sim/streams.h"

namespace sluice::sim {

class Session;

class SessionLeg final : public board::BoardUser {
 public:
  SessionLeg(Session& session, transfer::LegId id) : session_(session), id_(id) {}
  transfer::LegId id() const { return id_; }

  // ---- BoardUser ----
  void on_attached(attach::AttachedBoard&) override {}
  void on_event(const board::Event& event, const board::FlowState& flow) override;
  void on_tick(uint64_t) override {}
  void on_admitted(const board::Admitted& admitted) override;
  void on_board_lost() override {}
  void on_claimed(bool adopted) override;

  // ---- the board ----
  board::FlowSet flows;
  std::optional<transfer::ClaimFlows> claim;
  bool asked_flows = false;
  bool asked_buffers = false;

  // ---- the stream ----
  bool owns(Streams::Id of) const { return of == stream || of == calling || of == waiting; }
  Streams::Id stream = 0;
  Streams::Id calling = 0;
  Streams::Id waiting = 0;                // the peer's call
  std::vector<transfer::Message> unread;  // of that

 private:
  Session& session_;
  const transfer::LegId id_;
};

}  // namespace sluice::sim
