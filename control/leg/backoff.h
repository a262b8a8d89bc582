// What follows when an attempt has ended with an error, and when the next one is due.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dataplane/base/error.h"

namespace sluice::transfer {

enum class Remedy : uint8_t {
  kTime,      // it may be well later
  kOperator,  // somebody must do something; what has arrived is kept
  kNone,      // the transfer ends
};
Remedy remedy_of(ErrorCode code);

// Waits between attempts: each longer than the one before, until something moves.
class Backoff {
 public:
  static constexpr uint64_t kMinNs = 200'000'000;
  static constexpr uint64_t kMaxNs = 5'000'000'000;

  Backoff() = default;
  Backoff(uint64_t min_ns, uint64_t max_ns) : min_ns_(min_ns), max_ns_(max_ns) {}

  // An attempt ended at `now_ns`. `peer_is_well`: it said itself that it waits.
  void interrupted(uint64_t now_ns, bool peer_is_well);
  // The peer will have time for it later, and said when to ask again.
  void come_again(uint64_t now_ns, uint64_t after_ns);
  // For so long nobody tried: this node had no place.
  void excuse(uint64_t waited_ns) {
    if (since_ns_ != 0) since_ns_ += waited_ns;
  }
  void moved() { since_ns_ = wait_ns_ = next_ns_ = 0; }
  void hurry() { next_ns_ = 0; }                 // the next attempt may be at once
  uint64_t next_ns() const { return next_ns_; }  // of the next attempt
  // Since when no attempt got anywhere; 0: data moves.
  uint64_t since_ns() const { return since_ns_; }

 private:
  uint64_t min_ns_ = kMinNs;
  uint64_t max_ns_ = kMaxNs;
  uint64_t since_ns_ = 0;
  uint64_t wait_ns_ = 0;
  uint64_t next_ns_ = 0;
};

}  // namespace sluice::transfer
