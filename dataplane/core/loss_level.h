// How many datagrams a path has lost, out of how many have left and how many of those have come.
//
// Pure; one owner. The difference also counts what is only late, so it goes up and down; and what one status
// said of it may be false. What is wanted of it only grows: it grows where the difference exceeds the most of
// the last while.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

class LossLevel {
 public:
  // A false level hides losses for one to two of these. A longer one would hide them longer; a shorter one
  // would count the same late datagrams more than once.
  static constexpr uint64_t kSpanNs = 2'000'000'000;

  // `missing`: of the numbers up to the highest that came, those that have not. Returns how many were lost in
  // all.
  uint64_t update(uint64_t missing, uint64_t now_ns) {
    if (missing > top_) {
      lost_ += missing - top_;
      top_ = missing;
    }
    span_top_ = std::max(span_top_, missing);
    if (now_ns - span_began_ns_ >= kSpanNs) {
      top_ = span_top_;
      span_top_ = missing;
      span_began_ns_ = now_ns;
    }
    return lost_;
  }

 private:
  uint64_t lost_ = 0;
  uint64_t top_ = 0;  // what `missing` must exceed to count
  uint64_t span_top_ = 0;
  uint64_t span_began_ns_ = 0;
};

// Of `end` numbers: `came` are here, and `damaged` were dropped because their content could not be read.
inline uint64_t missing_of(uint64_t end, uint64_t came, uint64_t damaged) {
  const uint64_t here = came + damaged < came ? UINT64_MAX : came + damaged;
  return end - std::min(end, here);
}

}  // namespace sluice
