// Files that stand outside the exports, where an operator or a user of this host named them: a process of the
// caller's own opens them, and nothing else (for_caller.h). It calls control, and says for which session.
//
// A word of 128 bits, which the caller made up, joins the two: the process says it here, the call of the API
// that begins the session says it there, and the journal keeps it. The process comes back after a restart of
// control, for as long as a session wants it; who it is, the kernel says (SO_PEERCRED).
//
// A thread of its own takes calls. What is asked blocks; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "control/exports/as_user.h"
#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::users {

// Who is asked for something and is not there may come back in so long: control was restarted.
inline constexpr std::chrono::seconds kComesBack{3};
// For so long a process waits for the session that it came for.
inline constexpr std::chrono::seconds kUnwanted{60};
inline constexpr size_t kUnwantedOfOne = 64;  // of one user, at a time

class Callers {
 public:
  Callers();
  ~Callers();
  Callers(const Callers&) = delete;
  Callers& operator=(const Callers&) = delete;

  // Takes calls there, too. The socket is its caller's to share and to remove.
  Status listen(const std::filesystem::path& socket);
  // Takes no more of them: control goes. The processes stay, for its next life.
  void stop();
  // From now on nothing is waited for.
  void give_up() const;

  // Of the process that waits for a session with this word: whose it is. Nothing: there is none.
  std::optional<uint32_t> waiting(const std::string& token) const;
  // As long as what is returned lives, the process is wanted. Only one of this user counts.
  std::shared_ptr<exports::UserFiles> of(uint32_t uid, const std::string& token) const;

 private:
  class Link;
  struct Arrivals;
  struct Greeting {  // has not said yet what it wants
    UniqueFd fd;
    uint32_t uid = 0;
    std::chrono::steady_clock::time_point until;
  };
  void run();
  void end_thread();
  void take(int listener);
  void greet(Greeting& greeting) const;
  Error refusal(const std::string& token, uint32_t uid, std::shared_ptr<Link>* link) const;

  const std::shared_ptr<Arrivals> arrivals_;
  UniqueFd stop_;  // eventfd
  std::vector<UniqueFd> listeners_;
  std::vector<Greeting> greetings_;
  std::thread thread_;
};

}  // namespace sluice::users
