// The course of an attempt: from the dataplane of this node to moving data, and to the farewell.
// SPDX-License-Identifier: Apache-2.0
#include "control/leg/leg.h"

#include <fmt/format.h>

#include <algorithm>

#include "dataplane/base/counted.h"

namespace sluice::transfer {
namespace {

// Why a handshake gets no answer. A sluice-control that is connected runs; it keeps a new attempt waiting
// until the last one has let go of its files.
std::string silence_of(const std::string& peer, bool greeted) {
  if (greeted) return fmt::format("node {} does not answer any more: see that its sluice-control runs", peer);
  return fmt::format(
      "node {0} is connected and does not answer: a file system may hold the session up there; see 'sluice "
      "session show' at node {0}",
      peer);
}

}  // namespace

bool allowed(LegPhase from, LegPhase to) {
  using P = LegPhase;
  switch (to) {
    case P::kIdle:
      return from == P::kReleasing || from == P::kClosing || from >= P::kParting;
    case P::kDataplane:
      return from == P::kIdle;
    case P::kPeer:
      return from == P::kDataplane || from == P::kForgetting;
    case P::kForgetting:
      return from == P::kPeer;
    case P::kHandshake:
      return from == P::kDataplane || from == P::kPeer;
    case P::kAdopting:
      return from == P::kDataplane;
    case P::kMoving:
      return from == P::kHandshake || from == P::kAdopting;
    case P::kFarewell:
      return from == P::kMoving;
    case P::kClosing:
      return from != P::kIdle && from < P::kClosing;
    case P::kSettling:
      return from == P::kClosing;
    case P::kReleasing:
      return from == P::kSettling || from == P::kClosing;
    case P::kParting:
    case P::kInquiring:
      return from == P::kIdle;
  }
  return false;
}

Leg::Leg(LegId id, std::string peer_name, uint32_t number, const ThisNode& settings, Job& job)
    : id_(id),
      peer_name_(std::move(peer_name)),
      number_(number),
      settings_(settings),
      job_(job),
      stream_(id),
      lanes_(id),
      handshake_(id, {.settings = settings_,
                      .peer_name = peer_name_,
                      .number = number_,
                      .job = job_,
                      .stream = stream_,
                      .lanes = lanes_,
                      .agreement = agreement_}),
      inquiries_(std::min(kInquireNs, settings.stall_timeout_ns), kInquireMaxNs) {
  job_.legs.add(lanes_);
}

void Leg::restore(const LegRecord& record, bool claim, Effects& out) {
  if (record.agreement) agreement_ = *record.agreement;
  job_.legs.leave_out(id_, record.left_out);
  if (record.flows.empty() || !claim) return;
  lanes_.restore(record);
  agreement_.lanes = static_cast<uint32_t>(record.flows.size());
  claim_ = Claim::kAsked;
  out.add(ClaimFlows{.leg = id_, .record = record, .receives = job_.role == Role::kDestination});
}

void Leg::enter(P phase, uint64_t now_ns) {
  phase_.change(phase);
  entered_ns_ = now_ns;
  job_.legs.set(id_, stage());
}

Siblings::Stage Leg::stage() const {
  using S = Siblings::Stage;
  switch (phase_) {
    case P::kDataplane:
      return claim_ == Claim::kNone ? S::kWaits : S::kBegins;
    case P::kPeer:
      return S::kWaits;
    case P::kHandshake:
      if (handshake_.waits_for_turn()) return S::kDue;
      return handshake_.apart() ? S::kCalls : S::kBegins;
    case P::kForgetting:
    case P::kAdopting:
      return S::kBegins;
    case P::kMoving:
    case P::kFarewell:
      return S::kMoves;
    case P::kClosing:
    case P::kSettling:
    case P::kReleasing:
      return attempt_.last ? S::kClosesEnd : S::kCloses;
    case P::kIdle:
    case P::kParting:
    case P::kInquiring:
      break;
  }
  return S::kAway;
}

Error Leg::unreachable(std::string what) const { return {ErrorCode::kPeerUnreachable, std::move(what)}; }

// The one way in which an error ends an attempt.
void Leg::judge(const Status& status, uint64_t now_ns, Effects& out) {
  if (!status) stop(status.error(), LastWord::kFailure, now_ns, out);
}

// An error of the data end. What a peer said, or its path does, concerns this leg alone.
void Leg::judge_end(const Status& status, uint64_t now_ns, Effects& out) {
  if (status) return;
  const ErrorCode code = status.error().code;
  const bool its_own =
      code == ErrorCode::kIncompatible || code == ErrorCode::kStalled || code == ErrorCode::kPeerUnreachable;
  if (its_own) return judge(status, now_ns, out);
  end_failed(status.error(), now_ns, out);
}

void Leg::end_failed(const Error& error, uint64_t now_ns, Effects& out) {
  wants_.failure = error;
  stop(error, LastWord::kFailure, now_ns, out);
}

// ---- the beginning -----------------------------------------------------------------------------

void Leg::begin_attempt(uint64_t now_ns, Effects& out) {
  attempt_ = {};
  if (std::exchange(parting_.awaited_until_ns, 0) != 0) stream_.hang_up(now_ns, out);
  stream_.reset(now_ns);
  if (job_.several_peers) job_.legs.expect(id_, handshake_.expected_bps(now_ns));
  enter(P::kDataplane, now_ns);
}

// The dataplane first, then either the flows of an earlier life of this control, or new ones.
void Leg::leave_dataplane(uint64_t now_ns, Effects& out) {
  if (told_of_end() && claim_ == Claim::kNone) return enter(P::kPeer, now_ns);  // that needs no dataplane
  if (!dataplane_ || claim_ == Claim::kAsked) return;
  if (std::exchange(claim_, Claim::kNone) == Claim::kAdopted) return adopt(now_ns, out);
  if (!job_.initiator) return enter(P::kPeer, now_ns);
  if (!job_.may_begin(id_)) return void(entered_ns_ = now_ns);  // another leg is first, which has limits
  enter(P::kHandshake, now_ns);
  judge(handshake_.call(*dataplane_, now_ns, out), now_ns, out);
}

void Leg::take_call(uint64_t now_ns, Effects& out) {
  if (!waiting_call_ || (!dataplane_ && !told_of_end())) return;
  if (waiting_call_->ours && stream_.phase() != StreamPhase::kGreeting) {
    waiting_call_.reset();  // the stream on which it was answered is gone: it asks again
    return;
  }
  if (!job_.may_begin(id_)) return void(entered_ns_ = now_ns);
  if (job_.has_end() && !waiting_call_->hello.known && !told_of_end()) {
    // It never came to know what was agreed upon: no data was sent.
    if (!job_.legs.alone(id_)) {
      wants_.anew = true;
      return void(entered_ns_ = now_ns);
    }
    wants_.forget = forgetting_ = true;
    return enter(P::kForgetting, now_ns);
  }
  attempt_.told_of_end = told_of_end();
  const bool ours = std::exchange(waiting_call_, std::nullopt)->ours;
  enter(P::kHandshake, now_ns);
  if (!ours) stream_.take(now_ns, out);
  if (attempt_.told_of_end) return handshake_.hear_of_end(now_ns, out);
  judge(handshake_.answer_call(*dataplane_, now_ns, out), now_ns, out);
}

void Leg::forgotten(uint64_t now_ns, Effects& out) {
  forgetting_ = false;
  if (phase_ != P::kForgetting) return;
  enter(P::kPeer, now_ns);
  take_call(now_ns, out);
}

void Leg::adopt(uint64_t now_ns, Effects& out) {
  enter(P::kAdopting, now_ns);
  if (!job_.end()->may_adopt()) {
    return stop({ErrorCode::kStalled, "its list of files grew while data moved: opening new flows"},
                LastWord::kNone, now_ns, out);
  }
  out.log(LogLevel::kInfo, fmt::format("going on with {}", base::counted(lanes_.size(), "open flow")));
  if (!lanes_.all_open()) {
    return stop({ErrorCode::kStalled, "a former sluice-control closed the flows: opening new ones"},
                LastWord::kNone, now_ns, out);
  }
  job_.end()->adopt_files(out);
}

void Leg::on(const FlowsClaimed& event, Effects& out) {
  CHECK(claim_ == Claim::kAsked, "what is answered was asked for");
  if (event.adopted && phase_ == P::kClosing && !attempt_.detached) {  // it came before the claim was dropped
    claim_ = Claim::kNone;
    return lanes_.close(out);
  }
  claim_ = event.adopted ? Claim::kAdopted : Claim::kNone;
  work_tag_ = event.random;
  if (!event.adopted) lanes_.drop();
  job_.legs.set(id_, stage());
}

void Leg::start_moving(uint64_t now_ns) {
  enter(P::kMoving, now_ns);
  watch_.bottleneck().arrival().begin(
      {.peer = peer_name_, .peer_ports = agreement_.peer_ports, .own_ports = lanes_.local_ports()});
  watch_.start(job_, lanes_.figures(), now_ns);
  watch_.bottleneck().start(lanes_, now_ns);
  wants_.flows_changed = true;
}

void Leg::on(const BoardAttached& event, uint64_t /*now_ns*/) { dataplane_ = event.dataplane; }

void Leg::on(const BoardLost&, uint64_t now_ns, Effects& out) {
  dataplane_.reset();
  if (phase_ == P::kIdle || phase_ <= P::kForgetting) {
    // Nothing was on that board but flows of an earlier life, of which the claim has told, or will.
    if (claim_ != Claim::kAsked) {
      claim_ = Claim::kNone;
      lanes_.drop();
      job_.legs.set(id_, stage());
    }
    return;
  }
  attempt_.board_lost = true;
  stop({ErrorCode::kDaemonNotRunning,
        fmt::format("sluice-dataplane of node {} ended: start it", settings_.node_name)},
       LastWord::kFailure, now_ns, out);
}

// ---- going on ----------------------------------------------------------------------------------

void Leg::advance(uint64_t now_ns, Effects& out) {
  Heartbeat word;
  if (stream_.heartbeat_due(now_ns)) word = watch_.bottleneck().word(job_, lanes_, false, now_ns);
  const bool greeted = stream_.up();
  if (!stream_.keep_alive(std::move(word), now_ns, out)) {
    stream_.hang_up(now_ns, out);
    if (phase_ == P::kHandshake)
      stop(unreachable(silence_of(peer_name_, greeted)), LastWord::kNone, now_ns, out);
  }
  while (step(now_ns, out)) {
  }
}

bool Leg::step(uint64_t now_ns, Effects& out) {
  const P before = phase_;
  switch (before) {
    case P::kIdle:
    case P::kForgetting:
      break;
    case P::kDataplane:
      leave_dataplane(now_ns, out);
      if (phase_ != P::kDataplane || now_ns - entered_ns_ < settings_.stall_timeout_ns) break;
      stop({ErrorCode::kDaemonNotRunning,
            fmt::format("sluice-dataplane of node {} does not run: start it", settings_.node_name)},
           LastWord::kNone, now_ns, out);
      break;
    case P::kPeer:
      take_call(now_ns, out);
      if (phase_ != P::kPeer || now_ns - entered_ns_ < settings_.stall_timeout_ns) break;
      stop(unreachable(fmt::format("node {} does not call", peer_name_)), LastWord::kNone, now_ns, out);
      break;
    case P::kHandshake:
      judge(handshake_.go_on(now_ns, out), now_ns, out);
      if (phase_ == P::kHandshake && handshake_.done()) start_moving(now_ns);
      break;
    case P::kAdopting:
      if (attempt_.work_asked && !job_.end()->adopting()) {
        start_moving(now_ns);
      } else if (now_ns - entered_ns_ >= kAdoptTimeoutNs && job_.pending() == 0) {
        stop({ErrorCode::kDaemonNotRunning, "the dataplane does not say what it has: opening new flows"},
             LastWord::kNone, now_ns, out);
      }
      break;
    case P::kMoving:
      keep_moving(now_ns, out);
      break;
    case P::kFarewell:
      bid_farewell(now_ns, out);
      break;
    case P::kClosing:
    case P::kSettling:
    case P::kReleasing:
      finish_closing(now_ns, out);
      break;
    case P::kParting:
      keep_parting(now_ns, out);
      break;
    case P::kInquiring:
      if (stream_.phase() == StreamPhase::kDown && !stream_.call_pending()) asked(now_ns);
      break;
  }
  return phase_ != before;
}

void Leg::keep_moving(uint64_t now_ns, Effects& out) {
  for (const Message& message : handshake_.take_inbox()) {
    deliver(message, now_ns, out);
    if (phase_ != P::kMoving) return;
  }
  if (DataEnd* const end = job_.end()) {
    if (const std::optional<Error> lost = end->lost()) return end_failed(*lost, now_ns, out);
    judge_end(end->keep_list(job_.own_request(), out), now_ns, out);
    if (phase_ == P::kMoving && end->wants_list()) job_.read_list(out);
  }
  if (phase_ != P::kMoving) return;
  if (job_.complete()) {
    watch_.bottleneck().conclude(job_, lanes_, now_ns);
    enter(P::kFarewell, now_ns);
    if (job_.role == Role::kDestination) say_done(now_ns, out);
    return;
  }
  if (lanes_.empty()) {  // nobody ticks without flows
    on(Tick{.leg = id_}, now_ns, out);
    if (phase_ != P::kMoving) return;
  }
  keep_stream(now_ns, out);
  if (phase_ != P::kMoving) return;
  if (watch_.look(job_, lanes_.figures(), now_ns)) backoff_.moved();
  watch_.bottleneck().look(job_, lanes_, now_ns);
  if (const std::string warning = watch_.take_warning(); !warning.empty()) {
    out.log(LogLevel::kWarn, "the path is not filled for want of " + warning);
  }
  if (watch_.still_ns(now_ns) < settings_.stall_timeout_ns) return;
  stop(
      {ErrorCode::kStalled, fmt::format("no progress with {} for {} s, node {} is waiting for {}", peer_name_,
                                        settings_.stall_timeout_ns / kSecondNs, settings_.node_name,
                                        watch_.waiting_for().empty() ? "the peer" : watch_.waiting_for())},
      LastWord::kFailure, now_ns, out);
}

// The destination has said its last word before; now the source says its own. If it was called, nobody will
// call again once the destination has heard it: so its journal must know first.
void Leg::bid_farewell(uint64_t now_ns, Effects& out) {
  const bool over = !stream_.up() || now_ns >= farewell_due_ns();
  if (!over && !job_.peer_ended(id_)) {
    // The files have their names. The farthest of several sources does not decide when users hear of it.
    if (!job_.several_peers || job_.role != Role::kDestination) return;
    parting_.awaited_until_ns = farewell_due_ns();
  }
  if (job_.role == Role::kSource && !over && !job_.initiator) {
    if (!attempt_.completion_asked) completion_ = attempt_.completion_asked = true;
    return;
  }
  if (job_.role == Role::kSource && job_.initiator) say_done(now_ns, out);
  close(now_ns, out);
}

uint64_t Leg::farewell_due_ns() const {
  const uint64_t due_ns = entered_ns_ + kFarewellNs;
  return job_.several_peers ? std::min(due_ns, stream_.heard_ns() + kFarewellQuietNs) : due_ns;
}

void Leg::completion_noted(uint64_t now_ns, Effects& out) {
  if (phase_ != P::kFarewell) return;
  say_done(now_ns, out);
  close(now_ns, out);
}

void Leg::say_done(uint64_t now_ns, Effects& out) {
  // A session of less than a second has said nothing of it yet.
  if (job_.role == Role::kSource) stream_.say(watch_.bottleneck().word(job_, lanes_, true, now_ns), out);
  const catalog::Catalog& catalog = *job_.catalog();
  stream_.say(SessionDone{.files = catalog.file_count(), .bytes = catalog.bytes_total()}, out);
}

}  // namespace sluice::transfer
