// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

namespace sluice::cli {
namespace {

// timeout, shells and batch systems send a signal to a process, and at once to its group.
constexpr std::chrono::seconds kSameSignal(1);
constexpr std::string_view kLeft =
    "sluice: left before the node has answered: what was begun may go on; sluice session list says so\n";

}  // namespace

Interrupt::Interrupt(std::function<void()> on_first, int exit_code, HangUp hang_up) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGINT);
  sigaddset(&mask, SIGTERM);
  if (hang_up == HangUp::kInterrupts) sigaddset(&mask, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &mask, &before_);
  signals_.reset(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  finished_.reset(::eventfd(0, EFD_CLOEXEC));
  thread_ = std::thread([this, on_first = std::move(on_first), exit_code] { wait(on_first, exit_code); });
}

Interrupt::~Interrupt() {
  ::eventfd_write(finished_.get(), 1);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Interrupt::wait(const std::function<void()>& on_first, int exit_code) {
  std::array<pollfd, 2> fds{pollfd{signals_.get(), POLLIN, 0}, pollfd{finished_.get(), POLLIN, 0}};
  std::optional<std::chrono::steady_clock::time_point> first;
  // `on_first` may block on a daemon that does not answer; a second Ctrl-C must still be seen.
  std::thread worker;
  while (fds[1].revents == 0) {
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const auto now = std::chrono::steady_clock::now();
      if (first && now - *first < kSameSignal) continue;
      if (first) {
        (void)!::write(STDERR_FILENO, kLeft.data(), kLeft.size());
        ::_exit(exit_code);
      }
      first = now;
      worker = std::thread(on_first);
    }
  }
  if (worker.joinable()) worker.join();
}

}  // namespace sluice::cli
