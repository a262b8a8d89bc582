// SPDX-License-Identifier: Apache-2.0
#include "control/node/sessionless_call.h"

#include <fmt/format.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/steady_timer.hpp>

#include "control/peer/codec.h"
#include "control/proto/names_codec.h"
#include "control/runtime/leg_stream.h"
#include "dataplane/base/check.h"

namespace sluice::node {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kSilence = 15s;
constexpr auto kHeartbeat = 1s;
constexpr size_t kSaidMax = names::kPagesAhead + 16;  // and words on how much may come

}  // namespace

SessionlessCall::SessionlessCall(asio::io_context& io, std::shared_ptr<peer::Connection> connection,
                                 peer::Stage stage)
    : io_(io),
      connection_(std::move(connection)),
      peer_(connection_->peer().name),
      changed_(io),
      ended_(io),
      heard_(steady_clock::now()) {
  connection_->set_stage(stage);
}

void SessionlessCall::begin() {
  DCHECK(!begun_, "a connection has one reader");
  begun_ = true;
  asio::co_spawn(io_, read(shared_from_this()), asio::detached);
  asio::co_spawn(io_, beat(shared_from_this()), asio::detached);
}

asio::awaitable<void> SessionlessCall::read(std::shared_ptr<SessionlessCall> self) {
  for (;;) {
    const Result<peer::PeerMessage> received = co_await self->connection_->receive();
    if (!received) {
      self->end(received.error());
      co_return;
    }
    // After the end: read and dropped, so that our last words are not lost to a reset.
    if (!self->problem_) self->hear(*received);
  }
}

void SessionlessCall::hear(const peer::PeerMessage& message) {
  heard_ = steady_clock::now();
  std::optional<Said> said;
  if (std::optional<names::Word> word = peer::word_from_wire(message)) {
    const Status status = names::admit(&*word);
    if (!status) {
      say(transfer::failure_of(status.error()));
      return end(status.error());
    }
    said = std::move(*word);
  } else if (std::optional<transfer::Message> other = peer::from_wire(message)) {
    if (std::holds_alternative<transfer::Heartbeat>(*other)) return;
    if (const Status status = transfer::admit(&*other); !status) return end(status.error());
    said = std::move(*other);
  }
  if (!said) return;
  if (said_.size() >= kSaidMax) {
    const Error error{ErrorCode::kIncompatible, "the peer says more than it was asked for"};
    say(transfer::failure_of(error));
    return end(error);
  }
  said_.push_back(std::move(*said));
  DCHECK(said_.size() <= kSaidMax, "what a peer says is bounded");
  changed_.notify();
}

asio::awaitable<void> SessionlessCall::beat(std::shared_ptr<SessionlessCall> self) {
  for (;;) {
    co_await self->ended_.wait_for(kHeartbeat);  // a caller's first word is its Hello
    if (self->problem_) co_return;
    self->say(transfer::Heartbeat{});
    if (steady_clock::now() - self->heard_ < kSilence) continue;
    self->end({ErrorCode::kPeerUnreachable,
               fmt::format("{} said nothing for {} s; check the network, and its sluice-control", self->peer_,
                           kSilence.count())});
  }
}

void SessionlessCall::say(const transfer::Message& message) {
  if (!problem_) (void)connection_->send(peer::to_wire(message));
}

void SessionlessCall::say(const names::Word& word) {
  if (!problem_) (void)connection_->send(peer::to_wire(word));
}

std::optional<SessionlessCall::Said> SessionlessCall::take() {
  if (said_.empty()) return std::nullopt;
  std::optional<Said> said = std::move(said_.front());
  said_.pop_front();
  return said;
}

asio::awaitable<void> SessionlessCall::wait_for_wake(std::chrono::nanoseconds limit) {
  if (!problem_) co_await changed_.wait_for(limit);
}

asio::awaitable<void> SessionlessCall::flush_within(std::chrono::seconds limit) {
  const std::shared_ptr<SessionlessCall> self = shared_from_this();
  const auto timer = std::make_shared<asio::steady_timer>(io_, limit);
  timer->async_wait([self, timer, limit](const asio::error_code& error) {
    if (!error)
      self->end({ErrorCode::kStalled,
                 fmt::format("{} took no part of the list for {} s", self->peer_, limit.count())});
  });
  co_await connection_->flush();
  timer->cancel();
}

// What was said before the end still counts.
asio::awaitable<Result<std::optional<SessionlessCall::Said>>> SessionlessCall::next(
    std::chrono::nanoseconds limit) {
  const std::shared_ptr<SessionlessCall> self = shared_from_this();
  const auto until = steady_clock::now() + limit;
  for (;;) {
    if (std::optional<Said> said = take()) co_return std::move(said);
    if (problem_) co_return *problem_;
    const auto now = steady_clock::now();
    if (now >= until) co_return std::optional<Said>();
    co_await changed_.wait_for(until - now);
  }
}

void SessionlessCall::end(Error reason) {
  if (problem_) return;
  problem_ = std::move(reason);
  connection_->set_stage(peer::Stage::kOver);
  asio::co_spawn(io_, runtime::hang_up(io_, connection_), asio::detached);
  changed_.notify();
  ended_.notify();
}

}  // namespace sluice::node
