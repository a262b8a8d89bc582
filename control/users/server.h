// What a process that has become a user does for sluice-control: one call after the other, until nothing came
// for a while or the other side has gone.
//
// It has the user's identity and no capability (identity.h), so what it may open is what he may. Which
// exports there are, and what a peer may do with them, is judged here as well: control is not taken at its
// word. Blocking; the process's only thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <vector>

#include "control/users/channel.h"
#include "dataplane/base/config/config.h"

namespace sluice::users {

inline constexpr std::chrono::seconds kIdle{60};

void serve(Channel& channel, const std::vector<config::Export>& exports,
           std::chrono::milliseconds idle = kIdle);

}  // namespace sluice::users
