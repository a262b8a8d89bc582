// Checks what a destination promises between two steps, whatever has happened to it.
// SPDX-License-Identifier: Apache-2.0
#include "control/destination/destination_end.h"
#include "dataplane/base/check.h"

namespace sluice::transfer {

void DestinationEnd::check_invariants() const {
  DCHECK(running_ || legs_.begun() == 0, "legs move data within an attempt of the end");
  DCHECK(!running_ || receiver_, "what arrives has a receiver");
  if (!receiver_) return;
  DCHECK(receiver_->bytes_written() <= catalog().bytes_total(), "no byte is written that was not offered");
  for (ObjectId object; object < commits_.end_id(); ++object) {
    const CommitPhase phase = commits_[object].phase();
    DCHECK(phase != CommitPhase::kNamed || receiver_->done(object) || failing_.contains(object),
           "a file that has its name is done");
    DCHECK(phase < CommitPhase::kFinishing || phase == CommitPhase::kNamed || failing_.contains(object) ||
               receiver_->written(object).complete(),
           "a file is finished when all of it is there");
  }
  for (const auto& [object, failing] : failing_)
    DCHECK(!receiver_->done(object), "what is done does not fail any more");
  for (const auto& [object, error] : sync_errors_)
    DCHECK(!commits_[object].idle(), "its journal is being told");
  for (const auto& [object, crc] : read_crcs_)
    DCHECK(commits_[object].phase() == CommitPhase::kReadingBack, "it is being read back");
  for (const ObjectId object : due_.finished)
    DCHECK(!receiver_->done(object), "what waits for its name has none");
}

}  // namespace sluice::transfer
