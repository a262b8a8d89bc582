// `--sync`: a directory at the destination is made what it is at the source, by what differs alone.
//
// Both are compared, the names that differ are sent, and with `--delete` those that the source lacks are
// removed afterwards, if all was sent and the source's list was complete.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/client/client.h"
#include "tools/cli/app.h"
#include "tools/cli/canceller.h"
#include "tools/cli/transfer_flags.h"

namespace sluice::cli {

struct SyncOutcome {
  int exit_code = 0;
  api::Json object;                      // sluice.sync.v1
  std::string text;                      // for people
  std::vector<api::Session> ended = {};  // of the sessions that it made; without their files
};

using SessionBegan = std::function<void(const std::string& id)>;

// Shows progress, and what went wrong, on stderr. An error: nothing was sent.
Result<SyncOutcome> sync_directory(Environment& environment, const std::shared_ptr<api::Client>& client,
                                   Canceller& canceller, const TransferFlags& flags,
                                   const api::TransferRequest& request, SessionBegan began = {});

}  // namespace sluice::cli
