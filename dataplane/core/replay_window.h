// Which of the newest numbers have come: what comes again, or is older than all that is remembered, is a
// copy.
//
// For statuses and probes; data have a larger one, on the board (seq_window.h). The way of RFC 6479: bits
// of a ring, of which those that the newest number passes are cleared. To be asked before a datagram is
// opened, and told after that. Hot, pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace sluice {

class ReplayWindow {
 public:
  static constexpr uint64_t kRemembered = 1024;

  bool is_new(uint64_t number) const {
    if (number >= end_) return true;
    return end_ - number <= kRemembered && !has(number);
  }
  void mark(uint64_t number) {
    if (number >= end_) {
      const uint64_t passed = number - end_;
      if (passed >= kRemembered) {
        bits_.fill(0);
      } else {
        for (uint64_t n = end_; n != number; ++n) clear(n);
      }
      end_ = number + 1;
    }
    bits_[number / 64 % bits_.size()] |= uint64_t{1} << (number % 64);
  }

 private:
  bool has(uint64_t number) const { return ((bits_[number / 64 % bits_.size()] >> (number % 64)) & 1) != 0; }
  void clear(uint64_t number) { bits_[number / 64 % bits_.size()] &= ~(uint64_t{1} << (number % 64)); }

  std::array<uint64_t, kRemembered / 64> bits_{};
  uint64_t end_ = 0;  // one more than the newest
};

}  // namespace sluice
