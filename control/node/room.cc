// For how many sessions there is room.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "control/node/sessions.h"

namespace sluice::node {

Status Sessions::check_room(const std::optional<transfer::User>& user) const {
  if (stopping_) return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
  if (!services_->board->attached()) return no_dataplane(services_->node);
  const auto count =
      std::count_if(tasks_.begin(), tasks_.end(), [](const Task& task) { return !task->transfer().ended(); });
  const uint64_t most = services_->node.sessions_max + services_->node.queue_max;
  if (user) {
    uint64_t of_users = 0;
    uint64_t of_him = 0;
    for (const Task& task : tasks_) {
      const auto& request = task->transfer().job().request;
      if (task->transfer().ended() || !request || !request->user) continue;
      ++of_users;
      of_him += request->user->uid == user->uid ? 1 : 0;
    }
    const uint64_t all = services_->node.sessions_per_peer + services_->node.queue_max / 2;
    if (of_him >= (all + 1) / 2)
      return Error{
          ErrorCode::kResources,
          fmt::format("node {} has {} sessions of user {} that have not ended, as many as it takes of "
                      "one user: wait for one to end, or cancel one",
                      services_->node.name, of_him, user->name)};
    if (of_users >= all)
      return Error{ErrorCode::kResources,
                   fmt::format("node {} has {} sessions of users that have not ended, as many as it takes of "
                               "them: wait for one to end, or cancel one",
                               services_->node.name, of_users)};
  }
  if (static_cast<uint64_t>(count) < most) return {};
  return Error{ErrorCode::kResources,
               fmt::format("node {} has {} sessions that have not ended, as many as may run and wait: wait "
                           "for one to end, cancel one, or raise control.queue_max",
                           services_->node.name, count)};
}

// Those that run are limited by their queue; what waits or rests takes files and memory of this process.
Status Sessions::check_room_for(const std::string& peer) const {
  const auto count = std::ranges::count_if(tasks_, [&peer](const Task& task) {
    const transfer::Transfer& transfer = task->transfer();
    const std::optional<transfer::Granted>& granted = transfer.job().granted;
    const bool of_peer = granted ? granted->issuer == peer : !transfer.initiator() && transfer.peer() == peer;
    return !transfer.ended() && of_peer;
  });
  const config::Node& node = services_->node;
  if (static_cast<uint64_t>(count) < node.sessions_per_peer + node.queue_max / 2) return check_room();
  return Error{
      ErrorCode::kResources,
      fmt::format("node {} has {} sessions of {} that have not ended, as many as may run and wait: wait "
                  "for one to end, cancel one, or raise control.sessions_per_peer or control.queue_max "
                  "there",
                  node.name, count, peer)};
}

Error no_dataplane(const config::Node& node) {
  return {ErrorCode::kDaemonNotRunning,
          fmt::format("sluice-dataplane of this node does not run ({}): start it",
                      node.dataplane_socket().string())};
}

}  // namespace sluice::node
