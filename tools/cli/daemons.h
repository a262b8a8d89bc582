// Signals that end a command which runs daemons, and those daemons. Linux; one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>

#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"
#include "tools/cli/child.h"

namespace sluice::cli {

// SIGINT, SIGTERM and SIGHUP are read here from now on, and that a child has ended wakes who waits. Before
// there are other threads.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Waits for one at most so long; 0: none that ends anything came.
  int next(std::chrono::milliseconds at_most);
  // The last one went to all that the terminal has in front: the command has it already.
  bool by_terminal() const { return by_terminal_; }

 private:
  sigset_t before_{};
  UniqueFd fd_;
  bool by_terminal_ = false;
};

class Process {
 public:
  Process() = default;
  Process(std::string name, std::filesystem::path log) : name_(std::move(name)), log_(std::move(log)) {}

  int start(const StartOptions& options);  // 0, or errno
  bool running();
  void send(int number) const;
  // Asks it, then does not ask any more.
  void stop(std::chrono::milliseconds patience);
  int status() const { return status_; }
  const std::string& name() const { return name_; }
  // That it has ended, with the last line of its log.
  Error ended() const;

 private:
  std::string name_;
  std::filesystem::path log_;
  pid_t pid_ = 0;
  int status_ = 0;
};

}  // namespace sluice::cli
