// All services of the API in front of one pair of managers, whoever serves them (server.cc, console_door.cc).
//
// Any thread may call them; they end with stop().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <memory>

#include "control/api/names_manager.h"
#include "control/api/session_manager.h"
#include "control/proto/api.grpc.pb.h"
#include "control/proto/log.grpc.pb.h"
#include "control/proto/peers.grpc.pb.h"

namespace sluice::service {

class Services {
 public:
  virtual ~Services() = default;
  virtual api::Control::Service& control() = 0;
  virtual api::Names::Service& names() = 0;
  virtual api::Logs::Service& logs() = 0;
  virtual api::Peers::Service& peers() = 0;
  // Streams end, and calls that wait.
  virtual void stop() = 0;
};

// Their watchers see a session's end when they next look.
std::unique_ptr<Services> make_services(asio::io_context& io, SessionManager& sessions, NamesManager& names,
                                        std::chrono::milliseconds watch_interval);

}  // namespace sluice::service
