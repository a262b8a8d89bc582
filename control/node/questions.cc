// SPDX-License-Identifier: Apache-2.0
#include "control/node/questions.h"

#include <fmt/format.h>

#include <chrono>

#include "control/node/begin.h"
#include "dataplane/base/check.h"

namespace sluice::node {
namespace {

constexpr std::chrono::seconds kAnswerTimeout{
    12};  // an owner that does not know the question says so within 10

}  // namespace

asio::awaitable<Result<std::shared_ptr<NamesAsker>>> Questions::ask(
    std::string peer, names::Request request, std::optional<transfer::User> user) const {
  const std::shared_ptr<runtime::Services> services = services_;
  if (sessions_.stopping()) co_return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
  auto known = [services, peer] { return check_peer(services->node, peer); };
  const Result<identity::Peer> found = co_await services->pool.wait_for(std::move(known));
  if (!found) co_return found.error();
  co_return co_await NamesAsker::ask(services, *found, std::move(request), std::move(user));
}

// A call of its own, with one question.
asio::awaitable<Result<PeerAbout>> Questions::about(std::string peer) const {
  std::optional<transfer::User> nobody;
  const auto asker = co_await ask(peer, names::AboutNode{}, std::move(nobody));
  if (!asker) co_return asker.error();
  const auto deadline = std::chrono::steady_clock::now() + kAnswerTimeout;
  while (std::chrono::steady_clock::now() < deadline) {
    Result<NamesAnswer> answer = co_await (*asker)->next();
    if (!answer && answer.error().code == ErrorCode::kStalled) break;
    if (!answer) co_return answer.error();
    if (!answer->done) continue;
    if (!answer->done->node) break;
    DCHECK(answer->clock, "who asked when knows how long it took");
    co_return PeerAbout{.state = std::move(*answer->done->node), .clock = *answer->clock};
  }
  co_return Error{
      ErrorCode::kIncompatible,
      fmt::format("{} does not say which version it is, nor what its clock says: it is older; bring "
                  "both nodes to one version",
                  peer)};
}

}  // namespace sluice::node
