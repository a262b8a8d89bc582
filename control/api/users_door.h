// Where users of this host come in who send and get as themselves ([control] users_group): a socket whose
// callers are told apart by what the kernel says of them (SO_PEERCRED), and by nothing that they say. Each
// user has a server of gRPC's own that has no other socket, so no call reaches what is another's.
//
// A thread of its own accepts, and sees who has gone. Any thread may stop it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "control/api/server.h"
#include "control/api/users.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::service {

inline constexpr size_t kUsersAtOnce = 128;
inline constexpr size_t kStrangersAtOnce = 4;  // who are no members of the group
inline constexpr size_t kConnectionsOfUser = 32;

class UsersDoor {
 public:
  UsersDoor(asio::io_context& io, AsUser as_user);
  ~UsersDoor();

  // Whoever has the socket's group may connect, under any number that a user namespace gives him.
  using IsMember = std::function<Status(uint32_t uid)>;
  // Serves on `socket`, of mode 0600, until stop(). Who is no member is told so when he wants something; few
  // of those are let in at a time. `is_member` is asked on a thread of its own.
  Status start(const std::filesystem::path& socket, IsMember is_member);
  void stop();

 private:
  struct Visitor;  // a user, his server, and what that stands in front of
  struct Connection {
    UniqueFd fd;  // a second descriptor of it: tells when the caller has gone
    uint32_t uid = 0;
  };
  void run();
  void take();
  size_t connections_of(uint32_t uid) const;
  Result<Visitor*> visitor(uint32_t uid);
  void let_idle_go();
  void dispose(std::unique_ptr<Visitor> visitor);

  asio::io_context& io_;
  const AsUser as_user_;
  IsMember is_member_;
  std::filesystem::path socket_;
  UniqueFd listener_;
  UniqueFd stop_;  // eventfd
  std::thread thread_;
  std::map<uint32_t, std::unique_ptr<Visitor>> visitors_;
  std::vector<Connection> connections_;
};

}  // namespace sluice::service
