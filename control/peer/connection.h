// The control stream between two nodes: length-prefixed protobuf over mutual TLS 1.3, pinned keys.
//
// Everything runs on one io_context thread, as C++20 coroutines; nothing here throws. A message
// longer than kMessageBytesMax, or one that does not parse, ends the connection. The io_context outlives
// connections and listeners. To say a last word: send, flush, then close or destroy.
//
// The accepting side's first frame is empty and is consumed by `connect`: in TLS 1.3 the caller's
// handshake is complete before the other side has judged the caller's key, so this frame is the verdict.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/identity/identity.h"
#include "control/proto/peer.pb.h"
#include "dataplane/base/error.h"

namespace sluice::peer {

inline constexpr uint32_t kMessageBytesMax = 16U << 20;

class Connection {
 public:
  virtual ~Connection() = default;  // closes

  // Next message; kPeerUnreachable when the stream ended. One caller at a time.
  virtual asio::awaitable<Result<PeerMessage>> receive() = 0;
  // Queues and writes in order; never blocks. kPeerUnreachable once closed; kResources when more
  // than 64 MiB wait to be written.
  virtual Status send(const PeerMessage& message) = 0;
  // Waits until everything queued is written (or the stream failed).
  virtual asio::awaitable<void> flush() = 0;
  virtual void close() = 0;  // a pending receive returns kPeerUnreachable
  virtual const identity::Peer& peer() const = 0;
  virtual std::string remote_address() const = 0;
};

// Resolves, connects, does the handshake (each step within `timeout_ms`), and checks the pin:
// kPeerUnreachable, kPeerUntrusted (either side refuses the other).
asio::awaitable<Result<std::unique_ptr<Connection>>> connect(const identity::Identity& self,
                                                             const identity::Peer& peer, uint32_t timeout_ms);

class Listener {
 public:
  virtual ~Listener() = default;      // stops listening; existing connections live on
  virtual uint16_t port() const = 0;  // the bound port (for ":0" in tests)
};

// Those whom this node trusts now. It may wait for that, e.g. for files to be read elsewhere.
using TrustedPeers = std::function<asio::awaitable<std::vector<identity::Peer>>()>;

// Calls `on_connection` on the io_context thread for every authenticated peer. `trusted` is asked before
// each handshake, so that `sluice node trust` works without a restart. Strangers and slow handshakes are
// logged and dropped.
Result<std::unique_ptr<Listener>> listen(asio::io_context& io, const identity::Identity& self,
                                         const std::string& address, TrustedPeers trusted,
                                         std::function<void(std::unique_ptr<Connection>)> on_connection);

}  // namespace sluice::peer
