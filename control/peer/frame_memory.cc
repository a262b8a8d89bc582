// SPDX-License-Identifier: Apache-2.0
#include "control/peer/frame_memory.h"

#include <algorithm>

namespace sluice::peer {

std::unique_ptr<FrameMemory::Claim> FrameMemory::claim(const std::shared_ptr<FrameMemory>& memory,
                                                       std::string peer, size_t bytes,
                                                       std::function<void()> wake) {
  // A frame of more than all there is would wait for ever.
  const size_t counted = std::min(bytes, memory->in_bytes_max_);
  std::unique_ptr<Claim> claim(new Claim(memory, std::move(peer), counted, std::move(wake)));
  memory->waiting_.push_back(claim.get());
  memory->grant();
  return claim;
}

void FrameMemory::end(const Claim* claim) {
  if (claim->granted_) {
    in_bytes_ -= claim->bytes_;
    reading_.erase(claim->peer_);
  } else {
    waiting_.remove(const_cast<Claim*>(claim));
  }
  grant();
}

// In turn: who needs much is not overtaken for ever by those who need less. A peer that has its frame
// under way holds up no other.
void FrameMemory::grant() {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    Claim* const claim = *at;
    if (reading_.contains(claim->peer_)) {
      ++at;
      continue;
    }
    if (in_bytes_ + claim->bytes_ > in_bytes_max_) return;
    in_bytes_ += claim->bytes_;
    reading_.insert(claim->peer_);
    claim->granted_ = true;
    at = waiting_.erase(at);
    claim->wake_();
  }
}

}  // namespace sluice::peer
