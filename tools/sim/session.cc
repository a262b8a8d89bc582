// The events and effects of a simulated transfer, and its control stream.
// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/session.h"

#include <utility>

#include "dataplane/base/check.h"

namespace sluice::sim {

Session::Session(Host& host, const transfer::Settings& settings, std::unique_ptr<transfer::Transfer> transfer)
    : host_(host), settings_(settings), transfer_(std::move(transfer)), lies_(host.plan.seed, 60) {
  for (uint32_t i = 0; i < transfer_->legs(); ++i)
    legs_.push_back(std::make_unique<SessionLeg>(*this, transfer::LegId(i)));
}

Session::~Session() = default;

// ---- events in, effects out ----------------------------------------------------------------------

void Session::post(const transfer::Event& event) {
  if (over_) return;
  events_.push_back(event);
  if (!stepping_ && !host_.frozen()) run();
}

void Session::run() {
  stepping_ = true;
  while (!events_.empty() && !over_) {
    const transfer::Event event = std::move(events_.front());
    events_.pop_front();
    if (std::holds_alternative<transfer::FilesRecovered>(event)) tell_oracle_what_is_known();
    for (const transfer::Effect& effect : transfer_->step(event, host_.now_ns())) {
      CHECK(!over_, "Over is the last effect of a transfer");
      std::visit([this](const auto& e) { perform(e); }, effect);
    }
  }
  stepping_ = false;
  if (transfer_->ended() && host_.told_ns == 0) host_.told_ns = host_.now_ns();
  arm();
}

void Session::arm() {
  const uint64_t due_ns = transfer_->due_ns();
  if (over_ || due_ns == UINT64_MAX || due_ns == timer_ns_) return;
  timer_ns_ = due_ns;
  host_.scheduler.at(due_ns, [weak = weak_from_this(), due_ns] {
    const auto self = weak.lock();
    if (!self || self->over_ || self->timer_ns_ != due_ns) return;
    self->timer_ns_ = UINT64_MAX;
    self->post(transfer::TimerDue{});
  });
}

void Session::later(uint64_t takes_ns, Host::IfKilled if_killed, std::function<void()> effect,
                    std::function<void()> then) {
  // If the control is killed meanwhile, nobody hears how it ended.
  host_.operate(takes_ns, if_killed, std::move(effect), [weak = weak_from_this(), then = std::move(then)] {
    if (const auto self = weak.lock()) then();
  });
}

void Session::answer(transfer::Event event, uint64_t after_ns) {
  host_.scheduler.after(after_ns, [weak = weak_from_this(), event = std::move(event)] {
    if (const auto self = weak.lock()) self->post(event);
  });
}

void Session::perform(const transfer::Log& e) { host_.trace.note(host_.now_ns(), host_.node, e.text); }

void Session::perform(const transfer::Over&) { over_ = true; }

// ---- the stream ----------------------------------------------------------------------------------

void Session::perform(const transfer::Call& e) {
  if (transfer_->leg(e.leg).phase() == transfer::LegPhase::kInquiring) {
    if (broken(Break::kNoInquiry))
      return answer(transfer::CallEnded{.leg = e.leg, .status = Error{}}, 1'000'000);
    ++host_.trace.reached.inquiries;
  }
  // A forgotten renewal: while data moves nobody calls.
  if (broken(Break::kNoRenewal) && transfer_->leg(e.leg).moving()) {
    return answer(transfer::CallEnded{.leg = e.leg, .status = Error{}}, 300'000'000);
  }
  if (transfer_->leg(e.leg).moving()) ++host_.trace.reached.renewals;
  CHECK(leg(e.leg).calling == 0, "one call of a leg at a time");
  if (!host_.journal.knows(transfer_->id()))
    host_.oracle.fail("the peer hears of a session before the journal knows of it");
  leg(e.leg).calling = host_.streams->call(host_.node, peer_of(e.leg), e.words);
}

void Session::call_ended(Streams::Id id, bool open, bool said) {
  SessionLeg& its = leg_of(id);
  if (id != its.calling) return;
  its.calling = 0;
  CHECK(!open || its.stream == 0, "nobody calls who has a stream");
  if (open) its.stream = id;
  post(transfer::CallEnded{
      .leg = its.id(),
      .status = open ? Status() : Status(Error{ErrorCode::kPeerUnreachable, "nobody answers"}),
      .rtt_ns = host_.streams->rtt_ns(id),
      .said = said});
}

void Session::peer_called(Streams::Id id, const std::string& peer, const transfer::Hello& hello) {
  SessionLeg& its = leg(*transfer_->leg_to(peer, hello.leg));
  if (its.waiting != 0) host_.streams->hang_up(host_.node, its.waiting);
  its.waiting = id;
  its.unread.clear();
  post(transfer::PeerCalled{.leg = its.id(), .hello = hello});
}

void Session::perform(const transfer::TakeCall& e) {
  forget_what_was_heard(e.leg);
  SessionLeg& its = leg(e.leg);
  if (its.stream != 0) host_.streams->hang_up(host_.node, its.stream);
  its.stream = std::exchange(its.waiting, 0);
  for (const transfer::Message& message : std::exchange(its.unread, {})) {
    post(transfer::Received{.leg = e.leg, .message = message});
  }
}

void Session::perform(const transfer::RefuseCall& e) {
  host_.streams->send(host_.node, leg(e.leg).waiting, e.word);
  host_.streams->hang_up(host_.node, std::exchange(leg(e.leg).waiting, 0));
}

void Session::perform(const transfer::Send& e) {
  if (leg(e.leg).stream == 0) return;
  if (std::holds_alternative<transfer::Need>(e.message)) ++host_.trace.reached.needs;
  if (const auto* state = std::get_if<transfer::ObjectState>(&e.message); state && !state->held.empty())
    ++host_.trace.reached.resumed;
  tell_oracle_what_is_said(e.message);
  host_.streams->send(host_.node, leg(e.leg).stream, lied(e.message));
}

void Session::perform(const transfer::HangUp& e) {
  forget_what_was_heard(e.leg);
  SessionLeg& its = leg(e.leg);
  if (its.stream != 0) host_.streams->hang_up(host_.node, std::exchange(its.stream, 0));
  if (its.calling == 0) return;
  const bool said = host_.streams->said(its.calling);
  host_.streams->hang_up(host_.node, std::exchange(its.calling, 0));
  answer(transfer::CallEnded{
      .leg = e.leg, .status = Error{ErrorCode::kPeerUnreachable, "hung up"}, .said = said});
}

void Session::message(Streams::Id id, const transfer::Message& message) {
  SessionLeg& its = leg_of(id);
  if (id == its.waiting) its.unread.push_back(message);
  if (id == its.stream) post(transfer::Received{.leg = its.id(), .message = message});
}

void Session::stream_ended(Streams::Id id) {
  SessionLeg& its = leg_of(id);
  if (id == its.waiting) {
    its.waiting = 0;
    post(transfer::CallLost{.leg = its.id()});
  } else if (id == its.stream) {
    its.stream = 0;
    post(transfer::StreamEnded{.leg = its.id(), .reason = "closed by the peer"});
  }
}

}  // namespace sluice::sim
