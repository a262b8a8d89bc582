// A run of bytes of a file or an object.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::base {

// As it comes from a peer its end may be anywhere, even beyond the largest number.
struct Range {
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t end() const { return offset + length; }
  bool operator==(const Range&) const = default;
};

}  // namespace sluice::base
