// What a daemon tells the service manager that started it, in the protocol of sd_notify(3): that it serves,
// that it ends, what it does, and that its main loop still turns.
//
// A datagram each, to the socket named by $NOTIFY_SOCKET. Without that nobody is told anything. Cold; the
// thread of the daemon's main loop only, so that a loop that is stuck is not called alive by another thread.
// What cannot be told is in the log, once, and holds nothing up for longer than kTellTimeout.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/base/unique_fd.h"

namespace sluice::daemon {

inline constexpr std::chrono::seconds kTellTimeout{2};  // of READY and STOPPING; nothing else waits

class Service {
 public:
  Service() = default;  // nobody is told
  // Takes $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID out of the environment: they are for this process
  // alone. Before there are other threads.
  static Service from_environment();

  // For a process below the one that the manager knows, which hears it at the other end.
  static Service over(UniqueFd socket, std::chrono::nanoseconds alive_interval);
  // What such a process has said, word for word.
  void forward(std::string_view text) { tell(std::string(text), false); }

  // The daemon serves from now on: whoever waits for it may begin.
  void ready(std::string_view status);
  void stopping();
  // One line of what it does; nothing is sent if it is what was said last.
  void status(std::string_view text);
  // To be called at least every alive_interval(); tells no more often than that.
  void alive(uint64_t now_ns);

  bool is_told() const { return static_cast<bool>(socket_); }
  // Half of the time after which the manager takes the daemon for stuck. Zero: it does not watch.
  std::chrono::nanoseconds alive_interval() const { return alive_interval_; }

 private:
  bool tell(const std::string& text, bool may_wait);

  UniqueFd socket_;  // connected
  std::chrono::nanoseconds alive_interval_{0};
  uint64_t alive_due_ns_ = 0;
  std::string status_;  // what was said last
  bool failed_ = false;
};

}  // namespace sluice::daemon
