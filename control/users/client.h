// Control's side of sluice-users: files opened as users of this host.
//
// A connection for each user, behind which a process of his stands; made when it is needed, and again when it
// has gone. Blocking (asking.h); any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "control/exports/as_user.h"

namespace sluice::users {

class Lifeline;

class Client {
 public:
  explicit Client(std::filesystem::path socket);
  ~Client();
  std::shared_ptr<exports::UserFiles> of(uint32_t uid) const;
  // Each list and each change has a connection and a process of its own, for as long as it takes.
  std::unique_ptr<exports::UserNames> names_of(uint32_t uid) const;
  // From now on nothing is waited for: what is asked fails, as if the helper had gone.
  void give_up() const;

 private:
  class Link;
  const std::filesystem::path socket_;
  const std::shared_ptr<Lifeline> lifeline_;
  mutable std::mutex mutex_;
  mutable std::map<uint32_t, std::weak_ptr<Link>> links_;
};

}  // namespace sluice::users
