// How many extents a sending flow may have read that have not left yet.
//
// Pure; one owner: a sending flow. The flows of a worker read into one pool. A slow flow that is alone would
// fill it, and give back no more than it sends: flows that come later would wait for that. So a flow reads
// ahead what it sends in about a second, twice over, since it may speed up; and at least the two extents that
// control has set aside for it (kTxExtentsPerFlow, control/board/flow_table.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

class ReadAhead {
 public:
  static constexpr uint32_t kLeast = 2;
  static constexpr uint64_t kSpanNs = 1'000'000'000;

  // The first chunk of an extent leaves.
  void began(uint64_t now_ns) {
    advance(now_ns);
    ++now_;
  }
  uint32_t extents(uint64_t now_ns) {
    advance(now_ns);
    return kLeast + 2 * std::min(before_ + now_, kMost);
  }

 private:
  static constexpr uint32_t kMost = 1U << 20;

  void advance(uint64_t now_ns) {
    if (now_ns < since_ns_ + kSpanNs) return;
    before_ = now_ns < since_ns_ + 2 * kSpanNs ? now_ : 0;
    now_ = 0;
    since_ns_ = now_ns;
  }

  uint64_t since_ns_ = 0;
  uint32_t before_ = 0;  // extents that began in the span before
  uint32_t now_ = 0;     // and in this one
};

}  // namespace sluice
