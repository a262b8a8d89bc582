// The control stream of one leg on a real connection: calls, takes the peer's call, reads, sends, hangs up.
//
// On the loop's thread. Each connection has one reader, from its first message to its end. The reader hands
// messages over while the connection is the leg's, keeps them while it is a call that waits, and drops them
// once this node has hung up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/peer/connection.h"
#include "control/runtime/events.h"
#include "control/runtime/services.h"
#include "control/words/flow_secret.h"

namespace sluice::runtime {

// Within how long a call is answered, and its handshake done.
inline constexpr uint32_t kConnectTimeoutMs = 5000;

// So long a connection that was dialled waits for its call.
inline constexpr auto kDialledFor = std::chrono::seconds(1);

// Lets what was sent leave, for a bounded time, then closes.
asio::awaitable<void> hang_up(asio::io_context& io, std::shared_ptr<peer::Connection> connection);

class LegStream {
 public:
  LegStream(std::shared_ptr<Services> services, std::weak_ptr<EventQueue> queue, transfer::LegId leg,
            std::string peer_name);
  ~LegStream();
  LegStream(const LegStream&) = delete;
  LegStream& operator=(const LegStream&) = delete;

  void perform(const transfer::Call& effect);
  void perform(const transfer::Dial& effect);
  void perform(const transfer::TakeCall& effect);
  void perform(const transfer::RefuseCall& effect);
  void perform(const transfer::Send& effect);
  void perform(const transfer::HangUp& effect);
  // The secret of a flow that was named on the leg's stream (docs/WIRE.md 1.3); nothing if there is no stream
  // any more.
  std::optional<transfer::FlowSecret> flow_secret(std::string_view session_id, uint64_t flow_id,
                                                  LaneId lane) const;
  bool dialled() const { return dialled_.connection != nullptr; }  // and no call has come for it
  // The peer has called with this Hello. An earlier call of it that still waits is ended.
  void peer_called(std::shared_ptr<peer::Connection> connection, const transfer::Hello& hello);
  // Nothing: there is none now.
  std::shared_ptr<peer::Connection> stream() const { return stream_ ? stream_->connection : nullptr; }
  // As if it had been lost.
  void drop_stream(const std::string& reason);

 private:
  // More than these in a call that waits, and it is no peer of ours.
  static constexpr size_t kUnreadBytesMax = 4U << 20;

  enum class Use : uint8_t { kCall, kStream, kGone };
  struct Line {
    std::shared_ptr<peer::Connection> connection;
    Use use = Use::kCall;
    std::deque<transfer::Message> unread = {};  // of a call
    size_t unread_bytes = 0;
  };
  using LinePtr = std::shared_ptr<Line>;

  static asio::awaitable<void> call(std::shared_ptr<Services> services, std::shared_ptr<LegStream*> self,
                                    std::string peer_name, uint64_t number,
                                    std::shared_ptr<peer::FirstWords> words);
  static asio::awaitable<void> read(std::shared_ptr<LegStream*> self, LinePtr line);
  void begin_call(uint64_t number, std::shared_ptr<peer::FirstWords> words);
  void called(uint64_t number, Result<std::unique_ptr<peer::Connection>> connected);
  void call_failed(Error error);
  void took(std::shared_ptr<peer::Connection> connection);
  void dialled(Result<std::unique_ptr<peer::Connection>> connected);
  void drop_dialled();
  bool handle(const LinePtr& line, Result<peer::PeerMessage> received);  // false: nothing more is read
  LinePtr begin(std::shared_ptr<peer::Connection> connection, Use use);
  void end(LinePtr& line);
  void post(transfer::Event event);

  const std::shared_ptr<Services> services_;
  const std::weak_ptr<EventQueue> queue_;
  const transfer::LegId leg_;
  const std::string peer_name_;
  // Coroutines outlive this object: they find nothing here then.
  const std::shared_ptr<LegStream*> self_ = std::make_shared<LegStream*>(this);
  LinePtr stream_;
  LinePtr call_;  // of the peer, that waits
  uint64_t calling_ = 0;
  std::shared_ptr<peer::FirstWords> words_;  // of the call, or of the one that is dialled for
  uint64_t calls_ = 0;
  // A Dial opens this connection, and the next Call takes it. Nobody reads from it before that.
  struct Dialled {
    uint64_t number = 0;  // while it is being opened
    std::shared_ptr<peer::Connection> connection;
    asio::steady_timer timer;
  } dialled_;
};

}  // namespace sluice::runtime
