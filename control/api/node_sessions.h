// The node as the API shows it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/api/convert.h"
#include "control/api/session_manager.h"
#include "control/node/manager.h"
#include "dataplane/base/sandbox/sandbox.h"

namespace sluice::service {

class NodeSessions final : public SessionManager {
 public:
  // `metrics_address`: where metrics are served, or empty. `sandbox`: of this daemon. `user`: whose the
  // sessions are that begin here; nothing: an operator's.
  NodeSessions(node::Manager& manager, std::string metrics_address, const sandbox::State& sandbox,
               std::optional<transfer::User> user = {})
      : manager_(manager),
        metrics_address_(std::move(metrics_address)),
        sandbox_(sandbox),
        user_(std::move(user)) {}

  asio::awaitable<Result<std::string>> send(api::SendRequest request) override;
  asio::awaitable<Result<std::string>> get(api::GetRequest request) override;
  asio::awaitable<Result<Preview>> preview(api::SendRequest request) override;
  std::vector<api::Session> list() const override;
  std::vector<api::Session> overviews() const override;
  std::vector<std::string> ended() const override { return manager_.sessions().ended(); }
  Result<api::Session> show(const std::string& id) const override;
  asio::awaitable<Result<api::Session>> cancel(std::string id) override;
  asio::awaitable<Result<api::Session>> pause(std::string id) override;
  asio::awaitable<Result<api::Session>> go_on(std::string id) override;
  asio::awaitable<Result<api::Session>> limit(std::string id, uint64_t rate_bps) override;
  asio::awaitable<Result<api::Session>> prioritize(std::string id, int32_t priority) override;
  asio::awaitable<Result<std::string>> give(api::ExportRequest request) override;
  asio::awaitable<Result<api::Session>> take(std::string bundle) override;
  asio::awaitable<Result<Verification>> verification(std::string id) override;
  asio::awaitable<Result<std::vector<api::NameDigests>>> digests(std::string id) override;
  // log_parts.cc
  Result<LogPart> log(const api::LogRequest& request, const LogPlace& from) const override;
  Result<std::string> set_log_level(const std::string& id, const std::string& level) override;
  asio::awaitable<Result<api::ComponentLevels>> component_levels() override;
  asio::awaitable<Result<api::ComponentLevels>> set_component_level(api::ComponentLevel level) override;
  asio::awaitable<Result<api::PeerAnswer>> about(std::string peer) override;
  void when_ended(std::function<void()> news) override { manager_.sessions().when_ended(std::move(news)); }
  asio::awaitable<Result<api::NodeReply>> node() override;
  Result<api::CountersReply> counters() const override;

 private:
  node::Manager& manager_;
  const std::string metrics_address_;
  const sandbox::State sandbox_;
  const std::optional<transfer::User> user_;
};

}  // namespace sluice::service
