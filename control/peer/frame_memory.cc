// SPDX-License-Identifier: Apache-2.0
#include "control/peer/frame_memory.h"

#include <algorithm>

namespace sluice::peer {

std::unique_ptr<FrameMemory::Lease> FrameMemory::lease(const std::shared_ptr<FrameMemory>& memory,
                                                       std::string peer, size_t bytes,
                                                       std::function<void()> wake) {
  // A frame of more than all there is would wait for ever.
  const size_t counted = std::min(bytes, memory->in_bytes_max_);
  std::unique_ptr<Lease> lease(new Lease(memory, std::move(peer), counted, std::move(wake)));
  memory->waiting_.push_back(lease.get());
  memory->grant();
  return lease;
}

void FrameMemory::end(const Lease* lease) {
  if (lease->granted_) {
    in_bytes_ -= lease->bytes_;
    reading_.erase(lease->peer_);
  } else {
    waiting_.remove(const_cast<Lease*>(lease));
  }
  grant();
}

// In turn: who needs much is not overtaken for ever by those who need less. A peer that has its frame
// under way holds up no other.
void FrameMemory::grant() {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    Lease* const lease = *at;
    if (reading_.contains(lease->peer_)) {
      ++at;
      continue;
    }
    if (in_bytes_ + lease->bytes_ > in_bytes_max_) return;
    in_bytes_ += lease->bytes_;
    reading_.insert(lease->peer_);
    lease->granted_ = true;
    at = waiting_.erase(at);
    lease->wake_();
  }
}

}  // namespace sluice::peer
