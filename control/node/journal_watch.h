// Whether the journal still stands where it belongs: one that was removed, moved or replaced while it is open
// takes all writes, and is gone with this process.
//
// On control's one io_context thread, which does not look itself; every five seconds, from start() until
// stop().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <memory>

#include "control/node/sessions.h"

namespace sluice::node {

class JournalWatch {
 public:
  // `sessions` outlives it.
  JournalWatch(std::shared_ptr<runtime::Services> services, Sessions& sessions);
  ~JournalWatch();
  JournalWatch(const JournalWatch&) = delete;
  JournalWatch& operator=(const JournalWatch&) = delete;

  void start();
  void stop();
  bool lost() const { return lost_; }  // as of the last look

 private:
  asio::awaitable<void> watch(std::shared_ptr<bool> alive);
  void note(bool lost);

  const std::shared_ptr<runtime::Services> services_;
  Sessions& sessions_;
  const std::shared_ptr<asio::steady_timer> timer_;
  bool lost_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // coroutines may outlive this object
};

}  // namespace sluice::node
