// The delay of an empty path: nearly the least that was seen in the last 5 to 10 s.
//
// Pure. The clocks of two nodes differ, and drift, so that only differences of delays mean anything, and only
// over a while; a route that became longer shows after 10 s. It is the least but one, since the delay of one
// round alone may be a stranger's word (docs/WIRE.md 1.9). And no queue is longer than a whole round trip: a
// base that says so is a stranger's word too, or of a clock that was set since.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::rate {

class DelayBase {
 public:
  static constexpr uint64_t kWindowNs = 5'000'000'000;
  static constexpr double kQueueMaxS = 1;  // more is no queue, but a clock that was set, or a lie

  static constexpr uint64_t kRoundTripNoiseNs = 10'000'000;

  // Of a round, and of the same time the round trip, smoothed; 0: not known.
  void take(int64_t delay_ns, uint64_t round_trip_ns, uint64_t now_ns) {
    if (round_trip_ns != 0 && above_base_ns(delay_ns) / 2 > round_trip_ns + kRoundTripNoiseNs) {
      return set(delay_ns, now_ns);
    }
    if (now_ns - began_ns_ > kWindowNs) {
      before_ = now_;
      now_ = {};
      began_ns_ = now_ns;
    }
    now_.take(delay_ns);
  }
  // It was drained: nothing before counts.
  void set(int64_t delay_ns, uint64_t now_ns) {
    before_ = {};
    now_ = {.least_ns = delay_ns, .next_ns = delay_ns};
    began_ns_ = now_ns;
  }
  bool known() const { return base_ns() != INT64_MAX; }
  // What is queued, in seconds.
  double queue_s(int64_t delay_ns) const {
    return std::min(kQueueMaxS, static_cast<double>(above_base_ns(delay_ns)) * 1e-9);
  }

 private:
  struct Least {
    int64_t least_ns = INT64_MAX;
    int64_t next_ns = INT64_MAX;
    void take(int64_t delay_ns) {
      next_ns = std::min(next_ns, std::max(least_ns, delay_ns));
      least_ns = std::min(least_ns, delay_ns);
    }
  };
  uint64_t above_base_ns(int64_t delay_ns) const {
    if (!known() || delay_ns <= base_ns()) return 0;
    return static_cast<uint64_t>(delay_ns) - static_cast<uint64_t>(base_ns());
  }
  int64_t base_ns() const {
    Least both = now_;
    both.take(before_.least_ns);
    both.take(before_.next_ns);
    return both.next_ns != INT64_MAX ? both.next_ns : both.least_ns;
  }

  uint64_t began_ns_ = 0;
  Least now_;     // since began_ns_
  Least before_;  // of the window before
};

}  // namespace sluice::rate
