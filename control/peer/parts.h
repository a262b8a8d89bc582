// The messages of a destination that asks a source for parts of its files (docs/WIRE.md 2.1.6).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/proto/fields.h"
#include "control/words/messages.h"

namespace sluice::peer {

inline void put(const transfer::Want& m, PeerMessage* wire) {
  wire->mutable_want()->set_object(m.object.value());
  set_ranges(wire->mutable_want()->mutable_ranges(), m.ranges);
  wire->mutable_want()->set_withdrawn(m.withdrawn);
}

inline void put(const transfer::ExtentDigests& m, PeerMessage* wire) {
  ExtentDigests* to = wire->mutable_extent_digests();
  to->set_object(m.object.value());
  to->set_offset(m.offset);
  to->mutable_digests()->Add(m.digests.begin(), m.digests.end());
  to->set_last(m.last);
}

inline void put(const transfer::DigestsWanted& m, PeerMessage* wire) {
  wire->mutable_digests_wanted()->set_object(m.object.value());
  set_ranges(wire->mutable_digests_wanted()->mutable_ranges(), m.ranges);
  wire->mutable_digests_wanted()->set_last(m.last);
}

inline transfer::Want take(const Want& m) {
  return {.object = ObjectId(m.object()), .ranges = ranges_of(m.ranges()), .withdrawn = m.withdrawn()};
}

inline transfer::ExtentDigests take(const ExtentDigests& m) {
  return {.object = ObjectId(m.object()),
          .offset = m.offset(),
          .digests = {m.digests().begin(), m.digests().end()},
          .last = m.last()};
}

inline transfer::DigestsWanted take(const DigestsWanted& m) {
  return {.object = ObjectId(m.object()), .ranges = ranges_of(m.ranges()), .last = m.last()};
}

}  // namespace sluice::peer
