// The API's service of peers: gRPC's threads outside, the io_context's thread inside (server.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "control/api/bridge.h"
#include "control/api/session_manager.h"
#include "control/proto/peers.grpc.pb.h"

namespace sluice::service {

class PeersService final : public api::Peers::Service {
 public:
  PeersService(asio::io_context& io, SessionManager& sessions) : bridge_(io), sessions_(sessions) {}

  // Every wait within has a limit of its own.
  grpc::Status About(grpc::ServerContext* context, const api::PeerRequest* request,
                     api::PeerAnswer* reply) override {
    Result<api::PeerAnswer> answer = bridge_.await_io(sessions_.about(request->peer()));
    if (!answer) return to_grpc(context, answer.error());
    *reply = std::move(*answer);
    return grpc::Status::OK;
  }

 private:
  Bridge bridge_;
  SessionManager& sessions_;
};

}  // namespace sluice::service
