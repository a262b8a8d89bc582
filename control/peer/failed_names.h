// The messages that tell of names that have failed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/proto/fields.h"
#include "control/words/messages.h"

namespace sluice::peer {

inline void put(const transfer::FileDone& m, PeerMessage* wire) {
  wire->mutable_file_done()->set_object(m.object.value());
  wire->mutable_file_done()->set_digest(m.digest);
  wire->mutable_file_done()->set_failed(m.missing.failed);
  wire->mutable_file_done()->set_left_out(m.missing.left_out);
  if (m.whole_digest) wire->mutable_file_done()->set_whole_digest(*m.whole_digest);
  set_failures(m.missing.names, wire->mutable_file_done());
}

inline void put(const transfer::ObjectFailed& m, PeerMessage* wire) {
  wire->mutable_object_failed()->set_object(m.object.value());
  set_failures(m.names, wire->mutable_object_failed());
}

inline transfer::FileDone take(const FileDone& m) {
  return {.object = ObjectId(m.object()),
          .digest = m.digest(),
          .missing = {.failed = m.failed(), .left_out = m.left_out(), .names = failures_of(m)},
          .whole_digest = m.has_whole_digest() ? std::optional<uint64_t>(m.whole_digest()) : std::nullopt};
}

inline transfer::ObjectFailed take(const ObjectFailed& m) {
  return {.object = ObjectId(m.object()), .names = failures_of(m)};
}

}  // namespace sluice::peer
