// What a user of this host sees and does who sends and gets as himself ([control] users_group): his own
// sessions, whole, his names, and the node as those see it who may only look. Sessions of others are to him
// as if they were not there.
//
// Stands before the real managers, one for each user. On the io_context's thread, as they are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/api/names_manager.h"
#include "control/api/session_manager.h"

namespace sluice::service {

class UserSessions final : public SessionManager {
 public:
  // `as_user`: which shows all sessions, and begins those of this user.
  UserSessions(std::unique_ptr<SessionManager> as_user, uint32_t uid) : all_(std::move(as_user)), uid_(uid) {}

  asio::awaitable<Result<std::string>> send(api::SendRequest request) override {
    return all_->send(std::move(request));
  }
  asio::awaitable<Result<std::string>> get(api::GetRequest request) override {
    return all_->get(std::move(request));
  }
  asio::awaitable<Result<Preview>> preview(api::SendRequest request) override {
    return all_->preview(std::move(request));
  }
  std::vector<api::Session> list() const override;
  std::vector<api::Session> overviews() const override;
  std::vector<std::string> ended() const override;
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
  Result<LogPart> log(const api::LogRequest& request, const LogPlace& from) const override;
  Result<std::string> set_log_level(const std::string& id, const std::string& level) override;
  asio::awaitable<Result<api::ComponentLevels>> component_levels() override {
    return all_->component_levels();
  }
  asio::awaitable<Result<api::ComponentLevels>> set_component_level(api::ComponentLevel level) override;
  asio::awaitable<Result<api::PeerAnswer>> about(std::string peer) override;
  // The operators' watchers are told; users see it when they next look.
  void when_ended(std::function<void()>) override {}
  asio::awaitable<Result<api::NodeReply>> node() override { return all_->node(); }
  Result<api::CountersReply> counters() const override { return all_->counters(); }

 private:
  bool is_own(const api::Session& session) const { return session.has_uid() && session.uid() == uid_; }
  // The whole id of the one of his own that begins so. Of others' he hears what he would of none.
  Result<std::string> own(const std::string& id) const;

  const std::unique_ptr<SessionManager> all_;
  const uint32_t uid_;
  mutable std::map<std::string, bool> ended_;  // of which it is known whether they are his
};

// A user sees and changes names of this node as himself. At a peer that has a map of users he sees and
// changes them as whom that says he is; at others he sees what this node may, and changes nothing.
class UserNames final : public NamesManager {
 public:
  // `as_user`: which sees and changes names as this user.
  explicit UserNames(std::unique_ptr<NamesManager> as_user) : all_(std::move(as_user)) {}
  Result<std::unique_ptr<OwnNames>> list_own(const names::List& asked, const std::string& for_peer,
                                             exports::Abandoned abandoned) override;
  Result<names::Done> change_own(const names::Request& asked, exports::Pulse& pulse) override;
  asio::awaitable<Result<std::shared_ptr<NamesQuestion>>> ask(std::string peer,
                                                              names::Request request) override;

 private:
  const std::unique_ptr<NamesManager> all_;
};

// Makes what stands behind these, for one user: which shows all sessions and begins his, and which sees and
// changes names as him.
struct AsUser {
  std::function<std::unique_ptr<SessionManager>(uint32_t uid)> sessions;
  std::function<std::unique_ptr<NamesManager>(uint32_t uid)> names;
};

}  // namespace sluice::service
