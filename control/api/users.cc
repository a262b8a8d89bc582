// SPDX-License-Identifier: Apache-2.0
#include "control/api/users.h"

#include <fmt/format.h>

#include <set>
#include <variant>

namespace sluice::service {
namespace {

Error for_operators(const std::string& what) {
  return {ErrorCode::kConfiguration, what +
                                         " is not for members of [control] users_group; ask an operator of "
                                         "this node"};
}

}  // namespace

std::vector<api::Session> UserSessions::list() const {
  std::vector<api::Session> mine = all_->list();
  std::erase_if(mine, [this](const api::Session& session) { return !is_own(session); });
  return mine;
}

std::vector<api::Session> UserSessions::overviews() const {
  std::vector<api::Session> mine = all_->overviews();
  std::erase_if(mine, [this](const api::Session& session) { return !is_own(session); });
  return mine;
}

std::vector<std::string> UserSessions::ended() const {
  const std::vector<std::string> all = all_->ended();
  const std::set<std::string> still(all.begin(), all.end());
  std::erase_if(ended_, [&still](const auto& one) { return !still.contains(one.first); });
  std::vector<std::string> mine;
  for (const std::string& id : all) {
    auto known = ended_.find(id);
    if (known == ended_.end()) {
      const Result<api::Session> session = all_->show(id);
      known = ended_.emplace(id, session && is_own(*session)).first;
    }
    if (known->second) mine.push_back(id);
  }
  return mine;
}

Result<std::string> UserSessions::own(const std::string& id) const {
  std::set<std::string> found;
  const auto look = [&](const std::string& candidate) {
    if (!id.empty() && candidate.starts_with(id)) found.insert(candidate);
  };
  for (const api::Session& session : overviews()) look(session.id());
  for (const std::string& one : ended()) look(one);
  if (found.size() == 1) return *found.begin();
  if (found.empty())
    return Error{ErrorCode::kUsage, fmt::format("no session \"{}\": see 'sluice session list'", id)};
  return Error{ErrorCode::kUsage,
               fmt::format("\"{}\" begins {} session ids: give more of it", id, found.size())};
}

Result<api::Session> UserSessions::show(const std::string& id) const {
  // Watchers ask for it by its whole id, again and again.
  Result<api::Session> session = all_->show(id);
  if (session && session->id() == id && is_own(*session)) return session;
  const Result<std::string> whole = own(id);
  if (!whole) return whole.error();
  return all_->show(*whole);
}

asio::awaitable<Result<api::Session>> UserSessions::cancel(std::string id) {
  Result<std::string> whole = own(id);
  if (!whole) co_return whole.error();
  co_return co_await all_->cancel(std::move(*whole));
}

asio::awaitable<Result<api::Session>> UserSessions::pause(std::string id) {
  Result<std::string> whole = own(id);
  if (!whole) co_return whole.error();
  co_return co_await all_->pause(std::move(*whole));
}

asio::awaitable<Result<api::Session>> UserSessions::go_on(std::string id) {
  Result<std::string> whole = own(id);
  if (!whole) co_return whole.error();
  co_return co_await all_->go_on(std::move(*whole));
}

asio::awaitable<Result<api::Session>> UserSessions::limit(std::string id, uint64_t rate_bps) {
  Result<std::string> whole = own(id);
  if (!whole) co_return whole.error();
  co_return co_await all_->limit(std::move(*whole), rate_bps);
}

asio::awaitable<Result<api::Session>> UserSessions::prioritize(std::string id, int32_t priority) {
  Result<std::string> whole = own(id);
  if (!whole) co_return whole.error();
  if (priority > 0) co_return for_operators(fmt::format("priority {}, before others,", priority));
  co_return co_await all_->prioritize(std::move(*whole), priority);
}

// The rows are this node's, and say more than a user may see.
asio::awaitable<Result<std::string>> UserSessions::give(api::ExportRequest) {
  co_return for_operators("to move a session to another node");
}
asio::awaitable<Result<api::Session>> UserSessions::take(std::string) {
  co_return for_operators("to take a session of another node");
}

asio::awaitable<Result<Verification>> UserSessions::verification(std::string id) {
  Result<std::string> whole = own(id);
  if (!whole) co_return whole.error();
  co_return co_await all_->verification(std::move(*whole));
}

asio::awaitable<Result<std::vector<api::NameDigests>>> UserSessions::digests(std::string id) {
  Result<std::string> whole = own(id);
  if (!whole) co_return whole.error();
  co_return co_await all_->digests(std::move(*whole));
}

Result<LogPart> UserSessions::log(const api::LogRequest& request, const LogPlace& from) const {
  const Result<std::string> whole = own(request.id());
  if (!whole) return whole.error();
  api::LogRequest of_his = request;
  of_his.set_id(*whole);
  return all_->log(of_his, from);
}

Result<std::string> UserSessions::set_log_level(const std::string& id, const std::string& level) {
  const Result<std::string> whole = own(id);
  if (!whole) return whole.error();
  return all_->set_log_level(*whole, level);
}

asio::awaitable<Result<api::ComponentLevels>> UserSessions::set_component_level(api::ComponentLevel) {
  co_return for_operators("to change what the daemons log");
}

asio::awaitable<Result<api::PeerAnswer>> UserSessions::about(std::string) {
  co_return for_operators("to ask a peer about itself");
}

Result<std::unique_ptr<OwnNames>> UserNames::list_own(const names::List& asked, const std::string& for_peer,
                                                      exports::Abandoned abandoned) {
  return all_->list_own(asked, for_peer, std::move(abandoned));
}

Result<names::Done> UserNames::change_own(const names::Request& asked, exports::Pulse& pulse) {
  return all_->change_own(asked, pulse);
}

asio::awaitable<Result<std::shared_ptr<NamesQuestion>>> UserNames::ask(std::string peer,
                                                                       names::Request request) {
  return all_->ask(std::move(peer), std::move(request));
}

}  // namespace sluice::service
