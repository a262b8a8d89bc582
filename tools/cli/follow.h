// Follows a session to its end and reports the outcome: common to send, get, run and `session wait`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/client/client.h"
#include "tools/cli/app.h"

namespace sluice::cli {

class TransferLists;

struct FollowOptions {
  bool quiet = false;  // no progress
  std::optional<double> timeout_s;
  int timeout_exit_code = 0;
  std::string notify = {};  // a program that is told of the end; empty: none
  const TransferLists* lists = nullptr;
  std::vector<std::string> left_out = {};  // of what was asked for
};

// Shows progress on stderr until the end; then prints the summary or the object on stdout, and the error of
// a session that failed on stderr, and tells `notify`. Returns the session's ErrorCode as exit status.
Result<int> follow_session(const Context& context, api::Client& client, const std::string& id,
                           const FollowOptions& options);

// Of these, the first part: the session's last state.
Result<api::Session> watch_session(Environment& environment, api::Client& client, const std::string& id,
                                   const FollowOptions& options);
// What it failed of, on stderr, behind `where`; nothing of a success.
void tell_failure(Environment& environment, const api::Session& session, const std::string& where = "");
int exit_code_of(const api::Session& session);
// What lists of digests say of a session of which something arrived: on stderr, and in `object`. Returns the
// exit status of both.
int tell_lists(Environment& environment, api::Client& client, const TransferLists& lists,
               const api::Session& session, api::Json* object);
// Names that fit a pattern and were not asked for (remote_patterns.h), in `object`. Returns the exit status
// of all.
int tell_left_out(const std::vector<std::string>& names, int exit_code, api::Json* object);

}  // namespace sluice::cli
