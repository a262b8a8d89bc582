// Ctrl-C (and SIGTERM, and SIGHUP if that is asked for) while a session runs: the first is handed to
// `on_first` on a thread of its own. One that comes a second later, or after that, leaves the process at
// once, and says so.
//
// The signals are blocked for the thread that makes this object and for all threads that it makes later, so
// make it before anything that starts threads. Not for more than one object at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <functional>
#include <thread>

#include "dataplane/base/unique_fd.h"

namespace sluice::cli {

class Interrupt {
 public:
  enum class HangUp : bool { kEndsProcess, kInterrupts };  // when the terminal goes away
  Interrupt(std::function<void()> on_first, int exit_code, HangUp hang_up = HangUp::kEndsProcess);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

 private:
  void wait(const std::function<void()>& on_first, int exit_code);

  sigset_t before_{};
  UniqueFd signals_;
  UniqueFd finished_;
  std::thread thread_;
};

}  // namespace sluice::cli
