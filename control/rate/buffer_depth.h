// How much a bottleneck queues before it drops, where that is little.
//
// Pure. A law that keeps a queue of its own needs to know: where its queue is all that fits, nothing is left
// for a TCP beside it, and it never sees the longer queue that would make it yield. Loss of a queue that is
// full comes with the delay of a full one; that of the path comes with any. So the depth is taken from the
// rounds that lost, and is not believed when as much is lost while the queue stays well below it, or
// little comes through any more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "control/rate/round_meter.h"

namespace sluice::rate {

class BufferDepth {
 public:
  // Of a round: the longest queue in it, and the shortest. Loss up to `expected` (0 to 1) is the path's.
  void take(const Round& round, double longest_s, double shortest_s, double expected, uint64_t now_ns) {
    if (rounds_++ == 0) began_ns_ = now_ns - round.duration_ns;
    datagrams_ += round.datagrams;
    lost_ += round.datagrams * round.loss;
    delivered_bps_ += round.delivered_bps;
    if (round.loss > 0) full_s_ = std::min(full_s_, longest_s);
    if (shortest_s > 1.3 * depth_s_) depth_s_ = 0;
    if (now_ns - began_ns_ < kWindowNs) return;
    if (loss_lower_bound(lost_ / std::max(1.0, datagrams_), datagrams_) > expected) {
      judge(now_ns);
    } else if (now_ns - seen_ns_ > kKeptNs) {
      depth_s_ = 0;
    }
    restart();
  }
  // What was seen of this second so far does not count.
  void restart() {
    rounds_ = 0;
    datagrams_ = lost_ = delivered_bps_ = 0;
    full_s_ = std::numeric_limits<double>::max();
  }
  double seconds() const { return depth_s_; }  // 0: not known, or not shallow

 private:
  static constexpr uint64_t kWindowNs = 1'000'000'000;
  static constexpr uint64_t kKeptNs = 10'000'000'000;
  static constexpr uint64_t kMistrustNs = 30'000'000'000;
  static constexpr double kShallowS = 16e-3;  // more leaves room enough beside a law's queue
  static constexpr double kLeastShare = 0.25;

  void judge(uint64_t now_ns) {
    if (now_ns < mistrusted_until_ns_ || full_s_ > kShallowS) return;
    const double delivered_bps = delivered_bps_ / rounds_;
    if (depth_s_ == 0) {
      first_s_ = full_s_;
      first_bps_ = delivered_bps;
    }
    depth_s_ = full_s_;
    seen_ns_ = now_ns;
    if (depth_s_ < kLeastShare * first_s_ || delivered_bps < kLeastShare * first_bps_) {
      depth_s_ = 0;
      mistrusted_until_ns_ = now_ns + kMistrustNs;
    }
  }

  double depth_s_ = 0;
  double first_s_ = 0;  // when it became known, and what came through then
  double first_bps_ = 0;
  uint64_t seen_ns_ = 0;
  uint64_t mistrusted_until_ns_ = 0;
  // Of this second.
  int rounds_ = 0;
  uint64_t began_ns_ = 0;
  double datagrams_ = 0;
  double lost_ = 0;
  double delivered_bps_ = 0;  // summed up
  double full_s_ = std::numeric_limits<double>::max();
};

}  // namespace sluice::rate
