// What a transfer's performers stand on in a test: a node's directory with an export and a journal, the
// events that they post, a dataplane and a connection that a test plays. For tests.
//
// One thread, and nothing waits for time to pass: the bound in run_until() only ends a test that hangs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/executor_work_guard.hpp>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "control/async/notify.h"
#include "control/attach/attach_fixture.h"
#include "control/peer/codec.h"
#include "control/peer/connection.h"
#include "control/runtime/events.h"
#include "control/runtime/services.h"

namespace sluice::runtime {

// The events of a transfer, written down.
class HeardEvents final : public EventQueue {
 public:
  void post(transfer::Event event) override { events.push_back(std::move(event)); }
  template <typename E>
  std::vector<E> all() const {
    std::vector<E> found;
    for (const transfer::Event& event : events) {
      if (const E* one = std::get_if<E>(&event)) found.push_back(*one);
    }
    return found;
  }
  template <typename E>
  size_t count() const {
    return all<E>().size();
  }
  std::vector<transfer::Event> events;
};

// A control connection whose other end is the test.
class FakeConnection final : public peer::Connection {
 public:
  FakeConnection(asio::io_context& io, identity::Peer peer) : peer_(std::move(peer)), changed_(io) {}

  // ---- the other end ----
  void say(const transfer::Message& message) {
    heard_.push_back(peer::to_wire(message));
    changed_.notify();
  }
  // What this node has said, of this kind.
  template <typename M>
  std::vector<M> said() const {
    std::vector<M> found;
    for (const transfer::Message& message : said_) {
      if (const M* one = std::get_if<M>(&message)) found.push_back(*one);
    }
    return found;
  }
  bool closed() const { return closed_; }

  // ---- peer::Connection ----
  asio::awaitable<Result<peer::PeerMessage>> receive() override {
    while (heard_.empty() && !closed_) co_await changed_.wait();
    if (heard_.empty()) co_return Error{ErrorCode::kPeerUnreachable, "the connection has ended"};
    peer::PeerMessage message = std::move(heard_.front());
    heard_.pop_front();
    co_return message;
  }
  Status send(const peer::PeerMessage& message) override {
    if (closed_) return Error{ErrorCode::kPeerUnreachable, "the connection has ended"};
    if (auto said = peer::from_wire(message)) said_.push_back(std::move(*said));
    return {};
  }
  asio::awaitable<void> flush() override { co_return; }
  void set_stage(peer::Stage) override {}
  void close() override {
    closed_ = true;
    changed_.notify();
  }
  bool export_secret(std::string_view, std::span<const uint8_t>, std::span<uint8_t> out) const override {
    std::ranges::fill(out, uint8_t{7});
    return !closed_;
  }
  const identity::Peer& peer() const override { return peer_; }
  const std::string& own_fingerprint() const override { return own_fingerprint_; }
  std::string remote_address() const override { return "192.0.2.1:7"; }
  uint64_t rtt_ns() const override { return 0; }

 private:
  const identity::Peer peer_;
  const std::string own_fingerprint_ = "own";
  async::Notify changed_;
  std::deque<peer::PeerMessage> heard_;
  std::vector<transfer::Message> said_;
  bool closed_ = false;
};

// The node alpha, with an export "data" that may be read and written.
class RuntimeTest : public testing::Test {
 protected:
  explicit RuntimeTest(const std::function<void(config::Node&)>& change = [](config::Node&) {}) {
    char name[] = "/tmp/sluice-runtime-XXXXXX";
    root_ = ::mkdtemp(name);
    std::filesystem::create_directories(root_ / "data");
    node_.directory = root_;
    node_.name = "alpha";
    node_.listen = "none";
    node_.exports = {{"data", root_ / "data", true, true}};
    std::filesystem::create_directories(node_.run_dir());
    change(node_);
  }
  ~RuntimeTest() override {
    if (dataplane_) dataplane_->end();
    if (services_) services_->board->stop();
    settle();
    services_.reset();
    std::error_code ignored;  // a pool may still be about to write its last file there
    std::filesystem::remove_all(root_, ignored);
  }

  void serve(identity::Identity self = {}) {
    auto exports = exports::Exports::open(node_.exports);
    auto journal = journal::Journal::open(node_.journal());
    ASSERT_TRUE(exports && journal);
    services_ =
        std::make_shared<Services>(io_, node_, std::move(self), std::move(*exports), std::move(*journal));
  }
  // A dataplane that is there and answers. `attached` comes when it is.
  void attach() {
    dataplane_ = std::make_unique<attach::FakeDataplane>(node_.dataplane_socket());
    asio::co_spawn(io_, dataplane_->serve(io_), asio::detached);
    services_->board->start();
    run_until([this] { return services_->board->attached() != nullptr; });
  }
  void run_until(const std::function<bool()>& condition) {
    io_.restart();
    const auto work = asio::make_work_guard(io_);  // what is under way may have nothing here for a moment
    while (!condition()) ASSERT_GT(io_.run_one_for(std::chrono::seconds(120)), 0U) << "hangs";
  }
  // All that is due now.
  void settle() {
    io_.restart();
    while (io_.poll() != 0) {
    }
  }
  std::string path(const std::string& name) const { return (root_ / "data" / name).string(); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  std::string read(const std::string& name) const {
    std::ifstream in(path(name));
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  std::filesystem::path root_;
  asio::io_context io_{1};
  config::Node node_;
  std::unique_ptr<attach::FakeDataplane> dataplane_;
  std::shared_ptr<Services> services_;
};

}  // namespace sluice::runtime
