// SPDX-License-Identifier: Apache-2.0
#include "control/leg/backoff.h"

#include <algorithm>

namespace sluice::transfer {

Remedy remedy_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kPeerUnreachable:
    case ErrorCode::kDaemonNotRunning:
    case ErrorCode::kStalled:
    case ErrorCode::kResources:
      return Remedy::kTime;
    case ErrorCode::kNoSpace:
    case ErrorCode::kStorage:
    case ErrorCode::kPeerUntrusted:
      return Remedy::kOperator;
    default:
      return Remedy::kNone;
  }
}

void Backoff::interrupted(uint64_t now_ns, bool peer_is_well) {
  if (since_ns_ == 0 || peer_is_well) since_ns_ = now_ns;
  wait_ns_ = std::clamp(wait_ns_ * 2, min_ns_, max_ns_);
  next_ns_ = now_ns + wait_ns_;
}

void Backoff::come_again(uint64_t now_ns, uint64_t after_ns) {
  since_ns_ = now_ns;
  wait_ns_ = 0;
  next_ns_ = now_ns + std::clamp(after_ns, kMinNs, kMaxNs);
}

}  // namespace sluice::transfer
