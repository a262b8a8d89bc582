// The control stream between two nodes: length-prefixed protobuf over mutual TLS 1.3, pinned keys, or an
// authority.
//
// Everything runs on one io_context thread, as C++20 coroutines; nothing here throws. A message longer than
// its stage allows, or one that does not parse, ends the connection; a big one waits until there is memory
// for it (frame_memory.h). The io_context outlives connections and listeners. To say a last word: send,
// flush, then close or destroy.
//
// The accepting side's first frame is empty and is consumed by `connect`: in TLS 1.3 the caller's
// handshake is complete before the other side has judged the caller's key, so this frame is the verdict.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/identity/trust.h"
#include "control/peer/frame_memory.h"
#include "control/peer/handshake_pace.h"
#include "control/proto/peer.pb.h"
#include "dataplane/base/error.h"

namespace sluice::peer {

// How long a message may be, by what it may be.
inline constexpr uint32_t kHelloBytesMax = 4U << 10;      // the first one of a caller
inline constexpr uint32_t kGreetingBytesMax = 64U << 10;  // before the Hellos are exchanged
inline constexpr uint32_t kMessageBytesMax = 16U << 20;

inline constexpr auto kHelloTimeout = std::chrono::seconds(10);  // for the first message

// How far a connection has come. Each begins with the first.
enum class Stage : uint8_t {
  kHello,     // a caller's first message is awaited
  kGreeting,  // it belongs to a session; the Hellos are not exchanged yet
  kSession,
  kOver,  // it was hung up on, and is read only so that our last words are not lost
};

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
  virtual void set_stage(Stage stage) = 0;
  virtual void close() = 0;  // a pending receive returns kPeerUnreachable
  // Fills `out` with what both ends of this connection have, and nobody else (RFC 8446, 7.5). False once it
  // has ended.
  virtual bool export_secret(std::string_view label, std::span<const uint8_t> context,
                             std::span<uint8_t> out) const = 0;
  virtual const identity::Peer& peer() const = 0;
  virtual const std::string& own_fingerprint() const = 0;  // of the key that this node showed
  virtual std::string remote_address() const = 0;
  virtual uint64_t rtt_ns() const = 0;  // as TCP measured it; 0: not known
};

// Hears of each key that somebody offers in place of a pinned one.
using OnOffer = std::function<void(identity::Offer)>;

// A caller says these words as soon as the peer has proved who it is. The peer hears them with the end of the
// handshake, a round trip before its verdict on this node is here. The caller gives them before connect() or
// while that goes on; afterwards it gives them to the connection.
class FirstWords {
 public:
  explicit FirstWords(std::vector<PeerMessage> words = {}) : waiting_(std::move(words)) {}

  void say(std::vector<PeerMessage> words) {
    std::ranges::move(words, std::back_inserter(waiting_));
    speak();
  }
  // The peer has proved who it is. Nothing: connect() is over, and nothing more is said.
  void proved(std::function<void(const PeerMessage&)> send) {
    send_ = std::move(send);
    speak();
  }
  bool said() const { return said_; }  // the peer may have heard some of it

 private:
  void speak() {
    if (!send_) return;
    said_ |= !waiting_.empty();
    for (const PeerMessage& word : std::exchange(waiting_, {})) send_(word);
  }

  std::vector<PeerMessage> waiting_;
  std::function<void(const PeerMessage&)> send_;
  bool said_ = false;
};

// Resolves, connects, does the handshake (each step within `timeout_ms`), and judges who answers:
// kPeerUnreachable, kPeerUntrusted (either side refuses the other, or it is another one), kResources (either
// side lacks descriptors or memory). `memory` is that of all connections of the node.
asio::awaitable<Result<std::unique_ptr<Connection>>> connect(
    identity::Standing standing, identity::Peer peer, uint32_t timeout_ms,
    std::shared_ptr<FrameMemory> memory, OnOffer on_offer = [](const identity::Offer&) {},
    std::shared_ptr<FirstWords> words = nullptr);

// What became of those who called, since this node listens.
struct CallerCounts {
  uint64_t trusted = 0;
  uint64_t refused = 0;    // for its key
  uint64_t failed = 0;     // no handshake, or nobody could judge it
  uint64_t timed_out = 0;  // in the handshake
  uint64_t let_go = 0;     // there were too many
  uint64_t waited = 0;     // of all of them, those that came too fast (handshake_pace.h)
};

class Listener {
 public:
  virtual ~Listener() = default;      // stops listening; existing connections live on
  virtual uint16_t port() const = 0;  // the bound port (for ":0" in tests)
  virtual const CallerCounts& counts() const = 0;
  // Numeric addresses of those who are trusted: who calls from there is not displaced by others (callers.h),
  // also before it ever called.
  virtual void expect(const std::vector<std::string>& addresses) = 0;
};

// Who this node is, and whom it trusts now. It may wait for that, e.g. for files to be read elsewhere. With
// an error nobody is judged: callers hear kResources.
using StandingNow = std::function<asio::awaitable<Result<identity::Standing>>()>;

// Calls `on_connection` on the io_context thread for every authenticated peer. `standing` is asked before
// each handshake, so that `sluice node trust` and `rotate` work without a restart. Strangers and slow
// handshakes are logged and dropped; who is let go where too many are connected says callers.h, and who waits
// where they come too fast handshake_pace.h.
Result<std::unique_ptr<Listener>> listen(
    asio::io_context& io, const identity::Identity& self, const std::string& address,
    std::shared_ptr<FrameMemory> memory, StandingNow standing,
    std::function<void(std::unique_ptr<Connection>)> on_connection,
    OnOffer on_offer = [](const identity::Offer&) {}, const HandshakePace::Limits& pace = {});

}  // namespace sluice::peer
