// Words about names as protobuf carries them, and as control/names knows them. Pure; both ways.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "control/names/words.h"
#include "control/proto/peer.pb.h"

namespace sluice::peer {

PeerMessage to_wire(const names::Word& word);
// Nothing when it is none, or asks for what this version does not know.
std::optional<names::Word> word_from_wire(const PeerMessage& message);

}  // namespace sluice::peer
