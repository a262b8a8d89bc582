// What a shell completes after `sluice`: a script made from the tree of commands itself, so that none is
// forgotten.
//
// Pure. Completed are commands and options, and file names where a word of their own follows; names at other
// nodes and sessions are not, since that would ask a daemon for each key that is pressed.
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
