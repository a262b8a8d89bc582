// What a process that has become a user does about trees and packs (server.h), with the code and in the way
// of sluice-control itself (control/gather), and with that user's rights.
//
// Of one connection; one thread. Which exports there are is judged here as well.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "control/exports/exports.h"
#include "control/users/channel.h"
#include "control/users/server.h"
#include "control/users/words.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::users {

class ServedTrees {
 public:
  // Both outlive it.
  ServedTrees(const Served& served, Channel& channel) : served_(served), channel_(channel) {}
  // Of is_of_trees(). False: the other side has gone.
  bool answer(const Call& call, UniqueFd fd);

 private:
  struct Reply {
    Answer answer;
    UniqueFd beside;
  };
  exports::Exports open(const Call& call) const;
  Status perform(const Call& call, UniqueFd fd, Reply& reply);
  bool list(const Call& call);
  bool preview(const Call& call);
  Status stage(const Call& call, UniqueFd fd);
  Status name(const Call& call, Answer& answer);
  Status remove_staging(const Call& call) const;

  const Served& served_;
  Channel& channel_;
  std::map<uint64_t, std::shared_ptr<exports::Unpacking>> staged_;  // by their numbers
};

}  // namespace sluice::users
