// See control_socket.h.
// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/control_socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace sluice::emulator {
namespace {

constexpr size_t kLineBytesMax = 4 << 20;
constexpr size_t kClientsMax = 64;

Error failed(const std::filesystem::path& path, const std::string& reason) {
  return {ErrorCode::kConfiguration, fmt::format("control socket {}: {}", path.string(), reason)};
}

bool send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

}  // namespace

Result<ControlSocket> ControlSocket::listen(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.empty() || text.size() >= sizeof address.sun_path) {
    return failed(path, fmt::format("its path must have 1 to {} characters", sizeof address.sun_path - 1));
  }
  text.copy(address.sun_path, text.size());
  const auto* const where = reinterpret_cast<const sockaddr*>(&address);
  std::error_code error;
  if (std::filesystem::is_socket(path, error)) {
    const UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(probe.get(), where, sizeof address) == 0) {
      return failed(path, "another process serves there: choose another path");
    }
    std::filesystem::remove(path, error);
  }
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || bind(fd.get(), where, sizeof address) != 0 || chmod(text.c_str(), 0600) != 0 ||
      ::listen(fd.get(), 16) != 0) {
    return failed(path, fmt::format("{}: check its directory", strerror(errno)));
  }
  return ControlSocket(path, std::move(fd));
}

ControlSocket::~ControlSocket() {
  std::error_code ignored;
  if (listening_) std::filesystem::remove(path_, ignored);
}

void ControlSocket::serve(int timeout_ms, int other_fd, const Answer& answer) {
  std::vector<pollfd> polled{{.fd = other_fd, .events = POLLIN}, {.fd = listening_.get(), .events = POLLIN}};
  for (const Client& client : clients_) polled.push_back({.fd = client.fd.get(), .events = POLLIN});
  if (poll(polled.data(), polled.size(), timeout_ms) <= 0) return;
  std::vector<Client> stay;
  for (size_t i = 0; i < clients_.size(); ++i) {
    if (polled[i + 2].revents == 0 || talk(clients_[i], answer)) stay.push_back(std::move(clients_[i]));
  }
  clients_ = std::move(stay);
  if (polled[1].revents == 0) return;
  UniqueFd fd(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const timeval patience{.tv_sec = 1, .tv_usec = 0};  // with a client that does not read
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (fd && clients_.size() < kClientsMax) clients_.push_back({std::move(fd), {}});
}

bool ControlSocket::talk(Client& client, const Answer& answer) {
  char bytes[65536];
  const ssize_t count = recv(client.fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  client.received.append(bytes, static_cast<size_t>(count));
  size_t begin = 0;
  for (size_t end = 0; (end = client.received.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string reply = answer(std::string_view(client.received).substr(begin, end - begin)) + "\n";
    if (!send_all(client.fd.get(), reply)) return false;
  }
  client.received.erase(0, begin);
  return client.received.size() <= kLineBytesMax;
}

}  // namespace sluice::emulator
