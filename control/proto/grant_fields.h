// A signed grant in messages and records: its bytes stay as they are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/proto/orders.pb.h"
#include "control/words/orders.h"

namespace sluice::peer {

inline void put_grant(const transfer::SignedGrant& from, SignedGrant* to) {
  to->set_grant(from.grant);
  to->set_signature(from.signature);
  to->set_certificate(from.certificate);
}

inline transfer::SignedGrant grant_of(const SignedGrant& from) {
  return {.grant = from.grant(), .signature = from.signature(), .certificate = from.certificate()};
}

}  // namespace sluice::peer
