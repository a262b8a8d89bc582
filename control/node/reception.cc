// Connections of other nodes: to which transfer they belong, or why they are sent away. And for how many
// sessions there is room.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <asio/steady_timer.hpp>

#include "control/audit/lines.h"
#include "control/node/manager.h"
#include "control/peer/codec.h"
#include "control/runtime/standing.h"
#include "dataplane/base/log.h"

namespace sluice::node {
namespace {

// The next message; a peer that says nothing for 10 s is hung up on.
asio::awaitable<Result<peer::PeerMessage>> receive_within(asio::io_context& io,
                                                          std::shared_ptr<peer::Connection> connection) {
  auto timer = std::make_shared<asio::steady_timer>(io, peer::kHelloTimeout);
  timer->async_wait([connection, timer](const asio::error_code& error) {
    if (!error) connection->close();
  });
  Result<peer::PeerMessage> message = co_await connection->receive();
  timer->cancel();
  co_return message;
}

asio::awaitable<void> say(asio::io_context& io, std::shared_ptr<peer::Connection> connection,
                          std::vector<transfer::Message> words) {
  for (const transfer::Message& word : words) (void)connection->send(peer::to_wire(word));
  co_await runtime::hang_up(io, std::move(connection));
}

}  // namespace

asio::awaitable<void> Manager::serve(std::shared_ptr<bool> alive,
                                     std::shared_ptr<peer::Connection> connection) {
  const Result<peer::PeerMessage> first = co_await receive_within(services_->io, connection);
  if (!*alive || stopping_ || !first) co_return;
  std::optional<transfer::Message> message = peer::from_wire(*first);
  if (!message || !std::holds_alternative<transfer::Hello>(*message)) co_return;
  if (const Status status = transfer::admit(&*message); !status)
    co_return co_await refuse(std::move(connection), status.error(), status.error().message);
  // Trust may have ended since the handshake.
  const Result<identity::Standing> now = co_await runtime::standing_now(services_);
  const Status trusted = now ? now->trust->check_still(connection->peer()) : Status(now.error());
  if (!*alive || stopping_) co_return;
  if (!trusted) co_return co_await refuse(std::move(connection), trusted.error(), trusted.error().message);
  const transfer::Hello& hello = std::get<transfer::Hello>(*message);
  if (hello.names) co_return co_await names_desk_->serve(std::move(connection), hello);
  co_await receive(alive, std::move(connection), hello);
}

asio::awaitable<void> Manager::refuse(std::shared_ptr<peer::Connection> connection, Error error,
                                      std::string reason) {
  log::of(log::kPeer)->warn("{} is refused: {}", connection->peer().name, reason);
  std::vector<transfer::Message> words{transfer::failure_of(error)};
  return say(services_->io, std::move(connection), std::move(words));
}

transfer::UnderId Manager::under_id(const std::string& id) const {
  transfer::UnderId known;
  for (const transfer::View& view : ended_) {
    if (view.id != id) continue;
    known.initiator = view.asker.of_this_node;
    known.peer = view.peer;
  }
  if (const Task task = active(id)) {
    known.active = true;
    known.initiator = task->transfer().initiator();
    known.peer = task->transfer().peer();
  }
  return known;
}

Status Manager::check_room(const std::optional<transfer::User>& user) const {
  if (stopping_) return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
  if (!services_->board->attached()) return no_dataplane();
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
Status Manager::check_room_for(const std::string& peer) const {
  const auto count = std::ranges::count_if(tasks_, [&peer](const Task& task) {
    const transfer::Transfer& transfer = task->transfer();
    return !transfer.ended() && !transfer.initiator() && transfer.peer() == peer;
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

asio::awaitable<void> Manager::receive(std::shared_ptr<bool> alive,
                                       std::shared_ptr<peer::Connection> connection, transfer::Hello hello) {
  const std::shared_ptr<runtime::Services> services = services_;
  const std::string peer = connection->peer().name;
  Result<std::optional<transfer::Saved>> saved = std::optional<transfer::Saved>();
  for (uint64_t before = ended_count_ - 1; before != ended_count_;) {
    before = ended_count_;  // what ended while the journal was read is looked up again
    auto work = [services, id = hello.session_id] { return services->journal->saved(id, false); };
    saved = co_await services->pool.wait_for(std::move(work));
    if (!*alive || stopping_) co_return;
  }
  transfer::UnderId known = under_id(hello.session_id);
  if (saved && saved->has_value()) known.record = &(*saved)->record;
  transfer::Decision decision = transfer::receive_call(peer, hello, known);
  Status status = saved ? Status() : Status(saved.error());
  if (status && decision.kind == transfer::CallKind::kNew) status = check_room_for(peer);
  if (!status) {
    decision = {
        .kind = transfer::CallKind::kRefused, .error = status.error(), .reason = status.error().message};
  }
  switch (decision.kind) {
    case transfer::CallKind::kRefused:
      co_return co_await refuse(std::move(connection), *decision.error, std::move(decision.reason));
    case transfer::CallKind::kEnded:
      co_return co_await say(services->io, std::move(connection), transfer::ended_answer(**saved));
    case transfer::CallKind::kNothing:
      co_return co_await say(services->io, std::move(connection), transfer::nothing_answer(hello));
    case transfer::CallKind::kUnknown:
      log::of(log::kPeer)
          ->warn("{} asks for session {}, which is not known here: it ends there", peer,
                 hello.session_id.substr(0, 8));
      co_return co_await say(services->io, std::move(connection), transfer::unknown_answer(hello));
    case transfer::CallKind::kKnows:
      if (const Task task = active(hello.session_id)) {
        task->post(transfer::PeerInquires{});
        co_return co_await say(services->io, std::move(connection),
                               transfer::knows_answer(hello, task->transfer().pausing()));
      }
      co_return co_await say(services->io, std::move(connection), transfer::knows_answer(hello, false));
    case transfer::CallKind::kNew:
    case transfer::CallKind::kKnown:
      co_return take_call(connection, hello);
  }
}

void Manager::take_call(const std::shared_ptr<peer::Connection>& connection, const transfer::Hello& hello) {
  Task task = active(hello.session_id);
  if (!task) {
    const std::string& peer = connection->peer().name;
    // One that ended before it had begun is begun anew under its id, and takes the place of its former self.
    std::erase_if(ended_, [&hello](const transfer::View& view) { return view.id == hello.session_id; });
    log::of(log::kPeer)
        ->info("{} ({}) opens session {}", peer, connection->remote_address(), hello.session_id.substr(0, 8));
    note(audit::session_begun(hello.session_id, transfer::Role::kUnknown, false, peer, {},
                              control::unix_ns()));
    task = add(std::make_unique<transfer::Transfer>(services_->settings, hello.session_id, peer,
                                                    control::unix_ns(), control::monotonic_ns()),
               {});
  }
  task->peer_called(connection, hello);
}

}  // namespace sluice::node
