// Connections of other nodes: to which transfer they belong, or why they are sent away.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <asio/steady_timer.hpp>

#include "control/node/manager.h"
#include "control/peer/codec.h"

namespace sluice::node {
namespace {

constexpr auto kHelloTimeout = std::chrono::seconds(10);

// The next message; a peer that says nothing for 10 s is hung up on.
asio::awaitable<Result<peer::PeerMessage>> receive_within(asio::io_context& io,
                                                          std::shared_ptr<peer::Connection> connection) {
  auto timer = std::make_shared<asio::steady_timer>(io, kHelloTimeout);
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
  const std::optional<transfer::Message> message = peer::from_wire(*first);
  if (!message || !std::holds_alternative<transfer::Hello>(*message)) co_return;
  co_await receive(alive, std::move(connection), std::get<transfer::Hello>(*message));
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
  transfer::UnderId known;
  if (saved && saved->has_value()) known.record = &(*saved)->record;
  if (const Task task = active(hello.session_id)) {
    known.active = true;
    known.initiator = task->transfer().initiator();
    known.peer = task->transfer().peer();
  }
  transfer::Decision decision = transfer::receive_call(peer, hello, known);
  if (!saved) decision = {transfer::Reception::kRefused, saved.error()};
  if (decision.reception == transfer::Reception::kNew) {
    if (const Status room = check_room(); !room) decision = {transfer::Reception::kRefused, room.error()};
  }
  switch (decision.reception) {
    case transfer::Reception::kRefused: {
      spdlog::warn("{} is refused: {}", peer, decision.error->message);
      std::vector<transfer::Message> words{transfer::failure_of(*decision.error)};
      co_return co_await say(services->io, std::move(connection), std::move(words));
    }
    case transfer::Reception::kEnded:
      co_return co_await say(services->io, std::move(connection), transfer::ended_answer(**saved));
    case transfer::Reception::kNothing:
      co_return co_await say(services->io, std::move(connection), transfer::nothing_answer(hello));
    case transfer::Reception::kUnknown:
      spdlog::warn("{} asks for session {}, which is not known here: it ends there", peer,
                   hello.session_id.substr(0, 8));
      co_return co_await say(services->io, std::move(connection), transfer::unknown_answer(hello));
    case transfer::Reception::kKnows:
      if (const Task task = active(hello.session_id)) task->post(transfer::PeerInquires{});
      co_return co_await say(services->io, std::move(connection), transfer::knows_answer(hello));
    case transfer::Reception::kNew:
    case transfer::Reception::kKnown:
      co_return take_call(connection, hello);
  }
}

void Manager::take_call(const std::shared_ptr<peer::Connection>& connection, const transfer::Hello& hello) {
  Task task = active(hello.session_id);
  if (!task) {
    const std::string& peer = connection->peer().name;
    spdlog::info("{} ({}) opens session {}", peer, connection->remote_address(),
                 hello.session_id.substr(0, 8));
    task = add(std::make_unique<transfer::Transfer>(services_->settings, hello.session_id, peer,
                                                    control::unix_ns(), control::monotonic_ns()),
               {});
  }
  task->peer_called(connection, hello);
}

}  // namespace sluice::node
