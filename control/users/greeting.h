// The first words between sluice-control and sluice-users: a connection for one user.
//
// Blocking, for a bounded time; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include "control/users/channel.h"
#include "dataplane/base/error.h"

namespace sluice::users {

// `lifeline`: once it hangs up, waiting ends (Channel::give_up_with). kDaemonNotRunning: nobody answers;
// kConfiguration: this user may not.
Result<Channel> greet(const std::filesystem::path& socket, uint32_t uid, int lifeline);
// `reason`: an errno.
Error no_helper(const std::filesystem::path& socket, int reason);

}  // namespace sluice::users
