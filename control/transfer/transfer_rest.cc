// Between two attempts: a transfer rests until time or its peer lets it go on, or is paused until an operator
// does.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "control/transfer/transfer.h"
#include "control/words/place_text.h"

namespace sluice::transfer {

namespace {

// A peer that is full is asked again the sooner the nearer its turn is (within the bounds of Backoff), so
// that many that wait do not ask all the time.
constexpr uint64_t kComeAgainNs = 100 * kMillisecondNs;

}  // namespace

void Transfer::rest_leg(Leg& leg, const AttemptEnd& end, uint64_t now_ns) {
  leg.backoff().interrupted(now_ns, end.peer_paused);
  if (end.place != 0) leg.backoff().come_again(now_ns, end.place * kComeAgainNs);
  leg.expect_call(now_ns);
}

void Transfer::rest(const Error& error, const AttemptEnd& end, uint64_t now_ns) {
  const std::string node = "node " + peers();
  rest_ = Rest{.error = error,
               .end = end,
               .name = end.place != 0    ? node + ": its turn, " + place_text(end.place, end.places)
                       : end.peer_paused ? node + " (paused by its operator)"
                       : job_.initiator  ? error.message
                                         : node};
  for (auto& leg : legs_) {
    if (ends_.rested.contains(leg->id())) continue;
    const auto its = ends_.how.find(leg->id());
    rest_leg(*leg, its == ends_.how.end() ? end : its->second, now_ns);
  }
  ends_ = {};
  // A session that only waits for its turn, here or at the peer, keeps its number in the queue.
  if (end.place != 0 || phase_ == P::kQueued) {
    step_aside();
  } else {
    give_up_place();
  }
  phase_.change(P::kResting);
}

void Transfer::keep_resting(uint64_t now_ns) {
  if (release_ != Release::kNone) return;
  if (speaker().inquiring(!cancelled_ && !detached_ && !paused_, now_ns, out_)) return;
  if (speaker().take_peer_pauses() && !files_.away) return let_go_of_files();
  if (cancelled_) return end_with(error_, now_ns);
  if (detached_) return leave();
  if (paused_) return hold(std::nullopt, now_ns);
  if (job_.initiator && now_ns >= in_vain_since_ns() + settings_.resume_timeout_ns) {
    return hold(rest_->error, now_ns);
  }
  if (!job_.initiator && now_ns >= in_vain_since_ns() + settings_.keep_ns) {
    return end_with(Error{ErrorCode::kPeerUnreachable,
                          fmt::format("node {} has not called for {} s: its unfinished session is given up",
                                      peers(), settings_.keep_ns / kSecondNs)},
                    now_ns);
  }
  // Nothing is kept of what was not agreed upon: whoever began it may begin it once more.
  if (!job_.initiator && !job_.began && !call_waits()) return end_with(rest_->error, now_ns);
  if (!attached() && !told_of_end()) return;
  if (job_.initiator ? now_ns < next_attempt_ns() : !call_waits()) return;
  held_.reset();
  rest_.reset();
  if (told_of_end()) return begin_attempts(now_ns);  // that much can be heard without a place
  take_files_again(now_ns);
}

// Nobody will be there to let it go on.
bool Transfer::fails_at_once() const {
  return job_.request && job_.request->options.on_error == options::OnError::kFail;
}

Error Transfer::held_by(const Error& error) const {
  return {error.code,
          fmt::format("{}; once that is mended, 'sluice session continue {}' goes on with what is "
                      "on the disk",
                      error.message, job_.id.substr(0, 8))};
}

// Without an error an operator asked for it. Whoever will not be there to mend an error may have it end the
// session.
void Transfer::hold(const std::optional<Error>& error, uint64_t now_ns) {
  if (error && fails_at_once()) return end_with(error, now_ns);
  if (error) {
    paused_ = true;
    held_ = held_by(*error);
    write_record(Entry::kHeld, Durability::kPower, now_ns);
  }
  out_.log(LogLevel::kInfo, fmt::format("is paused{}", held_ ? ": " + held_->message : " by an operator"));
  enter_pause(now_ns);
}

void Transfer::enter_pause(uint64_t now_ns) {
  speaker().expect_call(now_ns);
  give_up_place();
  phase_.change(P::kPaused);
  let_go_of_files();
}

// Whoever is to check a file system must be able to unmount it. When the transfer goes on, files are taken
// again by their identity, and what they hold is read.
void Transfer::let_go_of_files() {
  release_ = Release::kPause;
  files_.away = true;
  job_.sources.reset();
  out_.add(ReleaseFiles{.keep = true});
}

// As after a restart: which files have their names, and which are still the ones that were made?
void Transfer::take_files_again(uint64_t now_ns) {
  if (!std::exchange(files_.away, false) || job_.destination() == nullptr) return want_attempts(now_ns);
  phase_.change(P::kRecovering);
  job_.destination()->files().recover(out_);
}

void Transfer::keep_paused(uint64_t now_ns) {
  if (release_ != Release::kNone) return;
  if (speaker().inquiring(!cancelled_ && !detached_ && paused_, now_ns, out_)) return;
  refuse_calls(Pause{.node = settings_.node_name}, now_ns);
  if (cancelled_) return end_with(error_, now_ns);
  if (detached_) return leave();
  if (told_of_end()) return begin_attempts(now_ns);  // that much can be heard while it is paused
  if (paused_) return;
  take_files_again(now_ns);
}

}  // namespace sluice::transfer
