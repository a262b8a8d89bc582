// SPDX-License-Identifier: Apache-2.0
#include "control/client/way.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "control/client/liveness.h"

namespace sluice::api {
namespace {

constexpr time_t kConnectTimeoutS = 15;

config::Node node_in(const std::filesystem::path& directory) {
  config::Node node;
  node.directory = directory;
  return node;
}

// Nothing, with errno, if nobody answers.
UniqueFd connected(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (path.native().size() >= sizeof(address.sun_path)) return {};
  std::memcpy(address.sun_path, path.c_str(), path.native().size());
  // A daemon that stands still takes no more connections once its queue is full.
  const timeval limit{.tv_sec = kConnectTimeoutS, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return socket;
  const int error = errno;
  socket.reset();
  errno = error;
  return socket;
}

Error cannot_connect(const std::filesystem::path& directory, const std::filesystem::path& socket, int error) {
  if (error == EACCES || error == EPERM) {
    return {ErrorCode::kConfiguration,
            "no permission for " + socket.string() +
                "; run as the user that runs sluice-control, or as a member of [control] group, or of "
                "users_group to send as yourself"};
  }
  if (error == ENOENT || error == ECONNREFUSED) {
    return {ErrorCode::kDaemonNotRunning, "sluice-control is not running for " + directory.string() +
                                              "; start it with 'sluice-control --node " + directory.string() +
                                              "'"};
  }
  if (error == EAGAIN) return {ErrorCode::kDaemonNotRunning, Liveness::problem(" of " + directory.string())};
  return {ErrorCode::kDaemonNotRunning, "cannot connect to " + socket.string() + ": " + std::strerror(error)};
}

// gRPC takes a percent sign and two digits for any byte of a path.
std::string target_of(const std::filesystem::path& socket) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string target = "unix:";
  for (const char byte : socket.native()) {
    const auto number = static_cast<unsigned char>(byte);
    if (std::isalnum(number) != 0 || std::string_view("/._-~").find(byte) != std::string_view::npos) {
      target += byte;
    } else {
      target += {'%', kHex[number >> 4U], kHex[number & 15U]};
    }
  }
  return target;
}

// A session tells of all its files in each message.
grpc::ChannelArguments of_any_length() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  return arguments;
}

}  // namespace

std::filesystem::path usual_node() {
  const char* const set = std::getenv("SLUICE_NODE");
  return set != nullptr && *set != '\0' ? set : kUsualNode;
}

Status check_length(const std::filesystem::path& socket) {
  if (socket.native().size() < sizeof(sockaddr_un::sun_path)) return {};
  return Error{ErrorCode::kConfiguration,
               socket.string() + " is longer than a unix socket's path may be; use a shorter node directory"};
}

Result<UniqueFd> connect_to(const std::filesystem::path& node_directory) {
  const auto sockets = sockets_of(node_in(node_directory));
  if (Status status = check_length(sockets.front()); !status) return status.error();
  UniqueFd connection = connected(sockets.front());
  const int error = errno;
  for (size_t i = 1; !connection && error == EACCES && i < sockets.size(); ++i)
    connection = connected(sockets[i]);
  if (!connection) return cannot_connect(node_directory, sockets.front(), error);
  return connection;
}

std::filesystem::path socket_for_this_user(const std::filesystem::path& node_directory) {
  const auto sockets = sockets_of(node_in(node_directory));
  for (const std::filesystem::path& socket : sockets) {
    if (::access(socket.c_str(), W_OK) == 0) return socket;
  }
  return sockets.front();
}

std::shared_ptr<grpc::Channel> channel_over(UniqueFd connection) {
  ::fcntl(connection.get(), F_SETFL, O_NONBLOCK);
  return grpc::CreateCustomInsecureChannelFromFd("sluice-control", connection.release(), of_any_length());
}

std::shared_ptr<grpc::Channel> channel_to(const std::filesystem::path& socket) {
  return grpc::CreateCustomChannel(target_of(socket), grpc::InsecureChannelCredentials(), of_any_length());
}

}  // namespace sluice::api
