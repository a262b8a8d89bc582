// The sessions of the transfers of a `sluice run` that go on, so that its next start finds them again.
//
// Pure. Whoever holds it writes text() to a file when something has changed, and gives what stands there to
// the constructor at the next start. A transfer is named by its key, a session by its whole id.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::unattended {

class RunSessions {
 public:
  struct Session {
    std::string id;
    bool held = false;     // the command has paused it, outside its window
    bool earlier = false;  // an earlier start of the command has begun it
    friend bool operator==(const Session&, const Session&) = default;
  };

  // Lines that are none are left out.
  explicit RunSessions(std::string_view text = {});
  std::string text() const;  // empty: nothing goes on

  // Nothing: none goes on that is known. From now on it counts as begun by this start.
  std::optional<Session> take(const std::string& transfer);
  void began(const std::string& transfer, const std::string& id);
  void ended(const std::string& transfer);
  // False: nothing has changed.
  bool hold(const std::string& id, bool held);

 private:
  std::map<std::string, Session> sessions_;  // by transfer
};

}  // namespace sluice::unattended
