// What a destination says of digests, as bytes of the control stream (docs/WIRE.md 2.18).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/proto/digest_fields.h"
#include "control/proto/peer.pb.h"
#include "control/words/messages.h"

namespace sluice::peer {

inline void put(const transfer::NameDigests& m, PeerMessage* wire) {
  NameDigests* const to = wire->mutable_name_digests();
  to->set_object(m.object.value());
  to->set_first(m.first);
  for (const digests::Named& name : m.names) put_named(name, to->add_names());
  to->set_last(m.last);
}

inline void put(const transfer::DigestProgress& m, PeerMessage* wire) {
  wire->mutable_digest_progress()->set_object(m.object.value());
  wire->mutable_digest_progress()->set_bytes(m.bytes);
  wire->mutable_digest_progress()->set_took_ns(m.took_ns);
}

inline transfer::NameDigests take(const NameDigests& m) {
  transfer::NameDigests to{.object = ObjectId(m.object()), .first = m.first(), .names = {}, .last = m.last()};
  for (const NamedDigests& name : m.names()) to.names.push_back(named_of(name));
  return to;
}

inline transfer::DigestProgress take(const DigestProgress& m) {
  return {.object = ObjectId(m.object()), .bytes = m.bytes(), .took_ns = m.took_ns()};
}

}  // namespace sluice::peer
