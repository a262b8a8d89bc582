// `--dry-run`: what a transfer would move, without moving it.
//
// Of a `send` this node looks at its sources as the transfer would, and opens each file. Of a `get` the other
// node is asked for its names, as by `sluice ls -R`. The destination is not looked at.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/client/client.h"
#include "tools/cli/app.h"

namespace sluice::cli {

// Prints it; the exit status is that with which the transfer would end, as far as can be known.
Result<int> dry_run(const Context& context, api::Client& client, const api::TransferRequest& request);

}  // namespace sluice::cli
