// Checks what a leg promises between two steps, whatever has happened to it.
// SPDX-License-Identifier: Apache-2.0
#include "control/leg/leg.h"
#include "dataplane/base/check.h"

namespace sluice::transfer {

void Leg::check_invariants() const {
  const bool closing = phase_ >= P::kClosing && phase_ <= P::kReleasing;
  DCHECK(job_.legs.stage(id_) == stage(), "its siblings know where it stands");
  // Between attempts it holds nothing, but for the flows of an earlier life of this control. A peer's answer
  // that all has ended waits on the stream by which it was asked.
  DCHECK(phase_ != P::kIdle || lanes_.empty() || claim_ != Claim::kNone || attempt_.detached,
         "an attempt gives back its flows");
  DCHECK(claim_ != Claim::kAdopted || phase_ <= P::kDataplane || phase_ > P::kReleasing || attempt_.detached,
         "flows are adopted at the beginning");
  // Moving
  DCHECK(!moving() || lanes_.empty() || job_.has_end(), "what is moved was agreed upon");
  DCHECK(!moving() || lanes_.empty() || job_.end()->running(),
         "the data end has an attempt while a leg moves data");
  DCHECK(!moving() || dataplane_ || lanes_.empty(), "flows need a dataplane");
  DCHECK(!moving() || lanes_.refused(), "a flow that was refused ends the attempt");
  // Its end
  DCHECK(phase_ != P::kSettling || attempt_.last, "what has come is made durable once all legs have ended");
  DCHECK(!attempt_.paused || attempt_.error, "a pause ends an attempt");
  DCHECK(!attempt_.released || closing || phase_ == P::kIdle || phase_ > P::kReleasing,
         "flows go at the end");
  DCHECK(!forgetting_ || phase_ == P::kForgetting || closing, "one attempt asks to forget");
  DCHECK(phase_ != P::kParting || !parting_.words.empty(), "the peer is told something");
}

}  // namespace sluice::transfer
