// The way to the API of a node whose directory is known: which of its sockets, and a channel over it.
//
// Any thread. There are three sockets: for operators, for users who send as themselves, and for those who may
// only look. The first that a user may open serves that user best.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <filesystem>
#include <memory>

#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace sluice::api {

inline constexpr char kUsualNode[] = "/etc/sluice";
// $SLUICE_NODE; without it kUsualNode.
std::filesystem::path usual_node();

// In the order in which they are tried.
inline std::array<std::filesystem::path, 3> sockets_of(const config::Node& node) {
  return {node.control_socket(), node.users_socket(), node.readers_socket()};
}

// kConfiguration if this path is longer than the address of a unix socket may be.
Status check_length(const std::filesystem::path& socket);

// A connection to the first socket that this user may open. kConfiguration: this user may open none.
// kDaemonNotRunning: nobody listens there, or control stands still.
Result<UniqueFd> connect_to(const std::filesystem::path& node_directory);

// The path of that socket, without a connection; the operators' if this user may open none.
std::filesystem::path socket_for_this_user(const std::filesystem::path& node_directory);

// It ends with this connection: for a program that ends with its command.
std::shared_ptr<grpc::Channel> channel_over(UniqueFd connection);
// It connects at its first call, and again after a restart of control: for a program that stays.
std::shared_ptr<grpc::Channel> channel_to(const std::filesystem::path& socket);

}  // namespace sluice::api
