// SPDX-License-Identifier: Apache-2.0
#include "control/api/users_door.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "dataplane/base/local_socket.h"

namespace sluice::service {
namespace {

constexpr int kThreadsOfUser = 64;  // each watcher holds one

}  // namespace

struct UsersDoor::Visitor {
  Visitor(const AsUser& as_user, uint32_t uid)
      : sessions(as_user.sessions(uid), uid), names(as_user.names(uid)) {}
  UserSessions sessions;
  UserNames names;
  std::unique_ptr<Server> server;
  bool is_member = false;
};

UsersDoor::UsersDoor(asio::io_context& io, AsUser as_user) : io_(io), as_user_(std::move(as_user)) {}

UsersDoor::~UsersDoor() { stop(); }

Status UsersDoor::start(const std::filesystem::path& socket, IsMember is_member) {
  is_member_ = std::move(is_member);
  if (auto cleared = clear_stale_socket(socket); !cleared) return cleared;
  stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_)
    return Error{ErrorCode::kConfiguration, std::string("cannot make an eventfd: ") + std::strerror(errno)};
  auto listener = base::listen_locally(socket, SOCK_STREAM);
  if (!listener) return listener.error();
  listener_ = std::move(*listener);
  socket_ = socket;
  thread_ = std::thread([this] { run(); });
  return {};
}

void UsersDoor::stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t told = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }
  for (auto& [uid, visitor] : visitors_) visitor->server->stop();
  connections_.clear();
  for (auto& [uid, visitor] : visitors_) dispose(std::move(visitor));
  visitors_.clear();
  listener_.reset();
  if (!socket_.empty()) ::unlink(socket_.c_str());
  socket_.clear();
}

void UsersDoor::run() {
  while (true) {
    std::vector<pollfd> all = {{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                               {.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    for (const Connection& one : connections_)
      all.push_back({.fd = one.fd.get(), .events = POLLRDHUP, .revents = 0});
    if (::poll(all.data(), all.size(), -1) < 0 && errno != EINTR) return;
    if (all[0].revents != 0) return;
    std::erase_if(connections_, [&all, i = size_t{2}](const Connection&) mutable {
      return (all[i++].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    });
    if (all[1].revents != 0) take();
  }
}

void UsersDoor::take() {
  UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  const std::optional<uint32_t> uid = connection ? base::caller_of(connection.get()) : std::nullopt;
  if (!uid) return;
  if (*uid == 0) return spdlog::warn("root is an operator of this node: refused as a user");
  if (connections_of(*uid) >= kConnectionsOfUser)
    return spdlog::warn("user {} has {} connections already: one more is refused", *uid, kConnectionsOfUser);
  UniqueFd second(::fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  const Result<Visitor*> who =
      second ? visitor(*uid) : Result<Visitor*>(Error{ErrorCode::kResources, "no descriptor is free"});
  if (!who) return spdlog::warn("user {} is refused: {}", *uid, who.error().message);
  connections_.push_back({std::move(second), *uid});
  (*who)->server->take(std::move(connection));
}

size_t UsersDoor::connections_of(uint32_t uid) const {
  return static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(),
                                           [uid](const Connection& one) { return one.uid == uid; }));
}

Result<UsersDoor::Visitor*> UsersDoor::visitor(uint32_t uid) {
  if (const auto known = visitors_.find(uid); known != visitors_.end()) return known->second.get();
  const Status member = is_member_(uid);
  if (visitors_.size() >= kUsersAtOnce || !member) let_idle_go();
  const auto strangers =
      std::ranges::count_if(visitors_, [](const auto& each) { return !each.second->is_member; });
  if (!member && static_cast<size_t>(strangers) >= kStrangersAtOnce) return member.error();
  if (visitors_.size() >= kUsersAtOnce)
    return Error{ErrorCode::kResources, std::to_string(kUsersAtOnce) + " users are connected already"};
  auto fresh = std::make_unique<Visitor>(as_user_, uid);
  fresh->is_member = static_cast<bool>(member);
  auto server = start_server(io_, fresh->sessions, fresh->names, kThreadsOfUser);
  if (!server) {
    dispose(std::move(fresh));
    return server.error();
  }
  fresh->server = std::move(*server);
  return (visitors_[uid] = std::move(fresh)).get();
}

void UsersDoor::let_idle_go() {
  for (auto one = visitors_.begin(); one != visitors_.end();) {
    if (connections_of(one->first) != 0) {
      ++one;
      continue;
    }
    one->second->server->stop();
    dispose(std::move(one->second));
    one = visitors_.erase(one);
  }
}

// Behind all that was posted for it: the loop may still have to do with it.
void UsersDoor::dispose(std::unique_ptr<Visitor> visitor) {
  asio::post(io_, [kept = std::shared_ptr<Visitor>(std::move(visitor))] {});
}

}  // namespace sluice::service
