// The sessions of the node alpha in a test, which trusts beta: beta has an address where nobody listens, and
// calls over connections that the test plays. For tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/leg/negotiation.h"
#include "control/node/begin.h"
#include "control/node/reception.h"
#include "control/node/sessions.h"
#include "control/runtime/runtime_fixture.h"

namespace sluice::node {

class NodeTest : public runtime::RuntimeTest {
 protected:
  explicit NodeTest(const std::function<void(config::Node&)>& change = [](config::Node&) {})
      : RuntimeTest(change) {
    EXPECT_TRUE(identity::create(root_, "alpha"));
    EXPECT_TRUE(identity::create(root_ / "other", "beta"));
    const auto beta = identity::load(root_ / "other");
    EXPECT_TRUE(identity::trust(root_, "beta", "127.0.0.1:1", beta->certificate_pem, false));
    beta_ = *identity::find_peer(root_, "beta");
  }
  ~NodeTest() override {
    let_go();
    reception_.reset();
    moves_.reset();
    starter_.reset();
    sessions_.reset();
  }
  // Threads that close files of sessions answer to this loop: they have done so before it goes.
  void let_go() {
    if (!sessions_ || sessions_->stopping()) return;
    bool stopped = false;
    sessions_->stop([&stopped] { stopped = true; });
    io_.restart();
    for (int turns = 0; !stopped && turns < 1000; ++turns) io_.run_one_for(std::chrono::milliseconds(10));
    // And what is still to be written into the audit log.
    for (int turns = 0; io_.run_one_for(std::chrono::milliseconds(30)) != 0 && turns < 100; ++turns) {
    }
  }
  void have_sessions() {
    serve(*identity::load(root_));
    sessions_ = std::make_unique<Sessions>(services_);
    starter_ = std::make_unique<Starter>(services_, *sessions_);
    moves_ = std::make_unique<Moves>(services_, *sessions_);
    reception_ = std::make_unique<Reception>(services_, *sessions_, *starter_, *moves_);
  }

  // What an awaitable comes to, by way of the loop.
  template <typename T>
  T await(asio::awaitable<T> what) {
    std::optional<T> result;
    asio::co_spawn(io_, keep(std::move(what), &result), asio::detached);
    run_until([&] { return result.has_value(); });
    return std::move(*result);
  }
  template <typename T>
  static asio::awaitable<void> keep(asio::awaitable<T> what, std::optional<T>* result) {
    result->emplace(co_await std::move(what));
  }

  Wishes wishes(const std::string& peer = "beta") const {
    Wishes wishes;
    wishes.peer = peer;
    wishes.sources = {"memory:1M"};
    wishes.destination = "data/x";
    return wishes;
  }
  std::string begin() {
    const Result<std::string> id = await(starter_->send(wishes()));
    EXPECT_TRUE(id) << id.error().message;
    return id ? *id : std::string();
  }
  std::shared_ptr<runtime::FakeConnection> call(const transfer::Hello& hello) { return call(hello, beta_); }
  std::shared_ptr<runtime::FakeConnection> call(const transfer::Hello& hello, const identity::Peer& peer) {
    const auto connection = std::make_shared<runtime::FakeConnection>(io_, peer);
    reception_->take(connection);
    connection->say(hello);
    return connection;
  }
  static std::string id_of(char digit) { return std::string(32, digit); }

  identity::Peer beta_;
  std::unique_ptr<Sessions> sessions_;
  std::unique_ptr<Starter> starter_;
  std::unique_ptr<Moves> moves_;
  std::unique_ptr<Reception> reception_;
};

}  // namespace sluice::node
