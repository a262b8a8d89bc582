// What a path carries that drops what is too much without a queue that could be seen.
//
// Pure. There the only sign of too much is loss, and whoever looks for it all the time leaves nothing to a
// TCP beside it, for which each loss is a reason to halve. So after such a loss the law stays below what it
// knew the path to carry: well below at first, so that others can grow, then a little, and looks for more
// seldom.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

namespace sluice::rate {

class Ceiling {
 public:
  // So much was too much.
  void touch(double window_bits, uint64_t now_ns) {
    window_bits_ = window_bits;
    touched_ns_ = now_ns;
  }
  void forget() { window_bits_ = 0; }
  bool found_lately(uint64_t now_ns) const { return touched_ns_ != 0 && now_ns - touched_ns_ < kLatelyNs; }
  // The window must not be more; the largest number where there is no ceiling.
  double limit_bits(uint64_t now_ns) const {
    if (window_bits_ == 0 || now_ns - touched_ns_ > kWellBelowNs + kBelowNs)
      return std::numeric_limits<double>::max();
    return window_bits_ * (now_ns - touched_ns_ < kWellBelowNs ? kWellBelow : kBelow);
  }

 private:
  static constexpr uint64_t kWellBelowNs = 3'000'000'000;
  static constexpr uint64_t kBelowNs = 10'000'000'000;
  static constexpr uint64_t kLatelyNs = 60'000'000'000;
  static constexpr double kWellBelow = 0.85;
  static constexpr double kBelow = 0.95;

  double window_bits_ = 0;
  uint64_t touched_ns_ = 0;
};

}  // namespace sluice::rate
