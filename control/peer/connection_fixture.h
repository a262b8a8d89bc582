// Two nodes and the control connections between them: real TLS over loopback, two identities, one thread. For
// tests.
//
// Nothing waits for time to pass: each wait is for an event; the bound in run_until() only ends a hanging
// test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <asio/co_spawn.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/redirect_error.hpp>
#include <asio/ssl/stream.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include "control/peer/connection.h"
#include "control/peer/framing.h"
#include "control/peer/tls.h"

namespace sluice::peer {

namespace fs = std::filesystem;
using asio::ip::tcp;
using namespace std::chrono_literals;

inline constexpr uint32_t kTimeoutMs = 10'000;

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() {
    char name[] = "/tmp/sluice-peer-XXXXXX";
    root_ = ::mkdtemp(name);
    alpha_ = make("alpha");
    beta_ = make("beta");
    listener_ = start(beta_, [this]() -> asio::awaitable<Result<identity::Standing>> {
      if (trouble_) co_return *trouble_;
      co_return standing(
          beta_, {.name = "alpha", .address = "", .fingerprint = trusted_by_beta_, .certificate_pem = ""});
    });
    trusted_by_beta_ = alpha_.fingerprint;
  }
  ~ConnectionTest() override { fs::remove_all(root_); }

  identity::Identity make(const std::string& name) {
    EXPECT_TRUE(identity::create(root_ / name, name));
    return *identity::load(root_ / name);
  }
  static identity::Standing standing(const identity::Identity& self, const identity::Peer& peer) {
    return {std::make_shared<const identity::Identity>(self),
            std::make_shared<const identity::Trust>(std::vector<identity::Peer>{peer})};
  }
  asio::awaitable<Result<std::unique_ptr<Connection>>> call(const identity::Identity& self,
                                                            const identity::Peer& peer,
                                                            uint32_t timeout_ms = kTimeoutMs) {
    return connect(standing(self, peer), peer, timeout_ms, memory_);
  }
  std::unique_ptr<Listener> start(const identity::Identity& self, StandingNow now) {
    auto listener = listen(
        io_, self, "127.0.0.1:0", memory_, std::move(now),
        [this](std::unique_ptr<Connection> connection) { accepted_.push_back(std::move(connection)); });
    EXPECT_TRUE(listener) << listener.error().message;
    return std::move(*listener);
  }
  identity::Peer peer_beta() const {
    return {"beta", "127.0.0.1:" + std::to_string(listener_->port()), beta_.fingerprint, ""};
  }

  void run_until(const std::function<bool()>& condition) {
    while (!condition()) ASSERT_GT(io_.run_one_for(30s), 0U) << "hangs";
  }
  template <typename T>
  T run(asio::awaitable<T> task) {
    std::optional<T> result;
    spawn(std::move(task), &result);
    run_until([&] { return result.has_value(); });
    return std::move(*result);
  }
  template <typename T>
  void spawn(asio::awaitable<T> task, std::optional<T>* result) {
    asio::co_spawn(io_, store(std::move(task), result),
                   [](const std::exception_ptr& thrown) { EXPECT_FALSE(thrown); });
  }
  template <typename T>
  static asio::awaitable<void> store(asio::awaitable<T> task, std::optional<T>* result) {
    result->emplace(co_await std::move(task));
  }
  void run(asio::awaitable<void> task) {
    bool done = false;
    asio::co_spawn(io_, std::move(task), [&](const std::exception_ptr& thrown) {
      EXPECT_FALSE(thrown);
      done = true;
    });
    run_until([&] { return done; });
  }
  // Both ends of a new connection: the caller's, and what the listener handed out.
  std::pair<std::unique_ptr<Connection>, std::unique_ptr<Connection>> pair() {
    auto called = run(call(alpha_, peer_beta()));
    EXPECT_TRUE(called) << called.error().message;
    run_until([&] { return !accepted_.empty(); });
    auto accepted = std::move(accepted_.front());
    accepted_.clear();
    (*called)->set_stage(Stage::kSession);
    accepted->set_stage(Stage::kSession);
    return {std::move(*called), std::move(accepted)};
  }
  Error connect_error(const identity::Identity& self, const identity::Peer& peer,
                      uint32_t timeout_ms = kTimeoutMs) {
    auto called = run(call(self, peer, timeout_ms));
    EXPECT_FALSE(called);
    return called ? Error{} : called.error();
  }
  // TLS as the real thing does it, frames by hand.
  std::unique_ptr<asio::ssl::stream<tcp::socket>> raw_caller() {
    context_ = *make_tls_context(alpha_);
    check_.accept = [](const identity::Shown&) { return Status(); };
    auto stream = std::make_unique<asio::ssl::stream<tcp::socket>>(io_, *context_);
    set_peer_check(stream->native_handle(), &check_);
    stream->next_layer().connect({asio::ip::address_v4::loopback(), listener_->port()});
    run(stream->async_handshake(asio::ssl::stream_base::client, asio::use_awaitable));
    run_until([&] { return !accepted_.empty(); });
    accepted_[0]->set_stage(Stage::kSession);
    return stream;
  }

  static PeerMessage failure(uint32_t code, const std::string& words) {
    PeerMessage message;
    message.mutable_failure()->set_code(code);
    message.mutable_failure()->set_message(words);
    return message;
  }

  fs::path root_;
  asio::io_context io_{1};
  identity::Identity alpha_;
  identity::Identity beta_;
  std::string trusted_by_beta_;
  std::optional<Error> trouble_;  // beta's, when it wants to know whom it trusts
  std::shared_ptr<FrameMemory> memory_ = std::make_shared<FrameMemory>();
  std::shared_ptr<asio::ssl::context> context_;
  PeerCheck check_;
  asio::error_code failure_;
  std::vector<std::unique_ptr<Connection>> accepted_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace sluice::peer
