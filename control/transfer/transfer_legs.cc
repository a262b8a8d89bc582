// The legs of a transfer: how they begin, what follows when one ends while others go on, and how it comes
// back.
//
// Where one leg ends the others go on, unless what ended it concerns all: an error of this node's files, an
// operator, or a peer at which the transfer has ended. When the last leg has ended the attempt is over. What
// follows is decided by what concerns all, or else by the end that leaves most hope.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "control/transfer/transfer.h"

namespace sluice::transfer {

// ---- the beginning -----------------------------------------------------------------------------

// Whoever was called goes on with the legs for which its peer calls, or waits for it to call for any. Whoever
// calls does not call a source that is done without, as long as there is another.
void Transfer::begin_attempts(uint64_t now_ns) {
  phase_.change(P::kActive);
  attempts_.begun = true;
  ends_ = {};
  const auto calls = [](const Leg& leg) { return leg.call_waits() || leg.claims_flows(); };
  const auto counts = [](const Leg& leg) { return leg.left_out().empty(); };
  const bool any_calls = !job_.initiator && any_leg(calls);
  const bool any_counts = any_leg(counts);
  for (auto& leg : legs_) {
    const bool wanted = any_calls ? calls(*leg) : counts(*leg) || !any_counts;
    if (wanted) leg->begin_attempt(now_ns, out_);
  }
}

// ---- one leg ends ------------------------------------------------------------------------------

void Transfer::leg_ended(Leg& leg, const AttemptEnd& end, uint64_t now_ns) {
  peer_.contacted |= end.contacted;
  ends_.how.insert_or_assign(leg.id(), end);
  ends_.last = leg.id();
  if (job_.legs.all_away()) return;
  if (!job_.complete() && !cancelled_ && !paused_) {
    out_.log(LogLevel::kWarn,
             fmt::format("leg {} to {} has ended, others go on: {}", leg.id().value(), leg.peer_name(),
                         end.error ? end.error->message : "it is over there"));
  }
  // What the only peer did not agree to, or what has ended there, nobody goes on with. Of several peers the
  // others may agree; but if one offers something else, nobody knows which of them is right.
  const Error error =
      end.error.value_or(Error{ErrorCode::kPeerUnreachable, "the session has ended at its peer"});
  // Between two of them a list decides, and it judges each byte that this one has brought.
  const bool differs = job_.several_peers && end.peer_failed && error.code == ErrorCode::kIntegrity;
  if (differs && job_.has_end() && job_.end()->lists_judge()) {
    leg.leave_out(error.message);
    if (job_.began) write_record(Entry::kFlows, Durability::kProcess, now_ns);
  }
  const bool ends_all = job_.several_peers ? error.code == ErrorCode::kIntegrity && leg.left_out().empty()
                                           : !job_.began || end.peer_ended;
  if (ends_all) stop_others(leg, error, now_ns);
  ends_.rested.insert(leg.id());
  rest_leg(leg, end, now_ns);
}

// Sources that have another file than the list wants. The last leg stays: without it nothing gets its name.
void Transfer::leave_out_differing(uint64_t now_ns) {
  if (!job_.has_end()) return;
  for (DataEnd::LeftOut& out : job_.end()->take_left_out()) {
    Leg& leg = *legs_[out.leg];
    leg.leave_out(out.error.message);
    if (!job_.legs.is_last(out.leg)) leg.stop(std::move(out.error), LastWord::kFailure, now_ns, out_);
  }
}

void Transfer::stop_others(const Leg& leg, const Error& error, uint64_t now_ns) {
  for (auto& other : legs_) {
    if (other.get() != &leg) stop(*other, error, LastWord::kFailure, now_ns);
  }
}

void Transfer::stop(Leg& leg, const Error& error, LastWord word, uint64_t now_ns) {
  if (leg.goes_on()) ends_.stopped.insert(leg.id());
  leg.stop(error, word, now_ns, out_);
}

// Nothing is left to do for legs that have not come to moving data. If none has, the first still tells the
// peer: each file failed before a byte moved.
void Transfer::stop_beginners(uint64_t now_ns) {
  if (legs_.size() == 1 || phase_ != P::kActive || !job_.complete() || !job_.end()->running()) return;
  const Error error{ErrorCode::kPeerUnreachable, "all has arrived by other legs"};
  // One of several peers may know the session already: for it nothing is left to do.
  const Error others{ErrorCode::kCancelled, "all has arrived from other sources"};
  for (auto& leg : legs_) {
    if (leg->phase() >= LegPhase::kMoving) continue;
    stop(*leg, job_.several_peers ? others : error, job_.several_peers ? LastWord::kFailure : LastWord::kNone,
         now_ns);
  }
}

// Files were prepared for a leg that is gone, and none moves data: the data end has to end its attempt before
// another leg begins one. Those that hold flows meanwhile would keep it from that.
void Transfer::stop_callers(uint64_t now_ns) {
  using S = Siblings::Stage;
  const auto at = [this](const Leg& leg, S stage) { return job_.legs.stage(leg.id()) == stage; };
  if (!job_.prepares() || any_leg([&](const Leg& leg) { return at(leg, S::kBegins); })) return;
  const Error error{ErrorCode::kPeerUnreachable,
                    "the source that was first is gone: beginning anew with all"};
  for (auto& leg : legs_)
    if (at(*leg, S::kCalls) || at(*leg, S::kDue)) stop(*leg, error, LastWord::kFailure, now_ns);
}

// ---- and comes back ----------------------------------------------------------------------------

bool Transfer::may_revive() const {
  const bool wanted = phase_ == P::kActive && (job_.began || job_.several_peers) && !job_.complete();
  return wanted && legs_.size() > 1 && !cancelled_ && !paused_ && !detached_ && job_.legs.some_go_on();
}

// Not a leg that is done without, whose end is for good, or waits for an operator of its peer.
bool Transfer::comes_back(const Leg& leg) const {
  if (leg.phase() != LegPhase::kIdle || !leg.left_out().empty()) return false;
  const auto end = ends_.how.find(leg.id());
  if (end == ends_.how.end() || !end->second.error) return true;
  return end->second.peer_paused || remedy_of(end->second.error->code) == Remedy::kTime;
}

void Transfer::revive_legs(uint64_t now_ns) {
  if (!may_revive()) return;
  for (auto& leg : legs_) {
    if (leg->phase() != LegPhase::kIdle || !leg->attached()) continue;
    const bool due =
        job_.initiator ? comes_back(*leg) && now_ns >= leg->backoff().next_ns() : leg->call_waits();
    if (!due) continue;
    ends_.how.erase(leg->id());
    ends_.rested.erase(leg->id());
    ends_.stopped.erase(leg->id());
    leg->begin_attempt(now_ns, out_);
  }
}

uint64_t Transfer::revival_due_ns() const {
  uint64_t due_ns = UINT64_MAX;
  if (!job_.initiator || !may_revive()) return due_ns;
  for (const auto& leg : legs_) {
    if (leg->attached() && comes_back(*leg)) due_ns = std::min(due_ns, leg->backoff().next_ns());
  }
  return due_ns;
}

// ---- all together ------------------------------------------------------------------------------

// By which it is decided what follows, once all have ended.
const AttemptEnd& Transfer::telling_end() const {
  const auto rank = [this](LegId leg, const AttemptEnd& end) {
    const bool left_out = !legs_[leg]->left_out().empty();
    if (end.peer_ended && !job_.several_peers) return 0;
    if (end.peer_forgot && !job_.several_peers) return 1;
    // Nobody knows which source is right: another one that is away gives no hope.
    if (job_.several_peers && end.error && end.error->code == ErrorCode::kIntegrity && !left_out) return 0;
    if (end.paused) return 2;
    if (leg == ends_.of_all) return 3;
    const Remedy remedy = end.error && !end.peer_ended ? remedy_of(end.error->code) : Remedy::kNone;
    return 4 + static_cast<int>(remedy);
  };
  CHECK(ends_.last, "one leg at least has ended");
  LegId telling = *ends_.last;
  for (const auto& [leg, end] : ends_.how)
    if (rank(leg, end) < rank(telling, ends_.how.at(telling))) telling = leg;
  return ends_.how.at(telling);
}

std::string Transfer::peers() const {
  std::vector<LegRecord> records;
  for (const auto& leg : legs_) records.push_back({.peer = leg->peer_name()});
  return peers_of(records);
}

std::vector<std::string> Transfer::leg_peers() const {
  std::vector<std::string> peers;
  for (const auto& leg : legs_) peers.push_back(leg->peer_name());
  return peers;
}

std::optional<LegId> Transfer::leg_to(const std::string& peer, uint32_t number) const {
  for (const auto& leg : legs_)
    if (leg->peer_name() == peer && leg->number() == number) return leg->id();
  return std::nullopt;
}

// All has arrived here: which of those that sent of it have not said that they know? One that was cut off
// before the end is told later.
std::set<std::string> Transfer::peers_without_end() const {
  std::set<std::string> unaware;
  for (const auto& leg : legs_)
    if (leg->agreed()) unaware.insert(leg->peer_name());
  for (const auto& leg : legs_) {
    const auto end = ends_.how.find(leg->id());
    const bool told_us = end != ends_.how.end() && end->second.peer_ended;
    if (told_us || leg->peer_aware() || !leg->left_out().empty() || job_.peer_ended(leg->id()))
      unaware.erase(leg->peer_name());
  }
  return unaware;
}

// The one that stands for all where only one is shown: as far as any has come, and one that has agreed upon
// something before one that has not.
const Leg& Transfer::shown_leg() const {
  const auto come = [](const Leg& leg) {
    const int phase = leg.moving()                         ? 3
                      : leg.phase() == LegPhase::kIdle     ? 0
                      : leg.phase() < LegPhase::kHandshake ? 1
                                                           : 2;
    return std::pair(phase, leg.agreement().lanes != 0);
  };
  const Leg* shown = legs_.begin()->get();
  for (const auto& leg : legs_)
    if (come(*leg) > come(*shown)) shown = leg.get();
  return *shown;
}

void Transfer::refuse_calls(const Message& word, uint64_t now_ns) {
  for (auto& leg : legs_)
    if (leg->call_waits() && !leg->told_of_end()) leg->refuse_call(word, now_ns, out_);
}

uint64_t Transfer::next_attempt_ns() const {
  uint64_t next_ns = UINT64_MAX;
  for (const auto& leg : legs_) next_ns = std::min(next_ns, leg->backoff().next_ns());
  return next_ns;
}

uint64_t Transfer::in_vain_since_ns() const {
  uint64_t since_ns = 0;
  for (const auto& leg : legs_) since_ns = std::max(since_ns, leg->backoff().since_ns());
  return since_ns;
}

board::FlowFigures Transfer::all_figures() const {
  board::FlowFigures all;
  for (const auto& leg : legs_) all.add(leg->lanes().all_figures());
  return all;
}

}  // namespace sluice::transfer
