// Checks what a transfer promises between two steps, whatever has happened to it.
//
// The simulator, the fuzzers and debug builds look after each step (dataplane/base/check.h).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/transfer/transfer.h"
#include "dataplane/base/check.h"

namespace sluice::transfer {

void Transfer::check_invariants() const {
  const bool ended = phase_ > P::kReleasing && phase_ <= P::kAware;
  const bool under_way = any_leg([](const Leg& leg) { return !leg.idle(); });
  DCHECK(!legs_.empty(), "a transfer has a leg");
  DCHECK(phase_ != P::kActive || !job_.legs.all_away(), "it is under way while a leg is");
  DCHECK(phase_ != P::kQueued || !under_way, "whoever waits for a place has no attempt");
  DCHECK(phase_ != P::kOver || !under_way || detached_, "what is over asks for nothing");
  // Why there is no attempt.
  DCHECK(phase_ != P::kResting || rest_, "a rest has a reason");
  DCHECK(phase_ != P::kForgetting || rest_, "what is forgotten was interrupted");
  DCHECK(!held_ || phase_ >= P::kEnding || paused_ || rest_, "what an operator must mend keeps it waiting");
  // Its place: an attempt runs on one, and nobody keeps one while it rests.
  DCHECK(phase_ != P::kResting || turn_.place <= Place::kAside, "a transfer that rests holds no place");
  DCHECK(phase_ != P::kPaused || turn_.place == Place::kNone, "a paused transfer is in no queue");
  DCHECK(phase_ < P::kEnding || phase_ >= P::kLeaving || turn_.place == Place::kNone, "nor is one that ends");
  // Its end.
  DCHECK(!ended || outcome_, "it is told once unfinished files have gone");
  DCHECK(phase_ != P::kEnding || error_ || job_.complete(), "it succeeds when all of it is there");
  DCHECK(!cancelled_ || error_ || phase_ == P::kNew, "a cancelled transfer knows why it ends");
  DCHECK(release_ != Release::kEnd || phase_ == P::kReleasing, "unfinished files go at the end");
  DCHECK(release_ != Release::kLeave || phase_ == P::kLeaving, "files are left to the next control");
  DCHECK(release_ != Release::kPause || files_.away, "who rests without its files takes them again");
  // Its legs.
  if (!detached_) job_.legs.check_invariants();
  DCHECK(phase_ >= P::kParting || ends_.parting.empty(), "peers are told of the end last");
  for (const LegId id : ends_.parting) DCHECK(id < legs_.end_id(), "a leg of this transfer");
  for (const LegId id : ends_.rested)
    DCHECK(phase_ != P::kActive || legs_[id]->idle(), "a leg that waits has no attempt");
  for (const auto& each : legs_) each->check_invariants();
  // What it moves.
  if (!job_.has_end()) return;
  DCHECK(job_.catalog()->growing() || job_.bytes_done() <= job_.bytes_total(), "no byte is done twice");
  job_.end()->check_invariants();
}

}  // namespace sluice::transfer
