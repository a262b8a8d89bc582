// What a process that has become a user does for sluice-control: one call after the other, until nothing came
// for a while or the other side has gone.
//
// It has the user's identity and no capability (identity.h), or is a process that the user started
// (for_caller.h); so what it may open is what he may. Which names there are, and what a peer may do with
// them, is judged here as well: control is not taken at its word. Blocking; one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/users/channel.h"
#include "dataplane/base/config/config.h"

namespace sluice::users {

inline constexpr std::chrono::seconds kIdle{60};

struct Served {
  std::vector<config::Export> exports;
  // What others may not with a file that arrives, whatever may be done with it where it comes from: as most
  // users have it, where his own is not known.
  mode_t umask = 022;
  // Absolute paths, that may be read or get a file; nothing: all that is beneath the exports.
  std::optional<std::set<std::string>> names = {};
};

// True: nothing more is wanted. False: the other side has gone, said what makes no sense, or was silent for
// so long.
bool serve(Channel& channel, const Served& served, std::chrono::milliseconds idle = kIdle);

}  // namespace sluice::users
