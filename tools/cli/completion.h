// What a shell completes after `sluice`: a script made from the tree of commands itself, so that none is
// forgotten.
//
// Pure. The script knows commands, options and their choices; for operands it runs the command (operands.h),
// which asks the node for peers, names at them and sessions and has a limit of time. Local files are the
// shell's own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "dataplane/base/error.h"

namespace CLI {
class App;
}  // namespace CLI

namespace sluice::cli {

// For `shell`: bash, zsh or fish. kUsage: another one.
Result<std::string> completion_script(const CLI::App& app, const std::string& shell);

}  // namespace sluice::cli
