// What the API's server stands in front of, in the API's own terms: the node (node_sessions.h), or a test.
//
// All methods run on control's one io_context thread, and none of them blocks it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <string>
#include <vector>

#include "control/proto/api.pb.h"
#include "control/proto/log.pb.h"
#include "control/proto/peers.pb.h"
#include "dataplane/base/error.h"

namespace sluice::service {

// Told about each file now and then, and once with `done`; returns false to stop.
using VerifyReport = std::function<bool(const api::VerifyProgress&)>;
// Blocks; for a thread of the caller's own.
using Verification = std::function<void(const VerifyReport&)>;

// Told of a part of it; returns false to stop.
using PreviewReport = std::function<bool(const api::PreviewReply&)>;
// Blocks; for a thread of the caller's own.
using Preview = std::function<Status(const PreviewReport&)>;

// How far a reader of a session's log has come.
struct LogPlace {
  uint64_t number = 0;
  bool begun = false;  // what it misses from here on, it is told
};
struct LogPart {
  api::LogReply reply;
  LogPlace next;
  bool more = false;   // there is, already
  bool ended = false;  // the session has: nothing more comes
};

class SessionManager {
 public:
  virtual ~SessionManager() = default;

  virtual asio::awaitable<Result<std::string>> send(api::SendRequest request) = 0;  // -> session id
  virtual asio::awaitable<Result<std::string>> get(api::GetRequest request) = 0;
  virtual asio::awaitable<Result<Preview>> preview(api::SendRequest request) = 0;
  virtual std::vector<api::Session> list() const = 0;
  virtual std::vector<api::Session> overviews() const = 0;  // that have not ended, without their files
  virtual std::vector<std::string> ended() const = 0;       // ids of those that have, and are still known
  virtual Result<api::Session> show(const std::string& id) const = 0;
  virtual asio::awaitable<Result<api::Session>> cancel(std::string id) = 0;
  virtual asio::awaitable<Result<api::Session>> pause(std::string id) = 0;
  virtual asio::awaitable<Result<api::Session>> go_on(std::string id) = 0;
  virtual asio::awaitable<Result<api::Session>> limit(std::string id, uint64_t rate_bps) = 0;
  virtual asio::awaitable<Result<api::Session>> prioritize(std::string id, int32_t priority) = 0;
  // -> the bundle; nothing where it is withdrawn.
  virtual asio::awaitable<Result<std::string>> give(api::ExportRequest request) = 0;
  virtual asio::awaitable<Result<api::Session>> take(std::string bundle) = 0;
  virtual asio::awaitable<Result<Verification>> verification(std::string id) = 0;
  // Of the names that the destination stored, where they were asked for.
  virtual asio::awaitable<Result<std::vector<api::NameDigests>>> digests(std::string id) = 0;
  virtual Result<LogPart> log(const api::LogRequest& request, const LogPlace& from) const = 0;
  virtual Result<std::string> set_log_level(const std::string& id,
                                            const std::string& level) = 0;  // -> whole id
  virtual asio::awaitable<Result<api::ComponentLevels>> component_levels() = 0;
  // The component empty: of all.
  virtual asio::awaitable<Result<api::ComponentLevels>> set_component_level(api::ComponentLevel level) = 0;
  virtual asio::awaitable<Result<api::PeerAnswer>> about(std::string peer) = 0;
  virtual void when_ended(std::function<void()> news) = 0;
  virtual asio::awaitable<Result<api::NodeReply>> node() = 0;
  // kDaemonNotRunning: there is no dataplane that counts.
  virtual Result<api::CountersReply> counters() const = 0;
};

}  // namespace sluice::service
