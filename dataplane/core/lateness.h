// How late datagrams come that others have overtaken: their delay beyond the shortest of the last while.
//
// Pure; one owner: a receiving flow. Clocks of two machines need not agree, only go alike.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

class Lateness {
 public:
  // What one datagram said is forgotten after one to two of these.
  static constexpr uint64_t kSpanNs = 4'000'000'000;
  // A longer one is no lateness: a false send time, or a path that stood still.
  static constexpr uint64_t kMostNs = 5'000'000'000;

  void arrived(int64_t delay_ns, bool overtaken, uint64_t now_ns) {
    if (now_ns - span_began_ns_ >= kSpanNs) {
      const bool next = now_ns - span_began_ns_ < 2 * kSpanNs;
      before_ = next ? span_ : Span();
      span_ = Span();
      span_began_ns_ = now_ns;
    }
    span_.shortest_ns = std::min(span_.shortest_ns, delay_ns);
    if (!overtaken) return;
    const int64_t shortest_ns = std::min(span_.shortest_ns, before_.shortest_ns);
    const uint64_t late_ns = static_cast<uint64_t>(delay_ns) - static_cast<uint64_t>(shortest_ns);
    if (late_ns <= kMostNs) span_.latest_ns = std::max(span_.latest_ns, late_ns);
  }
  // The most of the last while; 0: nothing was overtaken.
  uint64_t latest_ns() const { return std::max(span_.latest_ns, before_.latest_ns); }

 private:
  struct Span {
    int64_t shortest_ns = INT64_MAX;
    uint64_t latest_ns = 0;
  };
  Span span_;
  Span before_;
  uint64_t span_began_ns_ = 0;
};

}  // namespace sluice
