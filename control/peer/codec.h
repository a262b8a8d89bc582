// Messages as protobuf carries them, and as the rest of control knows them (transfer::Message).
//
// Pure; both ways. What a peer sent is taken as it is, but for what has no meaning at all (an unknown
// message).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "control/proto/peer.pb.h"
#include "control/words/messages.h"

namespace sluice::peer {

PeerMessage to_wire(const transfer::Message& message);
// Nothing when it is no message of a session that this version knows.
std::optional<transfer::Message> from_wire(const PeerMessage& message);

// 32 hex digits <-> 16 bytes. Of other lengths: empty.
std::string session_id_text(const std::string& bytes);
std::string session_id_bytes(const std::string& text);

}  // namespace sluice::peer
