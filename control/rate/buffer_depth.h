// How much a bottleneck queues before it drops, where that is little.
//
// Pure. A law that keeps a queue of its own needs to know: where its queue is all that fits, nothing is left
// for a TCP beside it, and it never sees the longer queue that would make it yield. Loss of a queue that is
// full comes with the delay of a full one; that of the path comes with any. So the depth is taken from the
// rounds that lost, and is not believed when as much is lost while the queue stays well below it, when the
// delay never falls, or when hardly anything comes through any more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "control/rate/round_meter.h"

namespace sluice::rate {

class BufferDepth {
 public:
  static constexpr double kLeastS = 0.4e-3;  // shorter ones are no queue that could be kept

  // Of a round: the longest queue in it, and the shortest. Loss up to `expected` (0 to 1) is the path's.
  // Returns the loss, if it turns out to be the path's own.
  std::optional<double> take(const Round& round, double longest_s, double shortest_s, double expected,
                             uint64_t now_ns) {
    forget_old(now_ns);
    if (rounds_++ == 0) began_ns_ = now_ns - std::min(now_ns, round.duration_ns);
    count_.add(round);
    delivered_bps_ += round.delivered_bps;
    if (round.loss > 0) overflowed_s_ = std::min(overflowed_s_, longest_s);
    calmest_s_ = std::min(calmest_s_, longest_s);
    if (shortest_s > 1.3 * depth_s_) depth_s_ = 0;
    if (now_ns - began_ns_ < kWindowNs) return std::nullopt;
    const double loss = count_.loss();
    const bool own = loss_lower_bound(loss, count_.datagrams) > expected && !judge(now_ns);
    restart(now_ns);
    return own ? std::optional(loss) : std::nullopt;
  }
  // What was seen of this second so far does not count.
  void restart(uint64_t now_ns) {
    forget_old(now_ns);
    rounds_ = 0;
    count_ = {};
    delivered_bps_ = 0;
    overflowed_s_ = calmest_s_ = std::numeric_limits<double>::max();
  }
  double seconds() const { return depth_s_; }  // 0: not known, or not shallow

 private:
  static constexpr uint64_t kWindowNs = 1'000'000'000;
  static constexpr uint64_t kKeptNs = 10'000'000'000;
  static constexpr uint64_t kMistrustNs = 30'000'000'000;
  static constexpr double kShallowS = 16e-3;   // more leaves room enough beside a law's queue
  static constexpr double kLeastDepth = 0.25;  // of what it was at first
  static constexpr double kLeastRate = 0.1;
  static constexpr double kCalm = 0.6;
  static constexpr int kRestlessMost = 1;

  void forget_old(uint64_t now_ns) {
    if (now_ns - seen_ns_ > kKeptNs) depth_s_ = 0;
  }

  // Whether the loss of this second was a full queue's. If it was, that queue's length is the depth.
  bool judge(uint64_t now_ns) {
    if (now_ns < mistrusted_until_ns_ || overflowed_s_ > kShallowS) return true;
    if (depth_s_ == 0 && overflowed_s_ < kLeastS) return true;
    const double delivered_bps = delivered_bps_ / rounds_;
    if (depth_s_ == 0) {
      first_depth_s_ = overflowed_s_;
      first_bps_ = delivered_bps;
      restless_ = 0;
    }
    restless_ = calmest_s_ > kCalm * overflowed_s_ ? restless_ + 1 : 0;
    depth_s_ = overflowed_s_;
    seen_ns_ = now_ns;
    const bool good = depth_s_ >= std::max(kLeastS, kLeastDepth * first_depth_s_) &&
                      delivered_bps >= kLeastRate * first_bps_ && restless_ <= kRestlessMost;
    if (good) return true;
    depth_s_ = 0;
    mistrusted_until_ns_ = now_ns + kMistrustNs;
    return false;
  }

  double depth_s_ = 0;
  double first_depth_s_ = 0;  // since it is known
  double first_bps_ = 0;      // that came through then
  int restless_ = 0;          // seconds in a row in which the delay never fell: that is no queue's
  uint64_t seen_ns_ = 0;
  uint64_t mistrusted_until_ns_ = 0;
  // Of this second.
  int rounds_ = 0;
  uint64_t began_ns_ = 0;
  LossCount count_;
  double delivered_bps_ = 0;  // summed up
  // The least of the longest queues: of all rounds, and of those that lost.
  double calmest_s_ = std::numeric_limits<double>::max();
  double overflowed_s_ = std::numeric_limits<double>::max();
};

}  // namespace sluice::rate
