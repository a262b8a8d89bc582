// The round trip of a flow, out of what its peer echoes: smoothed, and the shortest of the last while.
//
// Pure; one owner. An echo that fits nothing that can have been sent is refused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

class RoundTrip {
 public:
  // A longer one is no round trip: a sender stops long before.
  static constexpr uint64_t kLongestNs = 10'000'000'000;
  // The shortest is forgotten after one to two of these, as paths change.
  static constexpr uint64_t kShortestSpanNs = 10'000'000'000;
  // A receiver tells time by the beginning of its turn, and may so say that it held a datagram for longer
  // than it was there: by a turn, which a busy machine makes long.
  static constexpr uint64_t kHeldTooLongNs = 5'000'000;
  // The round trip, while only such echoes have come: it is too short to be measured.
  static constexpr uint64_t kUnseenNs = 1'000;

  RoundTrip() = default;
  explicit RoundTrip(uint64_t opened_ns) : opened_ns_(opened_ns), span_began_ns_(opened_ns) {}

  // False when the echo cannot be of a datagram of this flow. 0: there is none yet.
  bool echoed(uint64_t send_time_ns, uint64_t hold_ns, uint64_t now_ns) {
    if (send_time_ns == 0) return true;
    if (send_time_ns < opened_ns_ || send_time_ns >= now_ns) return false;
    const uint64_t since_ns = now_ns - send_time_ns;
    if (hold_ns >= since_ns) {
      if (hold_ns - since_ns > kHeldTooLongNs) return false;
      if (smoothed_ns_ == 0) smoothed_ns_ = kUnseenNs;
      return true;
    }
    const uint64_t sample_ns = since_ns - hold_ns;
    if (sample_ns > kLongestNs) return false;
    smoothed_ns_ = smoothed_ns_ == 0 ? sample_ns : smoothed_ns_ - smoothed_ns_ / 8 + sample_ns / 8;
    if (now_ns - span_began_ns_ >= kShortestSpanNs) {
      before_ns_ = span_ns_;
      span_ns_ = sample_ns;
      span_began_ns_ = now_ns;
    }
    span_ns_ = span_ns_ == 0 ? sample_ns : std::min(span_ns_, sample_ns);
    return true;
  }
  uint64_t smoothed_ns() const { return smoothed_ns_; }  // 0: not known
  uint64_t shortest_ns() const { return before_ns_ == 0 ? span_ns_ : std::min(before_ns_, span_ns_); }

 private:
  uint64_t opened_ns_ = 0;
  uint64_t smoothed_ns_ = 0;
  uint64_t span_began_ns_ = 0;
  uint64_t span_ns_ = 0;    // the shortest since then
  uint64_t before_ns_ = 0;  // and in the span before
};

}  // namespace sluice
