// Knows who this node is, whom it trusts and whom peers' users are here, and reads that anew only where a
// file has changed.
//
// Each handshake asks, and so does a look every two seconds. To read a thousand pins takes control tens of
// milliseconds; to see that each is as it was takes one or two. An operator's change still counts at once: a
// file is as it was if its inode, its size and both of its times are. A file that has changed within the last
// seconds is read each time, as a clock of the kernel may stand still between two changes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/identity/stamp.h"
#include "control/identity/trust.h"

namespace sluice::identity {

class StandingFiles {
 public:
  // More than any file system rounds its times by.
  static constexpr std::chrono::nanoseconds kSettled = std::chrono::seconds(3);

  explicit StandingFiles(config::Node node, std::chrono::nanoseconds settled = kSettled)
      : node_(std::move(node)), settled_after_(settled) {}

  // As load_standing() at `asked` or later, and the map of users: the one that was read last while it cannot
  // be read, or has a line that cannot be used. Blocks; any thread: of many who ask at once one looks, and
  // those who had asked before it began take what it found.
  Result<Standing> now(std::chrono::steady_clock::time_point asked);

 private:
  using Marks = std::vector<std::pair<std::string, Stamp>>;  // by path; an empty stamp: nothing is there
  // Nothing: it cannot be told, e.g. for want of descriptors.
  std::optional<Marks> look() const;
  Status take_users(Standing* standing);

  const config::Node node_;
  const std::chrono::nanoseconds settled_after_;
  std::mutex mutex_;
  std::optional<Standing> last_;
  std::shared_ptr<const UserMap> users_;          // the last good one
  std::chrono::steady_clock::time_point looked_;  // when the look began that said so
  std::optional<Marks> marks_;                    // what `last_` was read from; nothing: it is read again
};

}  // namespace sluice::identity
