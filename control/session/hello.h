// The first message of a connection, before it is known to which session it belongs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <string>

#include "control/peer/connection.h"

namespace sluice::control {

inline constexpr uint32_t kConnectTimeoutMs = 5000;

// 32 hex digits <-> 16 bytes.
std::string session_id_text(const std::string& bytes);
peer::PeerMessage make_hello(const std::string& session_id);
// The next message, or kPeerUnreachable; a peer that says nothing for 10 s is hung up on.
asio::awaitable<Result<peer::PeerMessage>> receive_within(asio::io_context& io, peer::Connection& connection);
// Sends what was queued and closes once the peer has read it, so that nothing is lost to a reset.
asio::awaitable<void> hang_up(asio::io_context& io, std::shared_ptr<peer::Connection> connection);

}  // namespace sluice::control
