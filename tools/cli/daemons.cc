// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/daemons.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <cerrno>
#include <fstream>
#include <thread>

#include "tools/cli/format.h"

namespace sluice::cli {

Signals::Signals() {
  sigset_t mask;
  sigemptyset(&mask);
  for (const int one : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&mask, one);
  ::pthread_sigmask(SIG_BLOCK, &mask, &before_);
  fd_.reset(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
}

Signals::~Signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

int Signals::next(std::chrono::milliseconds at_most) {
  pollfd fd{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&fd, 1, static_cast<int>(at_most.count())) <= 0) return 0;
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return 0;
  if (info.ssi_signo == SIGCHLD) return 0;
  by_terminal_ = info.ssi_code == SI_KERNEL;
  return static_cast<int>(info.ssi_signo);
}

int Process::start(const StartOptions& options) {
  const Started started = start_program(options);
  pid_ = started.pid;
  return started.reason;
}

bool Process::running() {
  if (pid_ <= 0) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  status_ = exit_status(status);
  pid_ = 0;
  return false;
}

void Process::send(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

void Process::stop(std::chrono::milliseconds patience) {
  constexpr auto kLook = std::chrono::milliseconds(20);
  send(SIGTERM);
  for (const auto until = std::chrono::steady_clock::now() + patience;
       running() && std::chrono::steady_clock::now() < until;)
    std::this_thread::sleep_for(kLook);
  if (!running()) return;
  send(SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  status_ = exit_status(status);
  pid_ = 0;
}

Error Process::ended() const {
  std::ifstream file(log_);
  std::string line, last;
  while (std::getline(file, line)) {
    if (!line.empty()) last = line;
  }
  return {ErrorCode::kDaemonNotRunning, fmt::format("{} ended with status {}: {}", name_, status_,
                                                    last.empty() ? "it said nothing" : printable(last))};
}

}  // namespace sluice::cli
