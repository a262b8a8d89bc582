// Checks what a source promises between two steps, whatever has happened to it.
// SPDX-License-Identifier: Apache-2.0
#include "control/source/source_end.h"
#include "dataplane/base/check.h"

namespace sluice::transfer {

void SourceEnd::check_invariants() const {
  DCHECK(running_ || legs_.begun() == 0, "legs move data within an attempt of the end");
  DCHECK(sender_.bytes_held() <= catalog().bytes_total(), "the peer has no more than there is");
  DCHECK(held_at_start_ <= catalog().bytes_total(), "nor had it at the beginning");
  DCHECK(list_.found.empty() || list_.phase == ListPhase::kFound || list_.phase == ListPhase::kNoting,
         "what was found of a list is taken, or noted first");
}

}  // namespace sluice::transfer
