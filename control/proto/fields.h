// Fields that messages to the peer and records of the journal have in common: runs of bytes, failed names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "control/catalog/catalog.h"
#include "control/proto/peer.pb.h"
#include "dataplane/base/range.h"

namespace sluice::peer {

using RangeField = google::protobuf::RepeatedPtrField<ByteRange>;

inline void set_range(ByteRange* to, const base::Range& range) {
  to->set_offset(range.offset);
  to->set_length(range.length);
}

inline void set_ranges(RangeField* to, const std::vector<base::Range>& ranges) {
  to->Reserve(static_cast<int>(ranges.size()));
  for (const base::Range& range : ranges) set_range(to->Add(), range);
}

inline std::vector<base::Range> ranges_of(const RangeField& field) {
  std::vector<base::Range> ranges;
  ranges.reserve(static_cast<size_t>(field.size()));
  for (const ByteRange& range : field) ranges.push_back({.offset = range.offset(), .length = range.length()});
  return ranges;
}

template <typename Wire>
void set_failures(const std::vector<catalog::FailedName>& names, Wire* wire) {
  for (const catalog::FailedName& name : names) {
    FailedName* const one = wire->add_failures();
    one->set_path(name.path);
    one->set_failure(static_cast<uint32_t>(name.failure));
  }
}

// No more than are kept of a session.
template <typename Wire>
std::vector<catalog::FailedName> failures_of(const Wire& wire) {
  std::vector<catalog::FailedName> names;
  for (const FailedName& name : wire.failures()) {
    if (names.size() == catalog::kFailuresKept) break;
    names.push_back({.path = name.path(), .failure = catalog::failure_of(name.failure())});
  }
  return names;
}

}  // namespace sluice::peer
