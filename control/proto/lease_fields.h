// A lease, and a signed move, in messages and records: a move's bytes stay as they are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/proto/moves.pb.h"
#include "control/words/lease.h"

namespace sluice::peer {

inline void put_lease(const transfer::Lease& from, Lease* to) {
  to->set_name(from.name);
  to->set_epoch(from.epoch);
}

inline transfer::Lease lease_of(const Lease& from) { return {.name = from.name(), .epoch = from.epoch()}; }

inline void put_move(const transfer::SignedMove& from, SignedMove* to) {
  to->set_move(from.move);
  to->set_signature(from.signature);
  to->set_certificate(from.certificate);
}

inline transfer::SignedMove move_of(const SignedMove& from) {
  return {.move = from.move(), .signature = from.signature(), .certificate = from.certificate()};
}

}  // namespace sluice::peer
