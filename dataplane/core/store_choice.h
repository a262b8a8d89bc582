// How a worker writes what another core reads next: through its caches, or past them. Pure.
//
// Through the caches is twice as fast, as long as the lines come quickly from the core that read them last.
// Where they do not, as in some virtual machines, each line is waited for, and a chunk of 8 KiB takes eight
// times as long; past the caches it takes the same time always (docs/performance/where-the-time-goes.md).
// Such slow times last for milliseconds or for hours, and only long ones are worth a change: so a trial of
// the other way is compared with the mean of all that was written since the last one. Trials through the
// caches, which may take five times as long, become rarer with each that was in vain.
//
// A sender that keeps a given pace has idle time, which is worth less than the pace. So when it falls behind,
// it tries the other way at once: through the caches it judges by what it wrote since, and a trial through
// them ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

class StoreChoice {
 public:
  static constexpr uint64_t kFirstBytes = 64 << 20;      // until the first trial
  static constexpr uint64_t kThroughBytes = 1ULL << 30;  // through the caches, until the next
  static constexpr uint64_t kTrialPastBytes = 1 << 20;
  static constexpr uint64_t kPastBytes = 512 << 20;  // past them; twice that after each trial in vain
  static constexpr uint64_t kPastBytesMax = 8ULL << 30;
  // More than a ring, which is to be in the caches again.
  static constexpr uint64_t kTrialThroughBytes = 32 << 20;
  // A sender that kept pace is behind once it wrote so much while more was due all the time.
  static constexpr uint64_t kBehindBytes = 1 << 20;
  // From one such trial to the next; twice that after each in vain.
  static constexpr uint64_t kHastyBytes = 16 << 20;
  // What takes a turn that wrote less is mostly something else.
  static constexpr uint64_t kBytesMin = 4'096;
  // A turn that lasts longer was interrupted, and says nothing.
  static constexpr uint64_t kInterruptedNs = 500'000;
  // The other way must save a fifth.
  static constexpr double kWorth = 0.8;

  // For the turn that begins.
  bool past_caches() const { return past_caches_ != trial_; }

  // That turn has ended: it wrote so many bytes, and took so long. `on_pace`: nothing more was due.
  void turn(uint64_t bytes, uint64_t ns, bool on_pace) {
    const bool counts = bytes >= kBytesMin && ns <= kInterruptedNs;
    if (counts) (trial_ ? of_trial_ : before_).add(bytes, ns);
    written_bytes_ += bytes;
    look_at_pace(bytes, counts ? ns : 0, on_pace);
    if (written_bytes_ >= (trial_ ? trial_bytes() : due_bytes_)) return change(false);
    if (!kept_pace_ || behind_bytes_ < kBehindBytes) return;
    if (trial_ && past_caches_) {
      of_trial_ = {};  // in vain
      change(false);
    } else if (!trial_ && !past_caches_ && written_bytes_ >= hasty_bytes_) {
      before_ = since_pace_;
      change(true);
    }
  }

 private:
  struct Cost {
    uint64_t bytes = 0, ns = 0;
    void add(uint64_t more_bytes, uint64_t more_ns) {
      bytes += more_bytes;
      ns += more_ns;
    }
    double ns_per_byte() const { return static_cast<double>(ns) / static_cast<double>(bytes); }
  };

  uint64_t trial_bytes() const { return past_caches_ ? kTrialThroughBytes : kTrialPastBytes; }

  void look_at_pace(uint64_t bytes, uint64_t ns, bool on_pace) {
    if (on_pace) {
      kept_pace_ = true;
      behind_bytes_ = 0;
      since_pace_ = {};
      return;
    }
    behind_bytes_ += bytes;
    if (ns > 0) since_pace_.add(bytes, ns);
  }

  // A trial begins, or ends and is judged.
  void change(bool hasty) {
    written_bytes_ = 0;
    if (behind_bytes_ >= kBehindBytes)
      kept_pace_ = false;  // whoever is behind anyway loses nothing by a trial
    if (trial_) judge();
    trial_ = !trial_;
    hasty_ = hasty;
  }

  void judge() {
    const bool measured = before_.bytes != 0 && of_trial_.bytes != 0;
    if (measured && of_trial_.ns_per_byte() < before_.ns_per_byte() * kWorth) {
      past_caches_ = !past_caches_;
      due_bytes_ = past_caches_ ? kPastBytes : kThroughBytes;
      hasty_bytes_ = kHastyBytes;
    } else {
      if (hasty_) hasty_bytes_ = std::min(2 * hasty_bytes_, kThroughBytes);
      due_bytes_ = past_caches_ ? std::min(2 * due_bytes_, kPastBytesMax) : kThroughBytes;
    }
    before_ = of_trial_ = {};
  }

  bool past_caches_ = false, trial_ = false, hasty_ = false;
  uint64_t written_bytes_ = 0;  // of the trial, or since it
  uint64_t due_bytes_ = kFirstBytes;
  Cost before_, of_trial_;
  bool kept_pace_ = false;
  uint64_t behind_bytes_ = 0;  // since it was on pace
  uint64_t hasty_bytes_ = kHastyBytes;
  Cost since_pace_;
};

}  // namespace sluice
