// What happens to a transfer: events, and what an operator asks for. Where it goes from there stands in
// transfer_course.cc.
// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/transfer.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::transfer {

bool allowed(TransferPhase from, TransferPhase to) {
  using P = TransferPhase;
  switch (to) {
    case P::kNew:
      return false;
    case P::kNoting:
      return from == P::kNew;
    case P::kRecovering:
      return from == P::kNew || from == P::kPaused || from == P::kResting;
    case P::kQueued:
      return from == P::kNew || from == P::kNoting || from == P::kRecovering || from == P::kActive ||
             from == P::kResting || from == P::kPaused;
    case P::kActive:
      return from == P::kRecovering || from == P::kQueued || from == P::kActive || from == P::kResting ||
             from == P::kPaused || from == P::kNew;
    case P::kResting:
      return from == P::kActive || from == P::kForgetting || from == P::kQueued;
    case P::kForgetting:
      return from == P::kActive;
    case P::kPaused:
      return from == P::kRecovering || from == P::kActive || from == P::kResting || from == P::kForgetting ||
             from == P::kNew || from == P::kQueued;
    case P::kEnding:
      return from != P::kOver && from < P::kEnding;
    case P::kReleasing:
      return from == P::kEnding || from == P::kRecovering;
    case P::kCleaning:
      return from == P::kReleasing;
    case P::kParting:
      return from == P::kReleasing || from == P::kCleaning || from == P::kNew;
    case P::kAware:
      return from == P::kParting;
    case P::kLeaving:
      return from < P::kEnding;
    case P::kOver:
      return from >= P::kReleasing && from != P::kOver;
  }
  return false;
}

Transfer::Transfer(const ThisNode& settings, std::string id, std::string peer, Role role, Request request,
                   std::optional<std::vector<catalog::File>> sources, int64_t started_unix_ns,
                   uint64_t now_ns)
    : Transfer(settings, std::move(id), std::move(peer), started_unix_ns, now_ns) {
  job_.initiator = true;
  job_.role = role;
  job_.request = std::move(request);
  job_.priority = job_.request->options.priority;
  job_.sources = std::move(sources);
  going_.pace.set_deadline(job_.request->options.deadline_unix_ns, job_.request->options.deadline_policy);
}

Transfer::Transfer(const ThisNode& settings, std::string id, std::string peer, int64_t started_unix_ns,
                   uint64_t now_ns)
    : settings_(settings), going_{.pace = {settings, id}, .before = {}} {
  job_.id = std::move(id);
  times_ = {.started_unix_ns = started_unix_ns, .started_ns = now_ns};
  add_leg(std::move(peer));
}

Transfer::~Transfer() = default;

void Transfer::add_leg(std::string peer) {
  CHECK(phase_ == P::kNew, "a leg is added before the transfer begins");
  const auto number = static_cast<uint32_t>(
      std::ranges::count_if(legs_, [&](const auto& leg) { return leg->peer_name() == peer; }));
  job_.several_peers |= !legs_.empty() && number != legs_.size();
  legs_.push_back(std::make_unique<Leg>(legs_.end_id(), std::move(peer), number, settings_, job_));
}

std::string Transfer::log_name() const { return fmt::format("session {}", job_.id.substr(0, 8)); }

// ---- events ------------------------------------------------------------------------------------

std::vector<Effect> Transfer::step(const Event& event, uint64_t now_ns) {
  const auto to_leg = [&](const auto& e) { legs_[e.leg]->on(e, now_ns, out_); };
  // An event of a file or an object belongs to the data end, whatever the phase.
  const auto to_end = [&](const auto& status) {
    if (!status) fail_attempt(status.error(), now_ns);
  };
  std::visit(
      [&](const auto& e) {
        using E = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<E, BoardAttached>) {
          device_ = e.dataplane.port.device;
          for (auto& leg : legs_) leg->on(e, now_ns);
        } else if constexpr (std::is_same_v<E, BoardLost>) {
          for (auto& leg : legs_) leg->on(e, now_ns, out_);
        } else if constexpr (std::is_same_v<E, FlowsClaimed>) {
          legs_[e.leg]->on(e, out_);
        } else if constexpr (std::is_same_v<E, FlowsReleased> || std::is_same_v<E, CallLost> ||
                             std::is_same_v<E, PeerInquires>) {
          legs_[e.leg]->on(e);
        } else if constexpr (std::is_same_v<E, SourcesOpened>) {
          legs_[e.of_leg]->on(e, now_ns, out_);
        } else if constexpr (requires { e.leg; }) {
          to_leg(e);
        } else if constexpr (std::is_same_v<E, ObjectOpened> || std::is_same_v<E, ObjectFetched> ||
                             std::is_same_v<E, ObjectClosed>) {
          to_end(job_.end()->on(e, out_));
        } else if constexpr (std::is_same_v<E, SourcesReopened> || std::is_same_v<E, SourceChecked> ||
                             std::is_same_v<E, ExtentsRead>) {
          to_end(job_.source()->on(e, out_));
        } else if constexpr (std::is_same_v<E, FileReopened>) {
          to_end(job_.destination()->on(e, out_));
        } else if constexpr (std::is_same_v<E, TimerDue>) {
        } else if constexpr (requires { job_.destination()->on(e, out_); } &&
                             !std::is_same_v<E, FilesRecovered> && !std::is_same_v<E, JournalWritten>) {
          to_end(job_.destination()->on(e, out_));
        } else {
          on(e, now_ns);
        }
      },
      event);
  advance(now_ns);
  if (base::dchecks_enabled) check_invariants();
  return out_.drain();
}

uint64_t Transfer::due_ns() const {
  uint64_t due_ns = UINT64_MAX;
  for (const auto& leg : legs_) due_ns = std::min(due_ns, leg->due_ns());
  if (phase_ < P::kEnding && !detached_) due_ns = std::min(due_ns, going_.pace.due_ns());
  if (phase_ == P::kQueued && !job_.initiator) return std::min(due_ns, queued_until_ns());
  if (phase_ == P::kActive) return std::min(due_ns, revival_due_ns());
  if (phase_ != P::kResting && phase_ != P::kPaused) return due_ns;
  if (release_ != Release::kNone) return due_ns;  // files first
  due_ns = std::min(due_ns, speaker().inquiry_due_ns());
  if (phase_ == P::kPaused) return due_ns;
  if (job_.initiator && attached()) due_ns = std::min(due_ns, next_attempt_ns());
  return std::min(due_ns,
                  in_vain_since_ns() + (job_.initiator ? settings_.resume_timeout_ns : settings_.keep_ns));
}

void Transfer::fail_attempt(const Error& error, uint64_t now_ns) {
  for (auto& leg : legs_) {
    if (leg->goes_on()) ends_.of_all = leg->id();
    stop(*leg, error, LastWord::kFailure, now_ns);
  }
}

// ---- the beginning -----------------------------------------------------------------------------

void Transfer::on(const Begin& event, uint64_t now_ns) {
  if (outcome_) {  // it ended in an earlier life of this control
    if (files_.left) {
      phase_.change(P::kRecovering);
      return job_.destination()->files().recover(out_);
    }
    return part(now_ns);
  }
  if (error_) return end_with(error_, now_ns);
  if (job_.destination() != nullptr) {
    phase_.change(P::kRecovering);
    return job_.destination()->files().recover(out_);
  }
  if (job_.initiator && !job_.began && !peer_.contacted) {
    phase_.change(P::kNoting);
    // Should this node lose power, the peer must not be left with a session that nobody calls for.
    write_record(Entry::kRequest, Durability::kPower, now_ns);
    if (event.at_once) out_.add(Dial{speaker().id()});
    return;
  }
  recovered(now_ns);
}

void Transfer::on(const FilesRecovered& event, uint64_t now_ns) {
  const Status status = job_.destination()->on(event, out_);
  CHECK(status, "there is nothing in this that could fail");
  if (outcome_) {
    phase_.change(P::kReleasing);
    release_ = Release::kEnd;
    return out_.add(ReleaseFiles{.keep = false});
  }
  recovered(now_ns);
}

// An answer that was asked for before the files were let go of is dropped: the next question finds it again.
void Transfer::on(const ListRead& event, uint64_t now_ns) {
  if (event.tag != job_.list_tag || job_.source() == nullptr) return;
  if (const Status status = job_.source()->on(event); !status) fail_attempt(status.error(), now_ns);
}

void Transfer::recovered(uint64_t now_ns) {
  if (cancelled_) return end_with(error_, now_ns);
  if (job_.has_end() && job_.complete()) {
    if (job_.initiator && job_.role == Role::kDestination) peer_.unaware = peers_without_end();
    return end_with(job_.end()->lost(), now_ns);
  }
  if (detached_) return leave();
  if (paused_) {
    enter_pause(now_ns);
  } else if (any_leg([](const Leg& leg) { return leg.claims_flows(); })) {
    take_place();  // it runs already
    begin_attempts(now_ns);
  } else {
    want_attempts(now_ns);
  }
}

// ---- the journal -------------------------------------------------------------------------------

void Transfer::on(const JournalWritten& event, uint64_t now_ns) {
  const Status& status = event.status;
  switch (event.entry) {
    case Entry::kRequest:
      if (!status) return end_with(status.error(), now_ns);
      return recovered(now_ns);
    case Entry::kAgreed:
      if (!status) return fail_attempt(status.error(), now_ns);
      return legs_[event.of_leg]->journal_agreed(now_ns);
    case Entry::kComplete:
      if (!status) return fail_attempt(status.error(), now_ns);
      complete_noted_ = true;
      return legs_[event.of_leg]->completion_noted(now_ns, out_);
    case Entry::kFlows:
      if (!status) fail_attempt(status.error(), now_ns);
      return;
    case Entry::kHeld:
    case Entry::kLimited:
    case Entry::kPriority:
    case Entry::kJudged:
    case Entry::kCancelled:
      if (!status) out_.log(LogLevel::kError, status.error().message);
      return;
    case Entry::kForgotten:
      if (!status) out_.log(LogLevel::kError, status.error().message);
      return forgotten(now_ns);
    case Entry::kEnded:
      if (!status) out_.log(LogLevel::kError, status.error().message);
      return release_ended(now_ns);
    case Entry::kCleaned:
      return part_or_over(now_ns);
    case Entry::kAware:
      return over();
    default:  // of a file, or of an object
      if (const Status told = job_.end()->on(event, out_); !told) fail_attempt(told.error(), now_ns);
  }
}

// ---- the operator ------------------------------------------------------------------------------

Status Transfer::may_pause() const {
  if (phase_ >= P::kEnding || cancelled_ || job_.complete())
    return Error{ErrorCode::kUsage, fmt::format("session {} has ended already", job_.id)};
  if (paused_) return Error{ErrorCode::kUsage, fmt::format("session {} is paused already", job_.id)};
  if (job_.began || (job_.initiator && (phase_ == P::kQueued || phase_ == P::kResting))) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("session {} has not begun to move data: cancel it, or wait", job_.id)};
}

Status Transfer::may_continue() const {
  if (phase_ >= P::kEnding || cancelled_ || job_.complete())
    return Error{ErrorCode::kUsage, fmt::format("session {} has ended already", job_.id)};
  if (paused_) return {};
  return Error{ErrorCode::kUsage, fmt::format("session {} is not paused here", job_.id)};
}

void Transfer::on(const Cancel& event, uint64_t now_ns) {
  give_up(
      event.reason.value_or(Error{ErrorCode::kCancelled,
                                  fmt::format("cancelled by an operator of node {}", settings_.node_name)}),
      now_ns);
}

void Transfer::on(const GrantRenewed& event, uint64_t /*now_ns*/) {
  if (job_.granted) job_.granted = event.granted;
}

void Transfer::on(const HandOver& event, uint64_t now_ns) {
  detached_ = true;
  fail_attempt(event.reason, now_ns);
}

// Whatever it does, and whatever comes: it ends with this error.
void Transfer::give_up(Error error, uint64_t now_ns) {
  if (phase_ >= P::kEnding || cancelled_ || job_.complete()) return;
  cancelled_ = true;
  error_ = std::move(error);
  foresee_failure(true);
  // At once, as a pause: should this control die before the attempt is over, the next one cleans up.
  Batch batch;
  batch.record = record(now_ns, record_state());
  batch.drop_blocks = !files_.left;
  write(Entry::kCancelled, std::move(batch), Durability::kPower);
  fail_attempt(*error_, now_ns);
}

void Transfer::on(const PauseAsked& event, uint64_t now_ns) {
  if (!may_pause()) return;
  if (event.reason && fails_at_once()) return on(Cancel{event.reason}, now_ns);
  paused_ = true;
  held_.reset();
  if (event.reason) held_ = held_by(*event.reason);
  // At once, not when the attempt is over: an operator who was told must find it so after a crash.
  write_record(Entry::kHeld, Durability::kPower, now_ns);
  const Error by_operator{ErrorCode::kCancelled,
                          fmt::format("paused by an operator of node {}", settings_.node_name)};
  for (auto& leg : legs_) leg->stop(event.reason.value_or(by_operator), LastWord::kPause, now_ns, out_);
}

void Transfer::on(const ContinueAsked&, uint64_t now_ns) {
  if (!may_continue()) return;
  paused_ = false;
  held_.reset();
  for (auto& leg : legs_) leg->backoff().moved();
  write_record(Entry::kHeld, Durability::kPower, now_ns);
}

Status Transfer::may_limit() const {
  if (phase_ < P::kEnding && !cancelled_ && !job_.complete()) return {};
  return Error{ErrorCode::kUsage, fmt::format("session {} has ended already", job_.id)};
}

void Transfer::on(const LimitAsked& event, uint64_t now_ns) {
  if (!may_limit()) return;
  job_.limit_bps = event.limit_bps;
  job_.keep_limit(out_);
  write_record(Entry::kLimited, Durability::kPower, now_ns);
}

void Transfer::on(const CeilingTold& event, uint64_t) {
  job_.ceiling_bps = event.rate_bps;
  job_.keep_limit(out_);
}

void Transfer::on(const Detach&, uint64_t now_ns) {
  detached_ = true;
  for (auto& leg : legs_) leg->detach(now_ns);
}

}  // namespace sluice::transfer
