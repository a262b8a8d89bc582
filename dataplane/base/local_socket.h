// Who may open a socket of this host: its owner alone, or a group as well.
//
// Cold; at the start of a daemon, since the system's list of groups may be asked over a network.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "dataplane/base/error.h"

namespace sluice::base {

// Of a socket that is bound, and of the directory that it stands in if that is this process's own: others
// then may pass it, and see nothing in it. `group` empty: mode 0600, and nothing else. `key` of node.toml
// names the group, for the error of kConfiguration.
Status share_socket(const std::filesystem::path& socket, const std::string& group, const std::string& key);

}  // namespace sluice::base
