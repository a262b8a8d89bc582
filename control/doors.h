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

#include "control/api/console_door.h"
#include "control/api/node_names.h"
#include "control/api/node_sessions.h"
#include "control/api/readers.h"
#include "control/api/server.h"
#include "control/api/users_door.h"
#include "control/async/clock.h"
#include "control/audit/console_line.h"
#include "control/identity/certificate.h"
#include "control/identity/node_files.h"
#include "control/node/manager.h"
#include "control/receipt/receipt.h"
#include "control/users/callers.h"
#include "control/users/groups.h"
#include "control/users/identity.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"
#include "dataplane/base/local_socket.h"
#include "dataplane/base/sandbox/profiles.h"

namespace sluice::control {

// The socket of users who may only look, if the node has such users.
class Readers {
 public:
  explicit Readers(service::SessionManager& all) : sessions_(all) {}
  Status start(asio::io_context& io, const config::Node& node) {
    const std::filesystem::path socket = node.readers_socket();
    if (node.readers_group.empty()) {
      ::unlink(socket.c_str());  // left by an earlier run: nobody answers there
      return {};
    }
    auto server = service::start_server(io, sessions_, names_, socket);
    if (!server) return server.error();
    server_ = std::move(*server);
    return base::share_socket(socket, node.readers_group, "[control] readers_group");
  }
  void stop() {
    if (server_) server_->stop();
  }

 private:
  service::ReadersSessions sessions_;
  service::ReadersNames names_;
  std::unique_ptr<service::Server> server_;
};

// The socket of users who send and get as themselves, if the node has such users.
class Users {
 public:
  Users(asio::io_context& io, service::AsUser as_user) : door_(io, std::move(as_user)) {}
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
  service::UsersDoor door_;
};

// Who somebody of this host is to the node. kConfiguration: nobody.
inline Result<service::Person> person_of(const config::Node& node, uint32_t uid) {
  using Role = api::Delegation;
  service::Person person{.uid = uid, .name = users::name_of(uid), .roles = {}};
  const bool is_operator = uid == 0 || uid == ::geteuid() ||
                           (!node.control_group.empty() && users::is_member(uid, node.control_group));
  if (is_operator || (!node.readers_group.empty() && users::is_member(uid, node.readers_group)))
    person.roles.push_back(Role::VIEWER);
  if (!node.users_group.empty() && users::member(uid, node.users_group, node.users_uid_min))
    person.roles.push_back(Role::USER);
  if (is_operator) person.roles.push_back(Role::OPERATOR);
  if (!person.roles.empty()) return person;
  return Error{ErrorCode::kConfiguration,
               "user " + person.name +
                   " may not use this node: a member of [control] group, users_group or readers_group may"};
}

// The socket of the console in the browser, if the node has one.
class Console {
 public:
  Console(asio::io_context& io, service::NodeSessions& sessions, service::NodeNames& names,
          node::Manager& manager, const config::Node& node, service::AsUser as_user)
      : node_(node),
        door_(io, {.sessions = sessions,
                   .names = names,
                   .as_user = std::move(as_user),
                   .person = [&node](uint32_t uid) { return person_of(node, uid); },
                   .audit =
                       [&manager](const service::ConsoleCall& call) {
                         manager.audit().append(audit::console_asked({.user = call.person.name,
                                                                      .uid = call.person.uid,
                                                                      .role = service::role_name(call.role),
                                                                      .method = call.method,
                                                                      .subject = call.subject,
                                                                      .error = call.error},
                                                                     async::unix_ns()));
                       },
                   .receipt = [&node](const api::Session& session) -> Result<std::string> {
                     const auto made = receipt::make_receipt(node.directory, session);
                     if (!made) return made.error();
                     return made->dump(-1, ' ', false, receipt::Json::error_handler_t::replace);
                   }}) {}
  // Where 'sluice console setup' has put a certificate, whose subject names the console's user.
  Status start() {
    const std::filesystem::path socket = node_.run_dir() / "console.sock";
    const std::filesystem::path file = node_.directory / "console.pem";
    std::error_code none;
    if (!std::filesystem::exists(file, none)) {
      ::unlink(socket.c_str());  // left by an earlier run: nobody answers there
      return {};
    }
    Result<std::string> pem = identity::read_guarded_file(file);
    if (!pem) return pem.error();
    const auto certificate = identity::parse_certificate(*pem);
    const Result<uid_t> uid =
        certificate ? users::uid_of(identity::common_name(certificate->get())) : certificate.error();
    if (!uid)
      return Error{
          uid.error().code,
          file.string() + ": " + uid.error().message +
              "; or make it anew with 'sluice console setup', or remove it: then there is no console"};
    return door_.start(socket, *uid, std::move(*pem));
  }
  void stop() { door_.stop(); }

 private:
  const config::Node& node_;
  service::ConsoleDoor door_;
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
        users_(io, as_user(manager, metrics_address, sandboxed)),
        console_(io, sessions_, names_, manager, node, as_user(manager, metrics_address, sandboxed)) {}

  Status start() {
    auto server = service::start_server(io_, sessions_, names_, node_.control_socket());
    if (!server) return server.error();
    server_ = std::move(*server);
    if (auto started = readers_.start(io_, node_); !started) return started;
    if (auto started = users_.start(node_); !started) return started;
    if (auto started = console_.start(); !started) return started;
    if (auto started = take_callers(manager_.callers(), node_); !started) return started;
    return base::share_socket(node_.control_socket(), node_.control_group, "[control] group");
  }
  // After start. Blocks until the calls that are in progress have ended, so not on the loop's thread.
  void stop() {
    readers_.stop();
    users_.stop();
    console_.stop();
    manager_.callers().stop();
    ::unlink(node_.files_socket().c_str());
    if (!node_.users_group.empty()) ::unlink(node_.users_files_socket().c_str());
    server_->stop();
  }

 private:
  static service::AsUser as_user(node::Manager& manager, const std::string& metrics_address,
                                 const sandbox::State& sandboxed) {
    const auto user = [](uint32_t uid) { return transfer::User{.uid = uid, .name = users::name_of(uid)}; };
    return {
        .sessions =
            [&manager, metrics_address, sandboxed, user](uint32_t uid) {
              return std::make_unique<service::NodeSessions>(manager, metrics_address, sandboxed, user(uid));
            },
        .names = [&manager,
                  user](uint32_t uid) { return std::make_unique<service::NodeNames>(manager, user(uid)); }};
  }

  asio::io_context& io_;
  node::Manager& manager_;
  const config::Node& node_;
  service::NodeSessions sessions_;
  service::NodeNames names_;
  std::unique_ptr<service::Server> server_;
  Readers readers_;
  Users users_;
  Console console_;
};

}  // namespace sluice::control
