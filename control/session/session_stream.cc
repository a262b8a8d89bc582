// The control stream of a session: reading, heartbeats, the messages of the handshake.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <asio/detached.hpp>

#include "control/session/session.h"

namespace sluice::control {
namespace {

constexpr uint64_t kHeartbeatNs = 1'000'000'000;
constexpr uint64_t kPeerSilenceNs = 15'000'000'000;
constexpr size_t kInboxMax = 1024;

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
  asio::co_spawn(context_->io, read_loop(shared_from_this()), asio::detached);
  asio::co_spawn(context_->io, heartbeat_loop(shared_from_this()), asio::detached);
}

asio::awaitable<void> Session::read_loop(std::shared_ptr<Session> /*self*/) {
  for (;;) {
    Result<peer::PeerMessage> message = co_await connection_->receive();
    if (!message) {
      reading_ = false;
      if (!winding_down_ && !(end_ && end_->complete())) {
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
  } else if (data_running_) {
    if (!failed()) end_->on_message(message);
  } else if (inbox_.size() >= kInboxMax) {
    fail({ErrorCode::kIncompatible, fmt::format("{} sends more than was asked for", peer_name_)});
  } else {
    inbox_.push_back(message);
  }
  changed_.notify();
}

asio::awaitable<void> Session::heartbeat_loop(std::shared_ptr<Session> /*self*/) {
  uint64_t next_ns = monotonic_ns() + kHeartbeatNs;
  while (!winding_down_ && reading_) {
    const uint64_t now_ns = monotonic_ns();
    if (now_ns < next_ns) {
      co_await changed_.wait_for(std::chrono::nanoseconds(next_ns - now_ns));
      continue;
    }
    next_ns = now_ns + kHeartbeatNs;
    peer::PeerMessage message;
    message.mutable_heartbeat();
    send(message);
    if (now_ns - heard_ns_ > kPeerSilenceNs) {
      fail({ErrorCode::kPeerUnreachable,
            fmt::format("{} was silent for {} s: see that its sluice-control runs", peer_name_,
                        kPeerSilenceNs / 1'000'000'000)});
    }
  }
}

void Session::send(const peer::PeerMessage& message) {
  if (winding_down_) return;
  const Status status = connection_->send(message);
  if (!status && reading_) fail(status.error());
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
    if (patient) {
      co_await changed_.wait();
    } else {
      co_await changed_.wait_for(std::chrono::nanoseconds(deadline_ns - now_ns));
    }
  }
  waiting_for_.clear();
  if (failed()) co_return *error_;
  peer::PeerMessage message = std::move(inbox_.front());
  inbox_.pop_front();
  if (message.body_case() != body) {
    co_return Error{ErrorCode::kIncompatible,
                    fmt::format("{} sent message {} where {} was due: run one version on both nodes",
                                peer_name_, static_cast<int>(message.body_case()), static_cast<int>(body))};
  }
  co_return message;
}

void Session::send_hello() {
  peer::PeerMessage message;
  peer::Hello* hello = message.mutable_hello();
  hello->set_protocol_version_min(kProtocolVersion);
  hello->set_protocol_version_max(kProtocolVersion);
  hello->set_software("sluice " SLUICE_VERSION);
  std::string bytes;
  for (size_t i = 0; i + 1 < id_.size(); i += 2)
    bytes += static_cast<char>(std::stoi(id_.substr(i, 2), nullptr, 16));
  hello->set_session_id(bytes);
  send(message);
}

Abilities Session::abilities() const {
  return {.port = context_->board->port(), .udp_checksum_always = context_->node.udp_checksum == "always"};
}

Status Session::take_agreement(const peer::Specification& specification, const peer::SpecificationSet& set,
                               bool initiator) {
  Result<Agreement> agreement = agree(specification, set, abilities(), initiator);
  if (!agreement) return agreement.error();
  agreement_ = std::move(*agreement);
  shrink_lanes(agreement_.lanes);
  return {};
}

}  // namespace sluice::control
