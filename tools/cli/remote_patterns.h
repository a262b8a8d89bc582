// Sources of a `get` that are patterns: which files fit them is asked of the other node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "control/client/client.h"
#include "dataplane/base/error.h"
#include "tools/cli/transfer_flags.h"

namespace sluice::cli {

// In place of each pattern the files that fit it, in the order of a list; what fits and is no file is left
// out, and `err` told so. So are names that a command cannot have, as they are no UTF-8: these are returned.
// An error: no file fits, or whether all are known cannot be told.
Result<std::vector<std::string>> replace_patterns(api::Client& client, const TransferFlags& flags,
                                                  api::TransferRequest& request, std::ostream& err);

}  // namespace sluice::cli
