// Cancels on Ctrl-C the sessions that a command began, also one whose id comes only afterwards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "control/client/client.h"
#include "tools/cli/app.h"
#include "tools/cli/format.h"

namespace sluice::cli {

class Canceller {
 public:
  explicit Canceller(Environment& environment) : environment_(environment) {}

  void on_interrupt() {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    woken_.notify_all();
    for (const std::string& id : ids_) cancel(id);
  }
  bool interrupted() const {
    const std::lock_guard lock(mutex_);
    return interrupted_;
  }
  // False: it was interrupted, before or meanwhile.
  bool wait(std::chrono::nanoseconds time) {
    std::unique_lock lock(mutex_);
    return !woken_.wait_for(lock, time, [this] { return interrupted_; });
  }
  // `client` is the same each time.
  void started(const std::shared_ptr<api::Client>& client, const std::string& id) {
    const std::lock_guard lock(mutex_);
    client_ = client;
    ids_.push_back(id);
    if (told_) told_(id, true);
    if (interrupted_) cancel(id);
  }
  void ended(const std::string& id) {
    const std::lock_guard lock(mutex_);
    std::erase(ids_, id);
    if (told_) told_(id, false);
  }
  // Of each that begins (true) and ends.
  void tell_of_sessions(std::function<void(const std::string& id, bool runs)> told) {
    const std::lock_guard lock(mutex_);
    told_ = std::move(told);
  }

 private:
  void cancel(const std::string& id) {
    environment_.err << (environment_.err_is_terminal ? "\r\x1b[K" : "") << "sluice: cancelling session "
                     << printable(id) << "; Ctrl-C again leaves at once\n"
                     << std::flush;
    const auto cancelled = client_->cancel(id);
    if (!cancelled) {
      environment_.err << "sluice: cannot cancel session " << printable(id) << ": "
                       << printable(cancelled.error().message) << "\n"
                       << std::flush;
    }
  }

  Environment& environment_;
  mutable std::mutex mutex_;
  std::condition_variable woken_;
  bool interrupted_ = false;
  std::shared_ptr<api::Client> client_;  // an interrupt may come while whoever made it leaves
  std::vector<std::string> ids_;
  std::function<void(const std::string& id, bool runs)> told_;
};

}  // namespace sluice::cli
