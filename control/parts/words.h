// The words of control/parts: what one leg of several is asked for.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "control/recovery/extent_map.h"
#include "control/recovery/flow_ref.h"
#include "dataplane/base/number.h"

namespace sluice::parts {

using base::Range;  // of bytes of one object
using recovery::ExtentMap;
using recovery::ExtentRun;
using recovery::LegId;

inline constexpr size_t kRangesMax = 4096;  // of one message

// Bytes of one object that concern one leg: whole extents, at most kRangesMax ranges.
struct Portion {
  LegId leg;
  ObjectId object;
  std::vector<Range> ranges;
};

// A leg is asked for a portion, or, if it is withdrawn, is not asked any more for what it has not begun of
// it.
struct Want {
  Portion portion;
  bool withdrawn = false;
};

// What is known of a leg when it joins.
struct LegFacts {
  uint64_t rtt_ns = 0;
  uint64_t expected_rate_bps = 0;  // bits per second, as this node remembers the path; 0: unknown
  uint32_t lanes = 1;
};

// Bytes of one of several objects.
struct ObjectRange {
  ObjectId object;
  Range range;
};

// An extent of a session.
struct Place {
  ObjectId object;
  ExtentId extent;

  auto operator<=>(const Place&) const = default;
};

inline ExtentRun run_of(ExtentId extent) { return {.first = extent, .end = extent.plus(1)}; }

inline bool is_among(const std::vector<LegId>& legs, LegId leg) {
  return std::find(legs.begin(), legs.end(), leg) != legs.end();
}

}  // namespace sluice::parts
