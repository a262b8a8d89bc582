// Which status of a flow is the newest, so that its levels count (docs/WIRE.md 1.9).
//
// Pure; one owner: the sender of a flow. Statuses overtake one another by as much as a channel disorders
// them: on HIPSTER's (docs/SOURCES.md), where the mean delay is 147 ms, hundreds at a time. But one that was
// forged with a high number must not silence the true ones after it. That it lied is shown by lower ones in a
// row, and no higher one between them: few if they come in order, as on most paths, or many.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice {

class StatusOrder {
 public:
  // Of numbers that come in any order, so many are in order by a chance of 1 / 16!: 5e-14.
  static constexpr uint32_t kInOrderMax = 16;
  // Where n numbers are under way at once, the chance of this many without one above all others is about
  // exp(-(this many)^2 / (2 n)): 1e-14 for a thousand.
  static constexpr uint32_t kOvertakenMax = 256;

  // Whether the status with this number is newer than all that count.
  bool newest(uint64_t number) {
    in_order_ = number > before_ ? in_order_ + 1 : 1;
    before_ = number;
    if (number < newest_ && in_order_ <= kInOrderMax && ++overtaken_ <= kOvertakenMax) return false;
    newest_ = number;
    overtaken_ = in_order_ = 0;
    return true;
  }

 private:
  uint64_t newest_ = 0;
  uint64_t before_ = 0;
  uint32_t overtaken_ = 0;
  uint32_t in_order_ = 0;  // of those, each above the one before
};

}  // namespace sluice
