// What a Heartbeat carries, as bytes and back. What is out of bounds is brought within them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/proto/peer.pb.h"
#include "control/words/messages.h"

namespace sluice::peer {

void put(const transfer::Heartbeat& word, PeerMessage* wire);
transfer::Heartbeat from_wire(const Heartbeat& word);

}  // namespace sluice::peer
