// Exports whose file systems do not answer: named in the log and to operators. Sessions that wait there hold
// no place of others.
//
// On control's one io_context thread; it looks every second, from start() until stop().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "control/async/keyed_pool.h"
#include "control/node/sessions.h"

namespace sluice::node {

class ExportWatch {
 public:
  // `sessions` outlives it.
  ExportWatch(std::shared_ptr<runtime::Services> services, Sessions& sessions);
  ~ExportWatch();
  ExportWatch(const ExportWatch&) = delete;
  ExportWatch& operator=(const ExportWatch&) = delete;

  void start();
  void stop();
  std::vector<async::KeyedPool::Wait> waits() const;  // now, one for each key
  // After the loop: calls into file systems have so long to come back. Where some do not, it returns the
  // exports that they are in; the process must then end as it is (KeyedPool::settle).
  std::string settle(std::chrono::milliseconds limit);

 private:
  std::vector<async::KeyedPool*> pools() const;
  asio::awaitable<void> watch(std::shared_ptr<bool> alive);
  void look();

  const std::shared_ptr<runtime::Services> services_;
  Sessions& sessions_;
  const std::shared_ptr<asio::steady_timer> timer_;
  std::set<std::string> held_up_;                                     // keys of waits(), as of the last look
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // coroutines may outlive this object
};

}  // namespace sluice::node
