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
  bool xattrs = false;       // extended attributes of users
  bool acls = false;         // POSIX ACLs, with the owners and groups that they name
  bool top = false;          // of "DIR/" the directory's own mode and time as well

  bool operator==(const Keep&) const = default;
  bool anything() const { return owner || group || xattrs || acls || top; }
  bool extended() const { return xattrs || acls; }
  bool names_accounts() const { return owner || group || acls; }

  // As it travels and is journalled. Bits that are not known here stay something that cannot be kept.
  static constexpr uint32_t kOwner = 1;
  static constexpr uint32_t kGroup = 2;
  static constexpr uint32_t kNumericIds = 4;
  static constexpr uint32_t kXattrs = 8;
  static constexpr uint32_t kAcls = 16;
  static constexpr uint32_t kTop = 32;
  static constexpr uint32_t kKnown = kOwner | kGroup | kNumericIds | kXattrs | kAcls | kTop;
  uint32_t bits() const {
    return (owner ? kOwner : 0) | (group ? kGroup : 0) | (numeric_ids ? kNumericIds : 0) |
           (xattrs ? kXattrs : 0) | (acls ? kAcls : 0) | (top ? kTop : 0);
  }
  static Keep of(uint32_t bits) {
    return {.owner = (bits & kOwner) != 0,
            .group = (bits & kGroup) != 0,
            .numeric_ids = (bits & kNumericIds) != 0,
            .xattrs = (bits & kXattrs) != 0,
            .acls = (bits & kAcls) != 0,
            .top = (bits & kTop) != 0};
  }
};

}  // namespace sluice::selection
