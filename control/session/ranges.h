// Ranges as messages carry them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "control/proto/peer.pb.h"
#include "control/recovery/extent_map.h"

namespace sluice::control {

using RangeField = google::protobuf::RepeatedPtrField<peer::ByteRange>;

inline void set_range(peer::ByteRange* to, const recovery::Range& range) {
  to->set_offset(range.offset);
  to->set_length(range.length);
}

inline void add_ranges(RangeField* field, const std::vector<recovery::Range>& ranges) {
  for (const recovery::Range& range : ranges) set_range(field->Add(), range);
}

inline std::vector<recovery::Range> to_ranges(const RangeField& field) {
  std::vector<recovery::Range> ranges;
  for (const peer::ByteRange& range : field) ranges.push_back({range.offset(), range.length()});
  return ranges;
}

}  // namespace sluice::control
