// By how much a worker's sleeps end later than they should, so that it can sleep that much shorter before a
// frame is due. Pure; time is what the caller passes.
//
// The average, not the most: what a sleep is late by now and then the pacer makes up for, and whoever keeps
// the most for long never sleeps again on a core that others need too, such as the threads that write files
// where a node has one core. Delays of 200 us made a source of small files spin for a third of that core.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

class WakeDelay {
 public:
  // More is the hypervisor's doing, or another thread's that had the core.
  static constexpr uint64_t kNsMax = 200'000;
  // One sleep weighs so little: a sixteenth.
  static constexpr uint64_t kWeight = 16;
  // Who never sleeps learns nothing: for each of these without a sleep an eighth is forgotten.
  static constexpr uint64_t kForgottenEveryNs = 1'000'000;
  static constexpr uint64_t kForgottenPart = 8;

  uint64_t ns() const { return mean_ns_; }

  // A sleep ended at `now_ns`, by `late_ns` later than it should have.
  void woke(uint64_t late_ns, uint64_t now_ns) {
    mean_ns_ = mean_ns_ - mean_ns_ / kWeight + std::min(late_ns, kNsMax) / kWeight;
    counted_ns_ = now_ns;
  }
  // It does not sleep, since too little time is left.
  void stayed_awake(uint64_t now_ns) {
    if (now_ns - std::min(now_ns, counted_ns_) < kForgottenEveryNs) return;
    mean_ns_ -= mean_ns_ / kForgottenPart;
    counted_ns_ = now_ns;
  }

 private:
  uint64_t mean_ns_ = 0;
  uint64_t counted_ns_ = 0;
};

}  // namespace sluice
