// What a peer says of itself: a call of its own, with one question.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>

#include "control/node/manager.h"

namespace sluice::node {
namespace {

constexpr std::chrono::seconds kAnswerTimeout{
    12};  // an owner that does not know the question says so within 10

}  // namespace

asio::awaitable<Result<PeerAbout>> Manager::about(std::string peer) {
  const auto asker = co_await ask(peer, names::AboutNode{});
  if (!asker) co_return asker.error();
  const auto deadline = std::chrono::steady_clock::now() + kAnswerTimeout;
  while (std::chrono::steady_clock::now() < deadline) {
    Result<NamesAnswer> answer = co_await (*asker)->next();
    if (!answer && answer.error().code == ErrorCode::kStalled) break;
    if (!answer) co_return answer.error();
    if (!answer->done) continue;
    if (!answer->done->node) break;
    co_return PeerAbout{.state = std::move(*answer->done->node), .clock = *answer->clock};
  }
  co_return Error{
      ErrorCode::kIncompatible,
      fmt::format("{} does not say which version it is, nor what its clock says: it is older; bring "
                  "both nodes to one version",
                  peer)};
}

}  // namespace sluice::node
