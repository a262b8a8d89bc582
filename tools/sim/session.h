// One transfer of a simulated control: performs what the production's state machine asks for, in this world.
//
// Nothing is decided here. Each effect takes its time, may fail as the plan says, and is answered once.
// Deliberate defects (--break) stand here: what is asked for is then not done, or done in another order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/board/board_flows.h"
#include "control/transfer/transfer.h"
#include "tools/sim/host.h"
#include "tools/sim/session_leg.h"

namespace sluice::sim {

class Session final : public std::enable_shared_from_this<Session> {
 public:
  Session(Host& host, const transfer::Settings& settings, std::unique_ptr<transfer::Transfer> transfer);
  ~Session();

  // Of a source, before it begins: its files are looked at when somebody asks for the transfer.
  void foresee();
  void post(const transfer::Event& event);
  void thaw() {  // what has waited while the control stood still
    if (!stepping_) run();
  }
  // The board that control is attaching to: flows of an earlier life are taken over, if there are such.
  void take_claim(board::BoardFlows* flows, uint64_t generation);
  // The board that control is attached to; nothing: it is gone.
  void set_board(board::BoardFlows* flows, uint64_t generation);
  void tick();  // the board's, while it has flows; and timers
  // A connection of this transfer: the peer's call, or ours.
  void peer_called(Streams::Id id, const std::string& peer, const transfer::Hello& hello);
  bool owns(Streams::Id id) const {
    return std::ranges::any_of(legs_, [id](const auto& leg) { return leg->owns(id); });
  }
  void call_ended(Streams::Id id, bool open, bool said);
  void message(Streams::Id id, const transfer::Message& message);
  void stream_ended(Streams::Id id);

  const transfer::Transfer& transfer() const { return *transfer_; }
  bool over() const { return over_; }
  bool holds(uint64_t inode) const;  // an unfinished file
  bool has_flows() const {
    return std::ranges::any_of(legs_, [](const auto& leg) { return leg->flows.size() != 0; });
  }
  // The workers of one leg close its flows by themselves.
  void kill_leg(transfer::LegId leg);
  void forget_board(board::BoardFlows* flows);  // no word of it is heard any more

  // What a leg hears of the board.
  void on_event(SessionLeg& leg, const board::Event& event, const board::FlowState& flow);
  void on_admitted(SessionLeg& leg, const board::Admitted& admitted);
  void on_claimed(SessionLeg& leg, bool adopted);

 private:
  Host& host_;
  const transfer::Settings& settings_;
  std::unique_ptr<transfer::Transfer> transfer_;
  std::deque<transfer::Event> events_;
  bool stepping_ = false;
  bool over_ = false;
  uint64_t timer_ns_ = UINT64_MAX;

  board::BoardFlows* flows_of_board_ = nullptr;  // of the dataplane that control is attached to
  std::set<ObjectId> fetched_;                   // that the dataplane still had
  uint64_t board_generation_ = 0;
  std::optional<SessionSlotId> slot_;  // of the flows of all legs
  std::vector<std::unique_ptr<SessionLeg>> legs_;

  uint32_t ticket_ = UINT32_MAX;  // of a wish for a place that waits, or
  bool runs_ = false;             // has it

  bool directory_synced_ = false;
  bool sources_open_ = false;
  std::optional<size_t> listed_;  // files of a list that is read
  uint32_t holding_ = 0;          // writes under way of a pause, or of its end
  Random lies_;

  void run();
  void arm();
  // The board, if its dataplane still lives: its death is noticed at the next tick.
  board::BoardFlows* board() const;
  void later(uint64_t takes_ns, Host::IfKilled if_killed, std::function<void()> effect,
             std::function<void()> then);
  void answer(transfer::Event event, uint64_t after_ns = 0);
  bool broken(Break what) const { return host_.plan.broken == what; }

  // The node's places (session_places.cc)
  void perform(const transfer::AskPlace& e);
  void perform(const transfer::TakePlace&) { runs_ = true; }
  void perform(const transfer::LeavePlace& e);

  // The stream
  void perform(const transfer::Call& e);
  void perform(const transfer::Dial&) {}  // nothing is said there
  void perform(const transfer::TakeCall& e);
  void perform(const transfer::RefuseCall& e);
  void perform(const transfer::Send& e);
  void perform(const transfer::HangUp& e);

  // The board (session_board.cc), the rate (session_rate.cc)
  void perform(const transfer::ClaimFlows& e);
  void perform(const transfer::DropClaim& e) {
    if (leg(e.leg).claim) on_claimed(leg(e.leg), false);
  }
  void perform(const transfer::ReserveFlows& e);
  void perform(const transfer::ReserveBuffers& e);
  void perform(const transfer::ShrinkLanes& e);
  void perform(const transfer::OpenFlow& e);
  void perform(const transfer::CloseFlow& e);
  void perform(const transfer::CommandLane& e);
  void perform(const transfer::SetRate& e);
  void perform(const transfer::SettleLane& e);
  void perform(const transfer::DrainEvents& e);
  void perform(const transfer::ReleaseFlows& e);
  void perform(const transfer::OpenObject& e);
  void perform(const transfer::CloseObject& e);
  void perform(const transfer::FetchObject& e);
  void tick(SessionLeg& its);
  void release(transfer::LegId leg, SessionSlotId session, uint64_t generation);
  void check_renewal(const SessionLeg& its);
  void forget_what_was_heard(
      transfer::LegId leg) {  // on a stream that is no more, while this control stood still
    std::erase_if(events_, [leg](const transfer::Event& event) {
      const auto* const heard = std::get_if<transfer::Received>(&event);
      const auto* const ended = std::get_if<transfer::StreamEnded>(&event);
      return (heard != nullptr && heard->leg == leg) || (ended != nullptr && ended->leg == leg);
    });
  }
  SessionLeg& leg(transfer::LegId leg) { return *legs_[leg.value()]; }
  uint32_t peer_of(transfer::LegId leg) const { return node_named(transfer_->leg(leg).peer_name()); }
  void judge_beginning();  // files are made, or flows opened
  void judge_moving();     // data moves from here on
  SessionLeg& leg_of(Streams::Id id) {
    return **std::ranges::find_if(legs_, [id](const auto& each) { return each->owns(id); });
  }

  // Files (session_sources.cc), the journal (session_files.cc)
  catalog::File source_file(const std::string& path, uint32_t number) const;
  transfer::Message lied(transfer::Message message);
  void perform(const transfer::OpenSources& e);
  void perform(const transfer::ReadList& e);
  void perform(const transfer::ReopenSources& e);
  void perform(const transfer::CheckSource& e);
  void perform(const transfer::ReadExtents& e);
  void perform(const transfer::CreateFiles& e);
  void perform(const transfer::RecoverFiles& e);
  void perform(const transfer::ReopenFile& e);
  void perform(const transfer::RecreateFile& e);
  void perform(const transfer::SyncObject& e);
  void perform(const transfer::FinishObject& e);
  void perform(const transfer::ReadBackObject& e);
  void perform(const transfer::NameObject& e);
  void perform(const transfer::DropFile& e);
  void remove_unfinished(const catalog::File& file);
  void perform(const transfer::ReleaseFiles& e);
  void perform(const transfer::WriteJournal& e);
  void perform(const transfer::Log& e);
  void perform(const transfer::Over& e);
  Result<catalog::FileIdentity> create(const catalog::File& file);
  void put_list(catalog::File& file, uint32_t object) const;
  uint64_t inode_of(ObjectId object) const;
  void tell_oracle_what_is_known();
  void tell_oracle_what_is_said(const transfer::Message& message);
};

}  // namespace sluice::sim
