// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/daemon/service.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "dataplane/base/text.h"

namespace sluice::daemon {
namespace {

std::string take(const char* name) {
  const char* const value = std::getenv(name);
  std::string text = value != nullptr ? value : "";
  ::unsetenv(name);
  return text;
}

std::optional<uint64_t> number(const std::string& text) {
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Connected to a path, or to an abstract name, which is written with '@' for its first byte.
UniqueFd connected(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if ((name[0] != '/' && name[0] != '@') || name.size() < 2 || name.size() >= sizeof address.sun_path) {
    spdlog::warn(
        "$NOTIFY_SOCKET is neither a path nor an abstract socket: no service manager is told anything");
    return {};
  }
  std::memcpy(address.sun_path, name.data(), name.size());
  const bool abstract = name[0] == '@';
  if (abstract) address.sun_path[0] = '\0';
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const timeval limit{.tv_sec = kTellTimeout.count(), .tv_usec = 0};
  const size_t bytes = offsetof(sockaddr_un, sun_path) + name.size() + (abstract ? 0 : 1);
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(bytes)) !=
          0) {
    spdlog::warn("cannot connect to $NOTIFY_SOCKET {}: {}: no service manager is told anything", name,
                 std::strerror(errno));
    return {};
  }
  return socket;
}

}  // namespace

Service Service::from_environment() {
  const std::string name = take("NOTIFY_SOCKET");
  const std::optional<uint64_t> watchdog_us = number(take("WATCHDOG_USEC"));
  const std::string pid = take("WATCHDOG_PID");
  Service service;
  if (name.empty()) return service;
  service.socket_ = connected(name);
  // Meant for another process that passed its environment on.
  const bool ours = pid.empty() || number(pid) == static_cast<uint64_t>(::getpid());
  if (service.socket_ && watchdog_us && ours) {
    constexpr uint64_t kUsMax = 1ULL << 53;  // in nanoseconds still a number
    service.alive_interval_ = std::chrono::microseconds(std::min(*watchdog_us, kUsMax)) / 2;
  }
  return service;
}

Service Service::over(UniqueFd socket, std::chrono::nanoseconds alive_interval) {
  Service service;
  service.socket_ = std::move(socket);
  service.alive_interval_ = alive_interval;
  return service;
}

void Service::ready(std::string_view status) {
  status_ = base::printable(status);
  tell("READY=1\nSTATUS=" + status_, true);
}

void Service::stopping() {
  status_ = "ending";
  tell("STOPPING=1\nSTATUS=" + status_, true);
}

void Service::status(std::string_view text) {
  std::string line = base::printable(text);
  if (line == status_) return;
  if (tell("STATUS=" + line, false)) status_ = std::move(line);
}

void Service::alive(uint64_t now_ns) {
  if (alive_interval_.count() == 0 || now_ns < alive_due_ns_) return;
  // What was not taken is said again with the next turn.
  if (tell("WATCHDOG=1", false)) alive_due_ns_ = now_ns + static_cast<uint64_t>(alive_interval_.count());
}

bool Service::tell(const std::string& text, bool may_wait) {
  if (!socket_) return true;
  const int flags = MSG_NOSIGNAL | (may_wait ? 0 : MSG_DONTWAIT);
  if (::send(socket_.get(), text.data(), text.size(), flags) == static_cast<ssize_t>(text.size()))
    return true;
  if (!failed_) spdlog::warn("the service manager cannot be told '{}': {}", text, std::strerror(errno));
  failed_ = true;
  return false;
}

}  // namespace sluice::daemon
