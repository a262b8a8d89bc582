// The control stream of a session: reading, heartbeats, the messages of the handshake, and its renewal while
// flows go on.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/detached.hpp>

#include "control/session/hello.h"
#include "control/session/session.h"

namespace sluice::control {
namespace {

constexpr uint64_t kHeartbeatNs = 1'000'000'000;
constexpr uint64_t kPeerSilenceNs = 15'000'000'000;
constexpr size_t kInboxMax = 1024;
constexpr auto kRenewInterval = std::chrono::milliseconds(300);

Error of_peer(const std::string& name, const peer::Failure& failure) {
  const bool known = failure.code() > 0 && failure.code() <= static_cast<uint32_t>(ErrorCode::kResources);
  return {known ? static_cast<ErrorCode>(failure.code()) : ErrorCode::kInternal,
          fmt::format("{}: {}", name, failure.message().substr(0, 1000))};
}

}  // namespace

void Session::start_stream(std::unique_ptr<peer::Connection> connection) {
  connection_ = std::move(connection);
  heard_ns_ = monotonic_ns();
  reading_ = true;
  asio::co_spawn(context_->io, read_loop(shared_from_this(), connection_), asio::detached);
  asio::co_spawn(context_->io, heartbeat_loop(shared_from_this(), connection_), asio::detached);
}

asio::awaitable<void> Session::read_loop(std::shared_ptr<Session> /*self*/,
                                         std::shared_ptr<peer::Connection> connection) {
  for (;;) {
    Result<peer::PeerMessage> message = co_await connection->receive();
    if (!message) {
      reading_ = false;  // a next stream begins only after this
      // While data moves, keep_stream sees to another.
      if (!winding_down_ && !data_running_) {
        fail({ErrorCode::kPeerUnreachable,
              fmt::format("the connection to {} was lost ({}): see that it runs, then repeat the transfer",
                          peer_name_, message.error().message)});
      }
      changed_.notify();
      co_return;
    }
    heard_ns_ = monotonic_ns();
    handle(*message);
  }
}

void Session::handle(const peer::PeerMessage& message) {
  if (message.has_heartbeat() || winding_down_) return;
  if (message.has_failure()) {
    if (!failed()) error_is_peers_ = true;
    fail(of_peer(peer_name_, message.failure()));
  } else if (message.has_pause()) {
    if (!failed()) error_is_peers_ = true;
    paused_by_ = peer_name_;
    fail({ErrorCode::kPeerUnreachable, fmt::format("paused by an operator of node {}", peer_name_)});
  } else if (data_running_) {
    if (!failed()) end_->on_message(message);
  } else if (inbox_.size() >= kInboxMax && !message.has_object_state()) {
    fail({ErrorCode::kIncompatible, fmt::format("{} sends more than was asked for", peer_name_)});
  } else {
    inbox_.push_back(message);
  }
  changed_.notify();
}

asio::awaitable<void> Session::heartbeat_loop(std::shared_ptr<Session> /*self*/,
                                              std::shared_ptr<peer::Connection> connection) {
  uint64_t next_ns = monotonic_ns() + kHeartbeatNs;
  while (!winding_down_ && reading_ && connection == connection_) {
    const uint64_t now_ns = monotonic_ns();
    if (now_ns < next_ns) {
      co_await changed_.wait_for(std::chrono::nanoseconds(next_ns - now_ns));
      continue;
    }
    next_ns = now_ns + kHeartbeatNs;
    peer::PeerMessage message;
    message.mutable_heartbeat();
    (void)connection->send(message);
    if (now_ns - heard_ns_ > kPeerSilenceNs) connection->close();  // read_loop takes it from there
  }
}

void Session::send(const peer::PeerMessage& message) {
  if (winding_down_ || !reading_) return;
  const Status status = connection_->send(message);
  if (!status && reading_) connection_->close();
}

// While data moves: a stream that is lost is opened again. The flows need it only to end.
asio::awaitable<void> Session::keep_stream() {
  uint64_t lost_ns = 0;
  while (data_running_ && !failed() && !(end_ && end_->complete())) {
    if (reading_) {
      lost_ns = 0;
      co_await changed_.wait();
      continue;
    }
    const uint64_t now_ns = monotonic_ns();
    if (lost_ns == 0) {
      lost_ns = now_ns;
      spdlog::info("{}: no control stream to {}; data goes on meanwhile", log_name(), peer_name_);
    }
    if (now_ns - lost_ns > context_->node.stall_timeout_s * 1'000'000'000ULL) {
      fail({ErrorCode::kPeerUnreachable,
            fmt::format("no control stream to {} for {} s: see that its sluice-control runs", peer_name_,
                        context_->node.stall_timeout_s)});
      co_return;
    }
    if (co_await renew_stream()) {
      spdlog::info("{}: control stream to {} renewed after {:.1f} s", log_name(), peer_name_,
                   static_cast<double>(monotonic_ns() - lost_ns) * 1e-9);
      end_->on_new_stream();
      changed_.notify();
    } else if (!failed()) {
      co_await changed_.wait_for(kRenewInterval);
    }
  }
}

// False: not now, or the attempt has failed.
asio::awaitable<bool> Session::renew_stream() {
  Incoming incoming;
  if (initiator_) {
    Result<std::unique_ptr<peer::Connection>> connection =
        co_await peer::connect(context_->identity, *peer_, kConnectTimeoutMs);
    if (!connection || failed() || !data_running_) co_return false;
    incoming.connection = std::move(*connection);
    (void)incoming.connection->send(hello(true));
    Result<peer::PeerMessage> reply = co_await receive_within(context_->io, *incoming.connection);
    if (!reply || failed() || !data_running_) co_return false;
    if (!reply->has_hello()) {
      handle(*reply);  // a failure or a pause
      co_return false;
    }
    incoming.hello = reply->hello();
  } else {
    if (!incoming_) co_return false;
    if (!same_flows(incoming_->hello)) {
      fail({ErrorCode::kPeerUnreachable, fmt::format("{} opens the session anew", peer_name_)});
      co_return false;
    }
    incoming = std::move(*incoming_);
    incoming_.reset();
    (void)incoming.connection->send(hello(true));
  }
  if (!same_flows(incoming.hello) && !incoming.hello.ended()) {
    fail({ErrorCode::kPeerUnreachable, fmt::format("the flows to {} are gone: opening others", peer_name_)});
    co_return false;
  }
  start_stream(std::move(incoming.connection));
  co_return true;
}

bool Session::same_flows(const peer::Hello& hello) const {
  if (lanes_.empty() || static_cast<size_t>(hello.flow_ids_size()) != lanes_.size()) return false;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (hello.flow_ids(static_cast<int>(i)) != lanes_[i].flow_id) return false;
  }
  return true;
}

asio::awaitable<Result<peer::PeerMessage>> Session::expect(peer::PeerMessage::BodyCase body,
                                                           const char* waiting_for, bool patient) {
  const uint64_t timeout_ns = context_->node.stall_timeout_s * 1'000'000'000ULL;
  const uint64_t deadline_ns = monotonic_ns() + timeout_ns;
  waiting_for_ = waiting_for;
  while (inbox_.empty() && !failed()) {
    const uint64_t now_ns = monotonic_ns();
    if (!patient && now_ns >= deadline_ns) {
      co_return Error{ErrorCode::kStalled, fmt::format("{} did not send {} within {} s", peer_name_,
                                                       waiting_for, context_->node.stall_timeout_s)};
    }
    if (incoming_) {  // it has begun anew
      co_return Error{ErrorCode::kPeerUnreachable, fmt::format("{} opens the session anew", peer_name_)};
    }
    if (patient) {
      co_await changed_.wait();
    } else {
      co_await changed_.wait_for(std::chrono::nanoseconds(deadline_ns - now_ns));
    }
  }
  waiting_for_.clear();
  if (failed()) co_return *attempt_error_;
  peer::PeerMessage message = std::move(inbox_.front());
  inbox_.pop_front();
  if (message.body_case() != body) {
    co_return Error{ErrorCode::kIncompatible,
                    fmt::format("{} sent message {} where {} was due: run one version on both nodes",
                                peer_name_, static_cast<int>(message.body_case()), static_cast<int>(body))};
  }
  co_return message;
}

peer::PeerMessage Session::hello(bool with_flows) const {
  peer::PeerMessage message = make_hello(id_);
  message.mutable_hello()->set_known(began_);
  for (const Lane& lane : lanes_) {
    if (with_flows) message.mutable_hello()->add_flow_ids(lane.flow_id);
  }
  return message;
}

}  // namespace sluice::control
