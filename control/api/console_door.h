// Where a console comes in (tools/console), which calls for people: a socket for its user alone, by what the
// kernel says of the caller (SO_PEERCRED). Each call says for whom it is, signed by the console's key
// (delegation.h), and reaches what that person may see and do: the managers of operators, of viewers, or of
// that one user. What changes something is audited with the person's name.
//
// A thread of its own accepts. Calls come on gRPC's threads. Any thread may stop it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "control/api/delegation.h"
#include "control/api/services.h"
#include "control/api/users.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::service {

// Of a call that changes something: who asked for what, and what became of it.
struct ConsoleCall {
  Person person;
  api::Delegation::Role role = api::Delegation::NONE;
  std::string method;
  std::string subject;  // an id, a path, a peer
  std::string error;    // empty: it was done
};

class ConsoleDoor {
 public:
  // What stands behind it. All outlive it.
  struct House {
    SessionManager& sessions;  // an operator's
    NamesManager& names;
    AsUser as_user;
    std::function<Result<Person>(uint32_t uid)> person;
    std::function<void(const ConsoleCall&)> audit;
    std::function<Result<std::string>(const api::Session&)> receipt;
  };
  ConsoleDoor(asio::io_context& io, House house);
  ~ConsoleDoor();

  // `uid`: as whom the console runs; `certificate_pem`: of its key. Whoever passes the socket's directory may
  // connect, and only that user is served.
  Status start(const std::filesystem::path& socket, uint32_t uid, std::string certificate_pem);
  void stop();

  // What the person of this call sees. Any thread.
  struct Seen {
    Person person;
    api::Delegation::Role role = api::Delegation::NONE;
    std::shared_ptr<Services> services;  // none: of Console/Rights
  };
  Result<Seen> seen(const grpc::ServerContext& context, std::string_view method);
  void audit(const ConsoleCall& call) { house_.audit(call); }
  Result<std::string> receipt(const api::Session& session) { return house_.receipt(session); }

 private:
  struct Visitor;
  class Dispatch;
  struct Known {
    Person person;
    std::chrono::steady_clock::time_point since;
  };
  void run();
  Result<Person> person(uint32_t uid);
  Result<std::shared_ptr<Services>> services(uint32_t uid, api::Delegation::Role role);

  asio::io_context& io_;
  const House house_;
  std::filesystem::path socket_;
  uint32_t uid_ = 0;
  std::string certificate_pem_;
  UniqueFd listener_;
  UniqueFd stop_;  // eventfd
  std::thread thread_;
  std::unique_ptr<Dispatch> dispatch_;
  std::mutex mutex_;
  std::map<uint32_t, Known> people_;
  std::map<std::pair<api::Delegation::Role, uint32_t>, std::shared_ptr<Visitor>> visitors_;
};

}  // namespace sluice::service
