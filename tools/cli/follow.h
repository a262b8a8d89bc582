// Follows a session to its end and reports the outcome: common to send, get and `session wait`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "tools/cli/app.h"
#include "tools/cli/client.h"

namespace sluice::cli {

struct FollowOptions {
  bool quiet = false;  // no progress
  std::optional<double> timeout_s;
  int timeout_exit_code = 0;
};

// Shows progress on stderr until the end; then prints the summary or the object on stdout, and the error of
// a session that failed on stderr. Returns the session's ErrorCode as exit status.
Result<int> follow_session(const Context& context, Client& client, const std::string& id,
                           const FollowOptions& options);

}  // namespace sluice::cli
