// A channel to a node's socket, and calls over it: what they fail of is thrown as the library's Error.
//
// Any thread. Never in an installed header: it needs gRPC's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "control/client/pulse.h"
#include "control/proto/api.grpc.pb.h"
#include "tools/cpp/include/sluice/client.h"

namespace sluice::client {

// Of what a call failed, by the trailing metadata of the node, or by what stands at `socket`.
Error error_of(const grpc::Status& status, const grpc::ClientContext& context, const api::Pulse& pulse,
               const std::filesystem::path& socket);
// The target of gRPC for this socket: other bytes than letters, digits and a few signs are escaped.
std::string target_of(const std::filesystem::path& socket);

class Connection {
 public:
  explicit Connection(const std::filesystem::path& directory);

  api::Control::Stub& stub() const { return *stub_; }
  const std::filesystem::path& socket() const { return socket_; }

  template <typename Reply, typename Request>
  Reply call(grpc::Status (api::Control::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
             const Request& request) const {
    constexpr auto kCallTime = std::chrono::seconds(60);  // as the command
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallTime);
    const api::Pulse pulse(*stub_, context);
    Reply reply;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &reply);
    if (!status.ok()) throw error_of(status, context, pulse, socket_);
    return reply;
  }

 private:
  std::filesystem::path socket_;
  std::unique_ptr<api::Control::Stub> stub_;
};

}  // namespace sluice::client
