// The API's service of logs: gRPC's threads outside, the io_context's thread inside (server.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>

#include "control/api/bridge.h"
#include "control/api/session_manager.h"
#include "control/proto/log.grpc.pb.h"

namespace sluice::service {

class LogsService final : public api::Logs::Service {
 public:
  LogsService(asio::io_context& io, SessionManager& sessions, std::chrono::milliseconds look_interval)
      : bridge_(io), sessions_(sessions), look_interval_(look_interval) {}

  // The calls that are under way end.
  void stop() { stopping_ = true; }

  grpc::Status Read(grpc::ServerContext* context, const api::LogRequest* request,
                    grpc::ServerWriter<api::LogReply>* writer) override;
  grpc::Status SetSessionLevel(grpc::ServerContext* context, const api::SessionLogLevel* request,
                               api::SessionLogLevel* reply) override;

  grpc::Status Levels(grpc::ServerContext* context, const api::ComponentLevelsRequest* request,
                      api::ComponentLevels* reply) override;
  grpc::Status SetLevel(grpc::ServerContext* context, const api::ComponentLevel* request,
                        api::ComponentLevels* reply) override;

 private:
  Bridge bridge_;
  SessionManager& sessions_;
  const std::chrono::milliseconds look_interval_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace sluice::service
