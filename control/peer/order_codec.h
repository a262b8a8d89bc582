// The messages of a call about an order, as bytes and back (docs/WIRE.md, 2.13).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/proto/peer.pb.h"
#include "control/words/messages.h"

namespace sluice::peer {

void put(const transfer::Order& m, PeerMessage* wire);
void put(const transfer::OrderState& m, PeerMessage* wire);
void put(const transfer::OrderWish& m, PeerMessage* wire);
transfer::Order take(const Order& m);
transfer::OrderState take(const OrderState& m);
transfer::OrderWish take(const OrderWish& m);

}  // namespace sluice::peer
