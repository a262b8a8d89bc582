// A channel to a node's socket, and calls over it: what they fail of is thrown as the library's Error.
//
// Any thread. Never in an installed header: it needs gRPC's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "control/client/call.h"
#include "tools/cpp/include/sluice/client.h"

namespace sluice::client {

// What this library says of it. `socket` is where the node was called.
Error error_of(const api::Failure& failure, const std::filesystem::path& socket);

class Connection {
 public:
  explicit Connection(const std::filesystem::path& directory);

  api::Control::Stub& stub() const { return *stub_; }
  const std::filesystem::path& socket() const { return socket_; }

  template <typename Reply, typename Request>
  Reply call(grpc::Status (api::Control::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
             const Request& request) const {
    Reply reply;
    api::Call call(*stub_, api::kCallS);
    if (const auto failure = call.ask(*stub_, method, request, &reply)) throw error_of(*failure, socket_);
    return reply;
  }

 private:
  std::filesystem::path socket_;
  std::unique_ptr<api::Control::Stub> stub_;
};

}  // namespace sluice::client
