// Cold. See socket.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memif/socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "dataplane/memif/process_files.h"

namespace sluice::memif {
namespace {

namespace fs = std::filesystem;

struct Address {
  sockaddr_un un{};
  socklen_t bytes = 0;
};

// As the driver forms it.
Address address_of(const SocketConfig& config) {
  Address address;
  address.un.sun_family = AF_UNIX;
  const size_t at = config.is_abstract ? 1 : 0;
  memcpy(address.un.sun_path + at, config.path.data(), config.path.size());
  address.bytes = config.is_abstract
                      ? static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + config.path.size())
                      : sizeof address.un;
  return address;
}

bool has_address(int fd, int (*ask)(int, sockaddr*, socklen_t*), const Address& wanted) {
  Address found;
  found.bytes = sizeof found.un;
  if (ask(fd, reinterpret_cast<sockaddr*>(&found.un), &found.bytes) != 0 || found.un.sun_family != AF_UNIX) {
    return false;
  }
  return memcmp(found.un.sun_path, wanted.un.sun_path, sizeof wanted.un.sun_path) == 0;
}

Error wrong_socket(const SocketConfig& config, ErrorCode code, std::string_view reason) {
  return {code, fmt::format("[port] device {}: socket {}: {}", config.device, config.path, reason)};
}

}  // namespace

UniqueFd connect_to_server(const SocketConfig& config) {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const Address address = address_of(config);
  if (fd && connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.un), address.bytes) != 0) {
    const int reason = errno;
    fd.reset();
    errno = reason;
  }
  return fd;
}

int greeted(const UniqueFd& connection, int timeout_ms) {
  pollfd waited{.fd = connection.get(), .events = POLLIN, .revents = 0};
  if (poll(&waited, 1, timeout_ms) <= 0) return 0;
  char message[256];
  const ssize_t bytes = recv(connection.get(), message, sizeof message, MSG_DONTWAIT);
  if (bytes > 0) return 1;
  return bytes < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

Status prepare_socket(const SocketConfig& config) {
  if (config.is_abstract) return {};
  const fs::path path = config.path;
  std::error_code error;
  if (!path.has_parent_path() || !fs::is_directory(path.parent_path(), error)) {
    return wrong_socket(config, ErrorCode::kConfiguration, "its directory does not exist: create it");
  }
  if (access(path.parent_path().c_str(), R_OK | W_OK) != 0) {
    return wrong_socket(config, ErrorCode::kDevice,
                        "its directory is not readable and writable for this user");
  }
  if (!config.server) return {};
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status)) return {};
  if (!fs::is_socket(status)) {
    return wrong_socket(config, ErrorCode::kConfiguration, "exists and is no socket: move it away");
  }
  const UniqueFd other = connect_to_server(config);
  if (other || errno != ECONNREFUSED) {
    if (other) greeted(other, 1000);
    return wrong_socket(config, ErrorCode::kDevice,
                        "another process serves there: stop it, or give each pair of nodes its own socket");
  }
  fs::remove(path, error);
  return {};
}

std::vector<int> socket_descriptors(const SocketConfig& config) {
  const Address address = address_of(config);
  std::vector<int> found;
  for (const int fd : own_descriptors()) {
    if (has_address(fd, getsockname, address) || has_address(fd, getpeername, address)) found.push_back(fd);
  }
  return found;
}

}  // namespace sluice::memif
