// Programs that are told of events: each is run for one, without a shell, with the event on its standard
// input and the facts in its environment, as often as unattended::Telling says.
//
// One thread. What they write goes to this process's standard error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <list>
#include <string>
#include <vector>

#include "control/client/json.h"
#include "dataplane/base/unique_fd.h"
#include "tools/cli/app.h"
#include "tools/unattended/telling.h"

namespace sluice::cli {

int64_t steady_now_ns();

struct TellerOptions {
  std::string program;
  std::filesystem::path node;  // SLUICE_NODE of the programs
  int64_t limit_ns = 30 * unattended::kOneSecondNs;
};

class Teller {
 public:
  // Both outlive it.
  Teller(Environment& environment, TellerOptions options, unattended::Telling& telling)
      : environment_(environment), options_(std::move(options)), telling_(telling) {}
  ~Teller() { stop(); }
  Teller(const Teller&) = delete;
  Teller& operator=(const Teller&) = delete;

  void start_due(int64_t now_ns);
  // Those that have ended; those that take too long are ended, and count as failed.
  void reap(int64_t now_ns);
  // Wakes poll() when one ends.
  void add_fds(std::vector<pollfd>* fds) const;
  int64_t next_ns() const;  // when there is something to do, unless one ends before
  size_t given_up() const { return given_up_; }
  // Ends those that run; unless they ended well, it is as if they had not been started.
  void stop();

 private:
  struct Running {
    std::string key;
    std::string about;
    pid_t pid = 0;
    UniqueFd ended;  // a pidfd
    int64_t limit_ns = 0;
    bool asked_to_end = false;
  };
  Result<Running> start(const unattended::Letter& letter, int64_t now_ns) const;
  void note(const Running& one, bool well, const std::string& how, int64_t now_ns);
  void say(const std::string& text) const;

  Environment& environment_;
  const TellerOptions options_;
  unattended::Telling& telling_;
  std::list<Running> running_;
  size_t given_up_ = 0;
};

// kUsage: it cannot be run; `option` is named.
Status check_program(const std::string& option, const std::string& program);

// How a session stands, as an event of its state.
api::SessionEvent standing_event(const api::Session& session);
// NAME=VALUE of the facts of an event (docs/REFERENCE.md, "Programs that are told").
std::vector<std::string> event_environment(const api::Json& event);

// For --notify: tells of the session's end, three times at most. What fails is said, and nothing else comes
// of it.
void notify_end(Environment& environment, const std::filesystem::path& node, const std::string& program,
                const api::Session& session);

}  // namespace sluice::cli
