// What --help prints, and the manual pages have: how a command is written, what its options take, examples,
// and what an exit code means.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/error.h"

namespace CLI {
class App;
}  // namespace CLI

namespace sluice::cli {

// Of this app, and of all commands that are added to it from now on.
void use_help(CLI::App& app);

// Commands as somebody would type them, each with what it does behind "  # ". `command` is below the program,
// such as that of `node init`; one without any has none.
std::vector<std::string> example_lines(const CLI::App& command);

// One clause: "the node name is unknown, or one of the nodes does not trust the other's key".
std::string_view exit_meaning(ErrorCode code);

}  // namespace sluice::cli
