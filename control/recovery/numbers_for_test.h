// The numbers and ranges that tests of recovery write again and again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "control/recovery/extent_map.h"
#include "control/recovery/flow_ref.h"
#include "dataplane/base/number.h"

namespace sluice::recovery {

inline constexpr uint32_t kExtent = 65536;  // bytes
inline constexpr ObjectId kFirst{0};
inline constexpr ObjectId kSecond{1};
inline constexpr ObjectId kNoObject{9};  // more than any test has

inline constexpr LegId kLeg{0};
inline constexpr LegId kSecondLeg{1};

inline FlowRef on_lane(uint32_t lane, LegId leg = kLeg) { return {.leg = leg, .lane = LaneId(lane)}; }

inline Layout layout_of(uint64_t size_bytes) {
  return {.size_bytes = size_bytes, .extent_bytes = kExtent, .crc_kind = crc::CrcKind::kCrc64Ecma};
}

// The bytes of `count` whole extents, from this one on.
inline Range extents(ExtentId first, uint64_t count = 1) {
  return {.offset = first.value() * kExtent, .length = count * kExtent};
}

}  // namespace sluice::recovery
