// SPDX-License-Identifier: Apache-2.0
#include "control/node/mapping.h"

#include <fmt/format.h>

#include "control/users/groups.h"
#include "control/users/identity.h"
#include "dataplane/base/text.h"

namespace sluice::node {
namespace {

using Answer = identity::UserMap::Answer;

Error not_let_in(std::string message) { return {ErrorCode::kPeerUntrusted, std::move(message)}; }

Result<std::optional<std::string>> still_same(const UserCall& call, const identity::UserMap* map) {
  const transfer::Mapped& known = *call.known;
  if (known.peer_user != call.user)
    return Error{
        ErrorCode::kIncompatible,
        fmt::format("the session is that of {} here, and the call is that of {}: begin another session",
                    transfer::peer_user_text(call.peer, known.peer_user),
                    transfer::peer_user_text(call.peer, call.user))};
  if (map != nullptr) {
    const identity::UserMap::Verdict verdict = map->judge(call.peer, call.user);
    if (verdict.answer == Answer::kLocal && verdict.local == known.user.name)
      return std::optional(known.user.name);
  }
  return not_let_in(
      fmt::format("[control] users_map_file of this node does not make {} user {} any more: have an "
                  "operator of this node put that back, or cancel the session",
                  transfer::peer_user_text(call.peer, call.user), base::printable(known.user.name)));
}

// Blocks: it asks the lists of users of the host.
Result<std::optional<transfer::Mapped>> find_user(const config::Node& node, const UserCall& call,
                                                  const std::string& local) {
  const auto cannot = [&](const std::string& why) {
    return Error{ErrorCode::kConfiguration,
                 fmt::format("{} is user {} at this node: {}", transfer::peer_user_text(call.peer, call.user),
                             base::printable(local), why)};
  };
  const Result<uid_t> uid = users::uid_of(local);
  if (!uid)
    return cannot(
        "this host has no such user; have an operator correct [control] users_map_file, or make the user");
  const Result<users::Account> account =
      users::member(*uid, node.users_group, static_cast<uid_t>(node.users_uid_min));
  if (!account) return cannot(account.error().message);
  return std::optional(transfer::Mapped{.user = {.uid = *uid, .name = local}, .peer_user = call.user});
}

}  // namespace

Result<std::optional<std::string>> local_user(const UserCall& call, const identity::UserMap* map) {
  const std::optional<std::string> as_today;
  // It stays what it began as.
  if (call.goes_on && !call.known) return as_today;
  if (call.goes_on) return still_same(call, map);
  if (map == nullptr || !map->has_lines_for(call.peer)) return as_today;
  if (call.user.empty() && call.share != 0)
    return not_let_in(
        fmt::format("node {0} does not say whose session this is, and this node maps its users ([control] "
                    "users_map_file): bring node {0} to the version of this one",
                    call.peer));
  const identity::UserMap::Verdict verdict = map->judge(call.peer, call.user);
  const std::string who = transfer::peer_user_text(call.peer, call.user);
  switch (verdict.answer) {
    case Answer::kAsToday:
      return as_today;
    case Answer::kLocal:
      return std::optional(verdict.local);
    case Answer::kDenied:
      break;
  }
  if (verdict.line != 0)
    return not_let_in(
        fmt::format("{} may not use this node, by line {} of [control] users_map_file: ask an operator of "
                    "this node",
                    who, verdict.line));
  return not_let_in(
      fmt::format("{} is no user of this node, as no line of [control] users_map_file says who that is "
                  "here: have an operator of this node add {}@{} LOCAL",
                  who, base::printable(call.user), call.peer));
}

Status check_orders_of(const std::string& issuer, const identity::UserMap* map) {
  if (map == nullptr) return {};
  const identity::UserMap::Verdict verdict = map->judge(issuer, "");
  if (verdict.answer == Answer::kAsToday) return {};
  return not_let_in(
      fmt::format("line {} of [control] users_map_file of this node is about the operators of node {}: "
                  "what they order of other nodes is not done here; send or get it from node {} itself",
                  verdict.line, issuer, issuer));
}

asio::awaitable<Status> check_user(std::shared_ptr<runtime::Services> services,
                                   std::optional<transfer::User> user) {
  if (!user) co_return Status();
  const std::shared_ptr<exports::UserFiles> files = services->users.of(user->uid);
  auto there = [files] { return files->there(); };
  const async::KeyedPart threads = services->part_of_user(files->key());
  co_return co_await threads.wait_for(std::move(there));
}

asio::awaitable<Result<std::optional<transfer::Mapped>>> map_user(
    std::shared_ptr<runtime::Services> services, UserCall call,
    std::shared_ptr<const identity::UserMap> map) {
  using Found = Result<std::optional<transfer::Mapped>>;
  Result<std::optional<std::string>> local = local_user(call, map.get());
  if (!local) co_return local.error();
  if (!*local) co_return std::optional<transfer::Mapped>();
  if (call.goes_on) co_return call.known;
  auto find = [services, call, name = **local]() -> Found { return find_user(services->node, call, name); };
  Found found = co_await services->pool.wait_for(std::move(find));
  if (!found) co_return found;
  std::optional<transfer::User> user = (*found)->user;
  const Status there = co_await check_user(services, std::move(user));
  if (!there) co_return there.error();
  co_return found;
}

}  // namespace sluice::node
