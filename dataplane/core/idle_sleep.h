// How long a worker sleeps that has found nothing to do. Pure; time is what the caller passes.
//
// Each sleep is a little longer than the one before, until something is done. How long the first is that
// follows work decides what a transfer costs that waits for a disk: a worker that wakes for one or two
// datagrams, and finds nothing more, pays more for waking than for them. So it is what a quarter of the
// receive queue takes to fill, at the pace at which datagrams have moved of late, one way or the other; what
// is due by itself the caller knows. It grows by a quarter each time and shrinks at once: a session that
// begins is answered soon, and a pace that rises is followed with the next sleep.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

class IdleSleep {
 public:
  // Below it, waking up costs more than waiting.
  static constexpr uint64_t kNsMin = 10'000;
  // A burst may gather.
  static constexpr uint64_t kNsFirst = 20'000;
  // Where a queue loses what it has no room for: half of 256 frames stay free at 100 Gbit/s.
  static constexpr uint64_t kNsMaxLossy = 100'000;
  static constexpr uint64_t kNsMaxLossless = 400'000;
  static constexpr uint64_t kNsMaxWithoutFlows = 1'000'000;

  // The receive queue's room, in datagrams. 0: an arrival ends a sleep.
  IdleSleep(uint32_t queue_datagrams, bool loses)
      : quarter_(queue_datagrams / 4), longest_ns_(loses ? kNsMaxLossy : kNsMaxLossless) {}

  // A flow was opened: whoever opened it waits.
  void begin() { first_ns_ = kNsFirst; }
  void worked() { worked_ = true; }

  // Nothing is to do. `moved`: datagrams sent and received since the worker began.
  uint64_t next_ns(uint64_t now_ns, uint64_t moved, bool flows) {
    if (worked_) {
      worked_ = false;
      adapt(now_ns - std::min(now_ns, counted_ns_), moved - moved_);
      counted_ns_ = now_ns;
      moved_ = moved;
      next_ns_ = first_ns_;
    }
    return std::min(next_ns_, flows ? longest_ns_ : kNsMaxWithoutFlows);
  }
  // That long, or until something was due.
  void slept() { next_ns_ = std::min(next_ns_ * 2, kNsMaxWithoutFlows); }

 private:
  void adapt(uint64_t since_ns, uint64_t moved) {
    if (quarter_ == 0) return;
    const bool slow = moved == 0 || since_ns / moved > longest_ns_ / quarter_;
    const uint64_t fills_ns = slow ? longest_ns_ : since_ns * quarter_ / moved;
    first_ns_ = std::clamp(std::min(fills_ns, first_ns_ + first_ns_ / 4), kNsFirst, longest_ns_);
  }

  const uint64_t quarter_;
  const uint64_t longest_ns_;
  bool worked_ = false;
  uint64_t first_ns_ = kNsFirst;
  uint64_t next_ns_ = kNsFirst;
  uint64_t counted_ns_ = 0;
  uint64_t moved_ = 0;
};

}  // namespace sluice
