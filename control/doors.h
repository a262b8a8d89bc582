// The sockets of a node on this host: of operators, of users, and of the processes that open files for them.
//
// Control's main thread starts them, Shutdown's thread stops them. No call arrives before start, none after
// stop.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <asio/io_context.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "control/api/node_names.h"
#include "control/api/node_sessions.h"
#include "control/api/readers.h"
#include "control/api/server.h"
#include "control/api/users_door.h"
#include "control/node/manager.h"
#include "control/users/callers.h"
#include "control/users/identity.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"
#include "dataplane/base/local_socket.h"
#include "dataplane/base/sandbox/profiles.h"

namespace sluice::control {

// The socket of users who may only look, if the node has such users.
class Readers {
 public:
  explicit Readers(SessionManager& all) : sessions_(all) {}
  Status start(asio::io_context& io, const config::Node& node) {
    const std::filesystem::path socket = node.readers_socket();
    if (node.readers_group.empty()) {
      ::unlink(socket.c_str());  // left by an earlier run: nobody answers there
      return {};
    }
    auto server = start_server(io, sessions_, names_, socket);
    if (!server) return server.error();
    server_ = std::move(*server);
    return base::share_socket(socket, node.readers_group, "[control] readers_group");
  }
  void stop() {
    if (server_) server_->stop();
  }

 private:
  ReadersSessions sessions_;
  ReadersNames names_;
  std::unique_ptr<Server> server_;
};

// The socket of users who send and get as themselves, if the node has such users.
class Users {
 public:
  Users(asio::io_context& io, NodeNames& names, UsersDoor::AsUser as_user)
      : door_(io, names, std::move(as_user)) {}
  Status start(const config::Node& node) {
    const std::filesystem::path socket = node.users_socket();
    if (node.users_group.empty()) {
      ::unlink(socket.c_str());  // left by an earlier run: nobody answers there
      ::unlink(node.users_files_socket().c_str());
      return {};
    }
    auto is_member = [group = node.users_group, uid_min = node.users_uid_min](uint32_t uid) {
      const Result<users::Account> account = users::member(uid, group, uid_min);
      return account ? Status() : Status(account.error());
    };
    if (auto started = door_.start(socket, std::move(is_member)); !started) return started;
    return base::share_socket(socket, node.users_group, "[control] users_group");
  }
  void stop() { door_.stop(); }

 private:
  UsersDoor door_;
};

// Anyone who may start a session may bring a process that opens files outside the exports.
inline Status take_callers(users::Callers& callers, const config::Node& node) {
  if (auto made = callers.listen(node.files_socket()); !made) return made;
  if (auto shared = base::share_socket(node.files_socket(), node.control_group, "[control] group"); !shared)
    return shared;
  if (node.users_group.empty()) return {};
  if (auto made = callers.listen(node.users_files_socket()); !made) return made;
  return base::share_socket(node.users_files_socket(), node.users_group, "[control] users_group");
}

class Doors {
 public:
  // `manager` and `node` outlive it.
  Doors(asio::io_context& io, node::Manager& manager, const config::Node& node,
        const std::string& metrics_address, const sandbox::State& sandboxed)
      : io_(io),
        manager_(manager),
        node_(node),
        sessions_(manager, metrics_address, sandboxed),
        names_(manager),
        readers_(sessions_),
        users_(io, names_, [&manager, metrics_address, sandboxed](uint32_t uid) {
          return std::make_unique<NodeSessions>(manager, metrics_address, sandboxed,
                                                transfer::User{.uid = uid, .name = users::name_of(uid)});
        }) {}

  Status start() {
    auto server = start_server(io_, sessions_, names_, node_.control_socket());
    if (!server) return server.error();
    server_ = std::move(*server);
    if (auto started = readers_.start(io_, node_); !started) return started;
    if (auto started = users_.start(node_); !started) return started;
    if (auto started = take_callers(manager_.callers(), node_); !started) return started;
    return base::share_socket(node_.control_socket(), node_.control_group, "[control] group");
  }
  // After start. Blocks until the calls that are in progress have ended, so not on the loop's thread.
  void stop() {
    readers_.stop();
    users_.stop();
    manager_.callers().stop();
    ::unlink(node_.files_socket().c_str());
    if (!node_.users_group.empty()) ::unlink(node_.users_files_socket().c_str());
    server_->stop();
  }

 private:
  asio::io_context& io_;
  node::Manager& manager_;
  const config::Node& node_;
  NodeSessions sessions_;
  NodeNames names_;
  std::unique_ptr<Server> server_;
  Readers readers_;
  Users users_;
};

}  // namespace sluice::control
