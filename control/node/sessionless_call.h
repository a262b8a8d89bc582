// A control connection that carries no session, at either end: about names (docs/WIRE.md, 2.6) or about an
// order (2.13). Its reader, its Heartbeats, and how long a silent peer is waited for.
//
// On the loop's thread. What the peer says is kept until it is asked for; more than an honest peer has under
// way ends the call.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "control/async/notify.h"
#include "control/names/words.h"
#include "control/peer/connection.h"
#include "control/words/messages.h"

namespace sluice::node {

class SessionlessCall : public std::enable_shared_from_this<SessionlessCall> {
 public:
  using Said = std::variant<names::Word, transfer::Message>;

  // `stage`: how long its messages may be.
  SessionlessCall(asio::io_context& io, std::shared_ptr<peer::Connection> connection,
                  peer::Stage stage = peer::Stage::kGreeting);

  void begin();
  void say(const transfer::Message& message);
  void say(const names::Word& word);
  // The next thing that the peer has said; nothing within `limit`. An error: the call is over, and why.
  asio::awaitable<Result<std::optional<Said>>> next(std::chrono::nanoseconds limit);
  // Until something new is said, the call is over, or wake() is called.
  asio::awaitable<void> wait_for_wake(std::chrono::nanoseconds limit);
  // Until what was said has left; a peer that does not take it ends the call after `limit`.
  asio::awaitable<void> flush_within(std::chrono::seconds limit);
  void wake() { changed_.notify(); }
  std::optional<Said> take();  // without waiting
  const std::optional<Error>& problem() const { return problem_; }
  const std::string& peer() const { return peer_; }
  const identity::Peer& node() const { return connection_->peer(); }

  // What was said leaves, then the connection closes. The first reason stays.
  void end(Error reason);

 private:
  static asio::awaitable<void> read(std::shared_ptr<SessionlessCall> self);
  static asio::awaitable<void> beat(std::shared_ptr<SessionlessCall> self);
  void hear(const peer::PeerMessage& message);

  asio::io_context& io_;
  const std::shared_ptr<peer::Connection> connection_;
  const std::string peer_;
  async::Notify changed_;
  async::Notify ended_;
  bool begun_ = false;
  std::deque<Said> said_;
  std::optional<Error> problem_;
  std::chrono::steady_clock::time_point heard_;
};

// So many of these calls are of this peer.
inline size_t calls_of(const std::string& peer, const std::set<std::shared_ptr<SessionlessCall>>& calls) {
  return static_cast<size_t>(
      std::ranges::count_if(calls, [&peer](const auto& call) { return call->peer() == peer; }));
}

}  // namespace sluice::node
