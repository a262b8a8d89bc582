// What is said of a paced flow: how far its gaps are from the ideal one, how long its bursts are, and how
// many of its frames a short queue drained at the target rate would have taken.
//
// Pure; one owner; no allocation after construction. Times are nanoseconds of one monotonic clock.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "perf/probe/ladder.h"

namespace sluice::probe {

// Quantiles of any number of values in fixed memory, exact below 256, else rounded down by less than 0.8 %.
class Quantiles {
 public:
  void add(uint64_t value, uint64_t times = 1) {
    counts_[bucket(value)] += times;
    count_ += times;
    max_ = times > 0 ? std::max(max_, value) : max_;
  }
  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }
  // Smallest value with at least `per_mille` of all at or below it; 0 without values.
  uint64_t at(uint32_t per_mille) const;

 private:
  static constexpr uint32_t kSubBits = 7;  // 128 buckets to an octave
  static constexpr uint32_t kBuckets = (64 - kSubBits + 1) << kSubBits;

  static uint32_t bucket(uint64_t value) {
    const auto width = static_cast<uint32_t>(std::bit_width(value));
    if (width <= kSubBits + 1) return static_cast<uint32_t>(value);
    const uint32_t shift = width - kSubBits - 1;
    return (shift << kSubBits) + static_cast<uint32_t>(value >> shift);
  }
  static uint64_t lowest_of(uint32_t bucket);

  std::array<uint64_t, kBuckets> counts_{};
  uint64_t count_ = 0;
  uint64_t max_ = 0;
};

// Frames less than half the ideal gap apart belong to one burst.
class GapMeter {
 public:
  explicit GapMeter(const Pace& pace)
      : ideal_ns_(8 * kSecondNs * pace.wire_bytes / std::max<uint64_t>(1, pace.rate_bps)) {}

  // `frames` left together at `now_ns`.
  void add(uint64_t now_ns, uint32_t frames) {
    if (frames == 0) return;
    const uint64_t gap_ns = now_ns - last_ns_;
    if (burst_ > 0) errors_.add(gap_ns > ideal_ns_ ? gap_ns - ideal_ns_ : ideal_ns_ - gap_ns);
    errors_.add(ideal_ns_, frames - 1);
    if (burst_ > 0 && 2 * gap_ns >= ideal_ns_) end_burst();
    burst_ += frames;
    last_ns_ = now_ns;
  }
  // Counts the burst under way; call before asking for bursts().
  void end_burst() {
    if (burst_ > 0) bursts_.add(burst_);
    burst_ = 0;
  }
  const Quantiles& errors_ns() const { return errors_; }
  const Quantiles& bursts() const { return bursts_; }

 private:
  const uint64_t ideal_ns_;
  uint64_t last_ns_ = 0;
  uint64_t burst_ = 0;
  Quantiles errors_;
  Quantiles bursts_;
};

// A queue of so many frames, drained at exactly the rate: what a port on the way would have dropped.
class VirtualQueue {
 public:
  VirtualQueue(const Pace& pace, uint32_t queue_frames)
      : frame_fp_((static_cast<__uint128_t>(8 * kSecondNs) * pace.wire_bytes << 32) /
                  std::max<uint64_t>(1, pace.rate_bps)),
        room_fp_(frame_fp_ * (queue_frames - 1)) {}

  void add(uint64_t now_ns, uint32_t frames) {
    const __uint128_t now_fp = static_cast<__uint128_t>(now_ns) << 32;
    empty_at_fp_ = std::max(empty_at_fp_, now_fp);
    for (uint32_t i = 0; i < frames && empty_at_fp_ - now_fp <= room_fp_; ++i) {
      empty_at_fp_ += frame_fp_;
      ++accepted_;
    }
  }
  uint64_t accepted() const { return accepted_; }

 private:
  // Nanoseconds with 32 bits of fraction: no drift over any run.
  const __uint128_t frame_fp_;
  const __uint128_t room_fp_;
  __uint128_t empty_at_fp_ = 0;
  uint64_t accepted_ = 0;
};

}  // namespace sluice::probe
