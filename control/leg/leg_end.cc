// The end of an attempt: the leg closes its flows, waits for all answers, and gives back what it took.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "control/leg/leg.h"

namespace sluice::transfer {

void Leg::stop(Error error, LastWord word, uint64_t now_ns, Effects& out) {
  if (!goes_on()) return;  // the first reason stays
  if (word == LastWord::kFailure) error = job_.with_user(std::move(error), peer_name_);
  if (word != LastWord::kNone && stream_.open()) {
    if (word == LastWord::kPause) {
      stream_.send(Pause{.node = settings_.node_name}, out);
    } else if (word == LastWord::kTurn) {
      stream_.send(Pause{.node = settings_.node_name, .place = 1, .places = 1}, out);
    } else {
      stream_.send(failure_of(error), out);
    }
  }
  attempt_.paused = word == LastWord::kPause;
  attempt_.error = std::move(error);
  close(now_ns, out);
}

void Leg::close(uint64_t now_ns, Effects& out) {
  watch_.bottleneck().conclude(job_, lanes_, now_ns);
  if (parting_.awaited_until_ns == 0) stream_.hang_up(now_ns, out);
  handshake_.halt();
  attempt_.last = job_.legs.is_last(id_);
  if (job_.has_end()) {
    if (attempt_.last) {
      job_.end()->halt();
    } else {
      job_.end()->leave(id_, out);
    }
  }
  if (claim_ == Claim::kAsked) {
    out.add(DropClaim{id_});
  } else if (attempt_.board_lost) {
    lanes_.drop();
  } else {
    lanes_.close(out);
  }
  if (claim_ == Claim::kAdopted) claim_ = Claim::kNone;  // the next attempt opens flows of its own
  enter(P::kClosing, now_ns);
}

// A control that stops says nothing: the peer looks for the next one.
void Leg::detach(uint64_t now_ns) {
  attempt_.detached = true;
  if (phase_ == P::kIdle || phase_ >= P::kClosing) return;
  attempt_.error =
      Error{ErrorCode::kDaemonNotRunning,
            fmt::format("sluice-control of node {} was stopped: the session goes on when it runs "
                        "again",
                        settings_.node_name)};
  handshake_.halt();
  if (job_.has_end()) job_.end()->halt();
  attempt_.last = true;
  enter(P::kClosing, now_ns);
}

// The last leg waits for all that the data end has under way, and for the flows of the others. Others wait
// for their own flows.
void Leg::finish_closing(uint64_t now_ns, Effects& out) {
  const bool flows_ended = claim_ != Claim::kAsked && (attempt_.board_lost || lanes_.all_closed() ||
                                                       now_ns - entered_ns_ >= kCloseTimeoutNs);
  if (phase_ == P::kClosing) {
    if (attempt_.detached) {
      if (job_.pending() == 0 && !forgetting_) attempt_over(now_ns, out);
    } else if (flows_ended && !attempt_.last) {
      enter(P::kReleasing, now_ns);
      out.add(ReleaseFlows{.leg = id_, .keep_objects = true});
    } else if (flows_ended && job_.pending() == 0 && job_.legs.alone(id_)) {
      enter(P::kSettling, now_ns);
      if (job_.has_end()) job_.end()->settle(out);
    }
  } else if (phase_ == P::kSettling) {
    if (job_.pending() != 0) return;
    enter(P::kReleasing, now_ns);
    out.add(ReleaseFlows{.leg = id_});
  } else if (attempt_.released && handshake_.pending() == 0 && !stream_.call_pending() &&
             (!attempt_.last || job_.pending() == 0) && !forgetting_) {
    attempt_over(now_ns, out);
  }
}

void Leg::on(const FlowsReleased&) { attempt_.released = true; }

void Leg::attempt_over(uint64_t now_ns, Effects& out) {
  end_ = AttemptEnd{.error = attempt_.error,
                    .paused = attempt_.paused,
                    .peer_paused = attempt_.peer_paused.has_value(),
                    .place = attempt_.peer_paused ? attempt_.peer_paused->place : 0,
                    .places = attempt_.peer_paused ? attempt_.peer_paused->places : 0,
                    .peer_failed = attempt_.peer_failed,
                    .peer_ended = attempt_.peer_ended,
                    .peer_forgot = handshake_.peer_forgot(),
                    .contacted = handshake_.contacted() || attempt_.peer_paused || attempt_.fell,
                    .board_lost = attempt_.board_lost};
  wants_.flows_changed = !attempt_.detached;
  if (!attempt_.detached) {
    handshake_.end();
    if (job_.has_end()) {
      if (attempt_.last) {
        job_.end()->attempt_over();
      } else {
        job_.end()->left(id_, out);
      }
    }
    lanes_.drop();
  }
  enter(P::kIdle, now_ns);
}

}  // namespace sluice::transfer
