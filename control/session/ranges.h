// Ranges as messages carry them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "control/proto/peer.pb.h"
#include "control/recovery/extent_map.h"

namespace sluice::control {

inline constexpr size_t kRangesPerMessage = 4096;

using RangeField = google::protobuf::RepeatedPtrField<peer::ByteRange>;

inline void set_range(peer::ByteRange* to, const recovery::Range& range) {
  to->set_offset(range.offset);
  to->set_length(range.length);
}

// Hands to `send` as many messages as `ranges` need; `begin` fills in the rest and says where the ranges go.
template <typename Begin, typename Send>
void send_ranges(const std::vector<recovery::Range>& ranges, Begin begin, Send send) {
  for (size_t at = 0; at < ranges.size(); at += kRangesPerMessage) {
    peer::PeerMessage message;
    RangeField* const field = begin(&message);
    const size_t end = std::min(ranges.size(), at + kRangesPerMessage);
    for (size_t i = at; i < end; ++i) set_range(field->Add(), ranges[i]);
    send(message);
  }
}

inline std::vector<recovery::Range> to_ranges(const RangeField& field) {
  std::vector<recovery::Range> ranges;
  for (const peer::ByteRange& range : field)
    ranges.push_back({.offset = range.offset(), .length = range.length()});
  return ranges;
}

}  // namespace sluice::control
