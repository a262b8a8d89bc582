// A transfer's turn: before an attempt it waits for a place among the sessions of its node, and between
// attempts it holds none.
//
// A session that was called waits here while its caller comes and goes: each call is answered with its place
// (docs/WIRE.md, "A node that is full"), and the first one for which there is room is taken.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "control/transfer/transfer.h"

namespace sluice::transfer {

void Transfer::want_attempts(uint64_t now_ns) {
  if (turn_.place == Place::kHeld) return begin_attempts(now_ns);
  ends_ = {};
  phase_.change(P::kQueued);
  turn_.since_ns = now_ns;
}

void Transfer::keep_queued(uint64_t now_ns) {
  if (cancelled_) return end_with(error_, now_ns);
  if (detached_) return leave();
  if (paused_) return hold(std::nullopt, now_ns);
  if (told_of_end()) {  // that much can be heard without a place
    give_up_place();
    return begin_attempts(now_ns);
  }
  if (job_.initiator) {
    if (turn_.place <= Place::kAside) ask_for_place();
    if (turn_.place != Place::kHeld) return;
    for (auto& leg : legs_) leg->backoff().excuse(now_ns - turn_.since_ns);
    return begin_attempts(now_ns);
  }
  if (call_waits() && attached()) {
    turn_.since_ns = now_ns;
    if (turn_.place == Place::kHeld) return begin_attempts(now_ns);
    if (turn_.place != Place::kAsked) ask_for_place();  // also once more: a place is told to each call
  }
  if (now_ns < queued_until_ns()) return;
  const Error error{ErrorCode::kPeerUnreachable, fmt::format("node {} does not come for its turn", peers())};
  if (job_.began) return rest(error, {}, now_ns);
  if (turn_.place > Place::kAside) return step_aside();
  end_with(error, now_ns);  // its caller may begin it once more
}

uint64_t Transfer::queued_until_ns() const {
  if (turn_.place > Place::kAside) return turn_.since_ns + kCallerAwayNs;
  return turn_.since_ns + (job_.began ? settings_.stall_timeout_ns : kCallerForgottenNs);
}

void Transfer::on(const PlaceTold& event, uint64_t now_ns) {
  if (event.ticket != turn_.ticket || turn_.place == Place::kHeld) return;
  turn_.place = event.place == 0 ? Place::kHeld : Place::kWaiting;
  turn_.waited |= turn_.place == Place::kWaiting;
  if (job_.initiator) return;
  turn_.since_ns = now_ns;
  if (turn_.place == Place::kHeld) return;
  refuse_calls(Pause{.node = settings_.node_name, .place = event.place, .places = event.places}, now_ns);
}

void Transfer::ask_for_place() {
  turn_.place = Place::kAsked;
  uint32_t share = job_.share();  // whoever was called was asked by nobody of this node
  for (const auto& leg : legs_) share = std::max(share, job_.initiator ? 0 : leg->caller_share());
  out_.add(AskPlace{.ticket = turn_.ticket, .priority = job_.priority, .share = share});
}

Status Transfer::may_prioritize() const {
  if (Status status = may_limit(); !status) return status;
  if (job_.initiator) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("session {} was begun at node {}: give it a priority there", job_.id, peers())};
}

void Transfer::on(const PriorityAsked& event, uint64_t now_ns) {
  if (!may_prioritize()) return;
  job_.priority = event.priority;
  write_record(Entry::kPriority, Durability::kPower, now_ns);
  if (turn_.place == Place::kAsked || turn_.place == Place::kWaiting) ask_for_place();  // it may move
}

void Transfer::take_place() {
  turn_.place = Place::kHeld;
  out_.add(TakePlace{});
}

void Transfer::give_up_place() {
  if (turn_.place == Place::kNone) return;
  turn_.place = Place::kNone;
  ++turn_.ticket;
  out_.add(LeavePlace{});
}

void Transfer::step_aside() {
  if (turn_.place <= Place::kAside) return;
  turn_.place = Place::kAside;
  ++turn_.ticket;
  out_.add(LeavePlace{.for_now = true});
}

}  // namespace sluice::transfer
