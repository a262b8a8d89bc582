// What those may see who may only look ([control] readers_group): the node, its counters, and its sessions
// without names of files, their digests, or texts that could hold them. Whatever else they ask for is
// refused.
//
// Stands before the real managers on a server of its own. On the io_context's thread, as they are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "control/api/names_manager.h"
#include "control/api/session_manager.h"

namespace sluice::service {

// Takes out what only operators may see.
void hide_names(api::Session* session);

class ReadersSessions final : public SessionManager {
 public:
  explicit ReadersSessions(SessionManager& all) : all_(all) {}

  asio::awaitable<Result<std::string>> send(api::SendRequest request) override;
  asio::awaitable<Result<std::string>> get(api::GetRequest request) override;
  asio::awaitable<Result<Preview>> preview(api::SendRequest request) override;
  std::vector<api::Session> list() const override;
  std::vector<api::Session> overviews() const override;
  std::vector<std::string> ended() const override { return all_.ended(); }
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
  // Records have numbers and places, no names.
  Result<LogPart> log(const api::LogRequest& request, const LogPlace& from) const override {
    return all_.log(request, from);
  }
  Result<std::string> set_log_level(const std::string& id, const std::string& level) override;
  asio::awaitable<Result<api::ComponentLevels>> component_levels() override {
    return all_.component_levels();
  }
  asio::awaitable<Result<api::ComponentLevels>> set_component_level(api::ComponentLevel level) override;
  asio::awaitable<Result<api::PeerAnswer>> about(std::string peer) override;
  // The operators' watchers are told; these see it when they next look.
  void when_ended(std::function<void()>) override {}
  asio::awaitable<Result<api::NodeReply>> node() override { return all_.node(); }
  Result<api::CountersReply> counters() const override { return all_.counters(); }

 private:
  SessionManager& all_;
};

class ReadersNames final : public NamesManager {
 public:
  Result<std::unique_ptr<OwnNames>> list_own(const names::List& asked, const std::string& for_peer,
                                             exports::Abandoned abandoned) override;
  Result<names::Done> change_own(const names::Request& asked, exports::Pulse& pulse) override;
  asio::awaitable<Result<std::shared_ptr<NamesQuestion>>> ask(std::string peer,
                                                              names::Request request) override;
};

}  // namespace sluice::service
