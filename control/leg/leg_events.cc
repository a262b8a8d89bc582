// What a leg is told, and what others see of it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "control/leg/leg.h"

namespace sluice::transfer {

// ---- the stream --------------------------------------------------------------------------------

Hello Leg::hello() const {
  Hello hello = handshake_.first_word();
  hello.flow_ids = lanes_.flow_ids();
  hello.granted = !job_.initiator && job_.granted.has_value();
  hello.leased = !job_.initiator && job_.lease.has_value();
  return hello;
}

void Leg::on(const CallEnded& event, uint64_t now_ns, Effects& out) {
  stream_.call_ended(static_cast<bool>(event.status), now_ns);
  // A peer that does not trust this node has heard nothing.
  const bool heard = event.status || (event.said && event.status.error().code == ErrorCode::kPeerUnreachable);
  attempt_.heard |= heard;
  if (phase_ != LegPhase::kHandshake) return;
  if (!event.status) {
    attempt_.fell = heard;
    return stop(event.status.error(), LastWord::kNone, now_ns, out);
  }
  job_.legs.reached(id_, event.rtt_ns);
  judge(handshake_.stream_open(event.rtt_ns, now_ns, out), now_ns, out);
}

void Leg::on(const PeerCalled& event, uint64_t now_ns, Effects& out) {
  waiting_call_ = WaitingCall{.hello = event.hello};
  if (phase_ == LegPhase::kHandshake) {
    stop(unreachable(fmt::format("{} opens the session anew", peer_name_)), LastWord::kNone, now_ns, out);
  } else if (moving()) {
    // The peer has given the old stream up.
    stream_.hang_up(now_ns, out);
    keep_stream(now_ns, out);
  }
}

void Leg::on(const StreamEnded& event, uint64_t now_ns, Effects& out) {
  const bool was_up = stream_.up();
  stream_.ended(now_ns);
  parting_.awaited_until_ns = 0;
  if (phase_ == LegPhase::kHandshake && handshake_.settling()) return;  // the peer has said all
  if (phase_ == LegPhase::kHandshake) {
    attempt_.fell = true;
    stop(unreachable(fmt::format("the connection to node {} was lost ({}): see that its sluice-control runs",
                                 peer_name_, event.reason)),
         LastWord::kNone, now_ns, out);
  } else if (phase_ == LegPhase::kMoving && was_up) {
    out.log(LogLevel::kInfo, fmt::format("no control stream to {}; data goes on meanwhile", peer_name_));
  }
}

// While data moves: a stream that is lost is opened again.
void Leg::keep_stream(uint64_t now_ns, Effects& out) {
  if (handshake_.settled()) {
    // The peer did not say all of how it ended: it is asked again, or says it again.
    if (stream_.open() || job_.pending() != 0) return;
    return stop(unreachable(fmt::format("the connection to {} was lost", peer_name_)), LastWord::kNone,
                now_ns, out);
  }
  if (stream_.open() || stream_.phase() == StreamPhase::kCalling) return;
  if (waiting_call_ && !job_.initiator) {
    const bool told_of_end = waiting_call_->hello.ended;
    if (!told_of_end && !lanes_.same_flows(waiting_call_->hello.flow_ids)) {
      return stop(unreachable(fmt::format("{} opens the session anew", peer_name_)), LastWord::kNone, now_ns,
                  out);
    }
    waiting_call_.reset();
    attempt_.told_of_end = told_of_end;
    stream_.take(now_ns, out);
    if (told_of_end) return stream_.greeted();
    stream_.send(hello(), out);
    return stream_renewed(now_ns, out);
  }
  if (now_ns - stream_.down_since_ns() > settings_.stall_timeout_ns) {
    return stop(unreachable(fmt::format("no control stream to {} for {} s: see that its sluice-control runs",
                                        peer_name_, settings_.stall_timeout_ns / kSecondNs)),
                LastWord::kNone, now_ns, out);
  }
  if (job_.initiator && stream_.may_call(now_ns)) stream_.call(out, {hello()});
}

// The answer to the Hello with which this node renews the stream.
void Leg::greet(const Hello& hello, uint64_t now_ns, Effects& out) {
  if (const Status status = check_hello(hello); !status) return judge(status, now_ns, out);
  if (hello.session_id != job_.id) {
    return judge(Error{ErrorCode::kIncompatible, fmt::format("{} answers for another session", peer_name_)},
                 now_ns, out);
  }
  if (!hello.ended && !lanes_.same_flows(hello.flow_ids)) {
    return stop(unreachable(fmt::format("the flows to {} are gone: opening others", peer_name_)),
                LastWord::kNone, now_ns, out);
  }
  stream_renewed(now_ns, out);
}

void Leg::stream_renewed(uint64_t now_ns, Effects& out) {
  out.log(LogLevel::kInfo, fmt::format("control stream to {} renewed after {:.1f} s", peer_name_,
                                       static_cast<double>(now_ns - stream_.down_since_ns()) * 1e-9));
  stream_.greeted();
  if (!job_.has_end()) return;
  job_.end()->on_new_stream(id_);
  if (job_.end()->has_states()) out.add(DrainEvents{id_});
}

void Leg::on(const EventsDrained&, uint64_t now_ns, Effects& out) {
  if (!moving() || !stream_.up() || !job_.has_end()) return;
  job_.end()->send_states(id_, out);
  if (phase_ != LegPhase::kFarewell) return;
  say_done(now_ns, out);
  entered_ns_ = now_ns;
}

void Leg::on(const Received& event, uint64_t now_ns, Effects& out) {
  stream_.heard(now_ns);
  Message message = event.message;
  const Status admitted = admit(&message);
  if (!admitted && phase_ != LegPhase::kParting) return judge(admitted, now_ns, out);
  hear(message, now_ns, out);
}

void Leg::hear(const Message& message, uint64_t now_ns, Effects& out) {
  if (const auto* answer = std::get_if<Hello>(&message);
      phase_ == LegPhase::kParting && answer != nullptr && answer->ended) {
    out.log(LogLevel::kInfo, fmt::format("{} knows that it ended", peer_name_));
    return parted(now_ns, out);
  }
  if (phase_ == LegPhase::kInquiring) return hear_answer(message, now_ns, out);
  if (parting_.awaited_until_ns != 0) return hear_last_word(message, now_ns, out);
  if (phase_ >= LegPhase::kClosing) return;
  if (const auto* word = std::get_if<Heartbeat>(&message)) {
    // Each end believes the other only what that one can know.
    return watch_.bottleneck().hear(job_.role == Role::kSource
                                        ? Heartbeat{.load = word->load}
                                        : Heartbeat{.bottleneck = word->bottleneck, .whole = word->whole},
                                    now_ns);
  }
  if (const auto* hello = std::get_if<Hello>(&message)) attempt_.told_of_end |= hello->ended;
  if (const auto* failure = std::get_if<Failure>(&message)) {
    attempt_.peer_ended = attempt_.told_of_end;
    attempt_.peer_failed = goes_on();
    return stop(handshake_.meant_by(error_of(peer_name_, *failure)), LastWord::kNone, now_ns, out);
  }
  if (const auto* pause = std::get_if<Pause>(&message)) {
    attempt_.peer_paused = *pause;
    const std::string why = pause->place == 0 ? "paused by an operator of node {}" : "node {} is full";
    return stop(unreachable(fmt::format(fmt::runtime(why), peer_name_)), LastWord::kNone, now_ns, out);
  }
  if (phase_ == LegPhase::kHandshake) return judge(handshake_.on_message(message, now_ns, out), now_ns, out);
  if (!moving()) return;
  if (!stream_.up()) {
    if (const auto* answer = std::get_if<Hello>(&message)) return greet(*answer, now_ns, out);
    return judge(Error{ErrorCode::kIncompatible,
                       fmt::format("{} sent {} where Hello was due", peer_name_, message_name(message))},
                 now_ns, out);
  }
  deliver(message, now_ns, out);
}

void Leg::deliver(const Message& message, uint64_t now_ns, Effects& out) {
  if (job_.has_end()) return judge_end(job_.end()->on_message(id_, message, out), now_ns, out);
  // The answer to an offer was lost, and the peer needed no data to end: each name was refused there, or is
  // of an empty file. Which objects its words are about nobody here knows.
  if (!handshake_.settled()) return;
  if (std::holds_alternative<ObjectFailed>(message)) ++attempt_.failed_there;
  const auto* const done = std::get_if<SessionDone>(&message);
  if (done == nullptr) return;
  attempt_.peer_ended = true;
  stop(
      {ErrorCode::kPartial,
       fmt::format("{} has ended the session, and its answer to the offer was lost: {} of {} files and packs "
                   "failed there; 'sluice session show {}' at {} names them; send the same again to get what "
                   "is missing",
                   peer_name_, attempt_.failed_there, done->files, job_.id.substr(0, 8), peer_name_)},
      LastWord::kNone, now_ns, out);
}

void Leg::refuse_call(Message word, uint64_t now_ns, Effects& out) {
  if (std::exchange(waiting_call_, std::nullopt)->ours) return stream_.hang_up(now_ns, out);
  out.add(RefuseCall{.leg = id_, .word = std::move(word)});
}

// ---- the board ---------------------------------------------------------------------------------

void Leg::on(const FlowsReserved& event, uint64_t now_ns, Effects& out) {
  // A caller need not fail because others have the flows just now. It must not be waited for either: it holds
  // flows of its own.
  const Status status = handshake_.on(event, now_ns, out);
  const bool full = !status && status.error().code == ErrorCode::kResources && !job_.initiator;
  if (full) return stop(status.error(), LastWord::kTurn, now_ns, out);
  judge(status, now_ns, out);
}

void Leg::on(const BuffersReserved& event, uint64_t now_ns, Effects& out) {
  judge(handshake_.on(event, now_ns, out), now_ns, out);
}

void Leg::on(const SourcesOpened& event, uint64_t now_ns, Effects& out) {
  judge(handshake_.on(event, now_ns, out), now_ns, out);
}

// Whatever the phase: what a worker has written, sent or closed has happened.
void Leg::on(const FlowEvent& event, uint64_t now_ns, Effects& out) {
  const bool expected = lanes_.on(event);
  if (event.event.kind == board::EventKind::kFlowClosed && !expected && phase_ < LegPhase::kClosing &&
      phase_ > LegPhase::kDataplane) {
    return stop({ErrorCode::kStalled, "a former sluice-control closed the flows: opening new ones"},
                LastWord::kFailure, now_ns, out);
  }
  if (job_.has_end()) judge_end(job_.end()->on(event, out), now_ns, out);
}

void Leg::on(const Tick& event, uint64_t now_ns, Effects& out) {
  if (!event.lanes.empty()) lanes_.read(event);
  if (moving() && job_.role == Role::kDestination) attempt_.early.look(lanes_.figures().bytes, now_ns);
  DataEnd* const end = job_.end();
  if (end == nullptr) return;  // only how it ended is heard
  if (phase_ == LegPhase::kAdopting && !attempt_.work_asked) {
    if (end->prepared()) {
      attempt_.work_asked = true;
      end->adopt_work(way(), event.lanes, work_tag_, now_ns, out);
    }
    entered_ns_ = now_ns;  // the workers are waited for from when they are asked
  }
  if (!moving() && !(phase_ == LegPhase::kAdopting && attempt_.work_asked)) return;
  job_.keep_limit(out);
  if (job_.destination() != nullptr)
    job_.destination()->others_join({.come = job_.legs.some_come(),
                                     .some = job_.legs.some_join(),
                                     .faster = job_.legs.faster_joins(id_),
                                     .faster_calls = job_.legs.faster_calls(id_),
                                     .unheard = job_.legs.near_unheard(),
                                     .unreached = job_.legs.some_unreached()});
  judge_end(end->on(event, now_ns, out), now_ns, out);
}

// ---- what others see ---------------------------------------------------------------------------

std::string Leg::waiting_for() const {
  switch (phase_) {
    case LegPhase::kDataplane:
      return job_.may_begin(id_) || !dataplane_ ? "sluice-dataplane of this node"
                                                : "another leg of the session";
    case LegPhase::kPeer:
      return dataplane_ ? "node " + peer_name_ : "sluice-dataplane of this node";
    case LegPhase::kForgetting:
      return "unfinished files to be removed";
    case LegPhase::kHandshake:
      return handshake_.waiting_for();
    case LegPhase::kAdopting:
      return "sluice-dataplane (what its workers have)";
    case LegPhase::kMoving:
      return watch_.waiting_for();
    case LegPhase::kFarewell:
      return "peer's last word";
    case LegPhase::kClosing:
      return "flows to end";
    case LegPhase::kSettling:
      return "what has arrived to be durable";
    case LegPhase::kReleasing:
      return "flows to be given back";
    case LegPhase::kIdle:
    case LegPhase::kParting:
    case LegPhase::kInquiring:
      break;  // between attempts, or after the end, of which the transfer speaks
  }
  return "";
}

// The transfer has it done only between attempts. A peer that has called is not asked.
uint64_t Leg::inquiry_due_ns() const {
  const bool asks = phase_ == LegPhase::kIdle && !job_.initiator && job_.began && !call_waits();
  return asks ? inquiries_.next_ns() : UINT64_MAX;
}

uint64_t Leg::due_ns() const {
  uint64_t due_ns = stream_.open() ? stream_.due_ns() : UINT64_MAX;
  switch (phase_) {
    case LegPhase::kIdle:  // nobody looks after a stream that was left open
      return UINT64_MAX;
    case LegPhase::kDataplane:
    case LegPhase::kPeer:
      return entered_ns_ + settings_.stall_timeout_ns;
    case LegPhase::kHandshake:
      return std::min(due_ns, handshake_.due_ns());
    case LegPhase::kAdopting:  // what is still to be answered is waited for, however long that takes
      return job_.pending() == 0 ? std::min(due_ns, entered_ns_ + kAdoptTimeoutNs) : due_ns;
    case LegPhase::kMoving:
      if (stream_.phase() == StreamPhase::kDown && job_.initiator && !handshake_.settled())
        due_ns = stream_.due_ns();
      return std::min(due_ns, watch_.due_ns());
    case LegPhase::kFarewell:
      return std::min(due_ns, farewell_due_ns());
    case LegPhase::kClosing:
      if (attempt_.last && (job_.pending() != 0 || !job_.legs.alone(id_))) return due_ns;
      return std::min(due_ns, entered_ns_ + kCloseTimeoutNs);
    case LegPhase::kParting:
      if (stream_.phase() == StreamPhase::kDown) due_ns = parting_waits().next_ns();
      if (parting_.awaited_until_ns != 0) due_ns = std::min(due_ns, parting_.awaited_until_ns);
      return std::min(due_ns, parting_.until_ns);
    default:
      return due_ns;
  }
}

LegRecord Leg::record(bool with_flows) const {
  LegRecord record{.peer = peer_name_, .left_out = left_out()};
  if (job_.began && agreement_.extent_bytes != 0) record.agreement = agreement_;
  if (!with_flows) return record;
  record.flows = lanes_.records();
  record.board_session = lanes_.session();
  if (dataplane_) record.board_generation = dataplane_->generation;
  return record;
}

}  // namespace sluice::transfer
