// How sluice-control ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "control/node/manager.h"

namespace sluice::control {

// Ends everything in its order: no more calls of the operator, then the sessions, then the loop, which
// returns by itself once nothing is left to do. Neither a file system that hangs nor a user's own process
// keeps the daemon: what does not come back in time is left behind.
class Shutdown {
 public:
  // Sessions tell their peers why they end; a peer that does not take it is not waited for longer.
  static constexpr std::chrono::milliseconds kStopGrace{3000};
  static constexpr std::chrono::milliseconds kLastGrace{1000};

  Shutdown(asio::io_context& io, node::Manager& manager, std::function<void()> stop_servers)
      : io_(io), manager_(manager), stop_servers_(std::move(stop_servers)) {}
  void begin() {
    // The server waits for calls that this very loop has to answer, so it is stopped from outside.
    servers_ = std::thread([this] {
      stop_servers_();
      servers_stopped_.set_value();
    });
    thread_ = std::thread([this] {
      servers_over_ = served_.wait_for(kStopGrace) == std::future_status::ready;
      asio::post(io_, [this] { manager_.stop(); });
      if (returned_.get_future().wait_for(kStopGrace) != std::future_status::timeout) return;
      manager_.give_up_users();
      io_.stop();
    });
  }
  // The loop has returned. What still hangs, for the log; empty: all has ended.
  std::string finish() {
    returned_.set_value();
    if (!thread_.joinable()) return "";
    thread_.join();
    std::string stuck = manager_.settle(kLastGrace);
    servers_over_ = servers_over_ || served_.wait_for(kLastGrace) == std::future_status::ready;
    if (servers_over_) {
      servers_.join();
    } else if (stuck.empty()) {
      stuck = "what an operator asked for";
    }
    return stuck;
  }

 private:
  asio::io_context& io_;
  node::Manager& manager_;
  const std::function<void()> stop_servers_;
  std::promise<void> servers_stopped_;
  std::future<void> served_ = servers_stopped_.get_future();
  std::promise<void> returned_;  // the loop did
  std::thread servers_;
  std::thread thread_;
  bool servers_over_ = false;
};

}  // namespace sluice::control
