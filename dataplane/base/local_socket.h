// Sockets of this host: where a daemon listens, who may open them, and who has.
//
// Cold; at the start of a daemon, since the system's list of groups may be asked over a network.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::base {

// Of a socket that is bound, and of the directory that it stands in if that is this process's own: others
// then may pass it, and see nothing in it. `group` empty: mode 0600, and nothing else. `key` of node.toml
// names the group, for the error of kConfiguration.
Status share_socket(const std::filesystem::path& socket, const std::string& group, const std::string& key);

// The socket has mode 0600 and does not block; the name must be free. `kind`: SOCK_STREAM, SOCK_SEQPACKET.
// kConfiguration.
Result<UniqueFd> listen_locally(const std::filesystem::path& socket, int kind);

// As whom the process at the other end of this connection made it; nothing: the kernel does not say.
std::optional<uid_t> caller_of(int fd);

}  // namespace sluice::base
