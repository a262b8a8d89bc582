// What of each name is kept besides its bytes, mode and time, because an operator asked for it.
//
// Plain data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::selection {

struct Keep {
  bool owner = false;
  bool group = false;
  bool numeric_ids = false;  // both by their numbers alone; otherwise by their names, where these are known

  bool operator==(const Keep&) const = default;
  bool anything() const { return owner || group; }

  // As it travels and is journalled. Bits that are not known here stay something that cannot be kept.
  static constexpr uint32_t kOwner = 1;
  static constexpr uint32_t kGroup = 2;
  static constexpr uint32_t kNumericIds = 4;
  static constexpr uint32_t kKnown = kOwner | kGroup | kNumericIds;
  uint32_t bits() const {
    return (owner ? kOwner : 0) | (group ? kGroup : 0) | (numeric_ids ? kNumericIds : 0);
  }
  static Keep of(uint32_t bits) {
    return {.owner = (bits & kOwner) != 0,
            .group = (bits & kGroup) != 0,
            .numeric_ids = (bits & kNumericIds) != 0};
  }
};

}  // namespace sluice::selection
