// Connections of other nodes: to which session they belong, or why they are sent away.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "control/session/hello.h"
#include "control/session/manager.h"

namespace sluice::control {

asio::awaitable<void> Manager::serve(std::shared_ptr<bool> alive,
                                     std::unique_ptr<peer::Connection> connection) {
  const std::string peer = connection->peer().name;
  const Result<peer::PeerMessage> first = co_await receive_within(context_->io, *connection);
  if (!*alive || !first) co_return;
  if (!first->has_hello()) co_return;
  const peer::Hello& hello = first->hello();
  if (const Status status = check_hello(hello); !status) {
    const Error& error = status.error();
    co_return co_await refuse(std::move(connection), error);
  }
  const std::string id = session_id_text(hello.session_id());
  const std::shared_ptr<Context> context = context_;
  auto work = [context, id] { return context->journal->session(id); };
  const auto record = co_await in_pool(context, std::move(work));
  if (!*alive) co_return;
  if (record && record->has_value() && (*record)->peer() == peer && !(*record)->initiator() &&
      (*record)->state() >= journal::SessionRecord::SUCCEEDED) {
    co_return co_await answer_ended(std::move(connection), **record);
  }
  const auto known =
      std::find_if(active_.begin(), active_.end(), [&](const auto& s) { return s->id() == id; });
  if (known != active_.end()) {
    if ((*known)->initiator() || (*known)->peer_name() != peer) {
      const Error error{ErrorCode::kIncompatible, fmt::format("session {} is not yours to open", id)};
      co_return co_await refuse(std::move(connection), error);
    }
    (*known)->offer({std::move(connection), hello});
    co_return;
  }
  if (const Status status = check_room(); !status) {
    const Error& error = status.error();
    co_return co_await refuse(std::move(connection), error);
  }
  spdlog::info("{} ({}) opens session {}", peer, connection->remote_address(), id.substr(0, 8));
  add(std::make_shared<Session>(context_, id, Incoming{std::move(connection), hello}));
}

asio::awaitable<void> Manager::refuse(std::shared_ptr<peer::Connection> connection, Error error) {
  spdlog::warn("{} is refused: {}", connection->peer().name, error.message);
  peer::PeerMessage message;
  message.mutable_failure()->set_code(static_cast<uint32_t>(error.code));
  message.mutable_failure()->set_message(error.message);
  (void)connection->send(message);
  co_await hang_up(context_->io, std::move(connection));
}

// The peer missed the end of this session: what became of each file, or why it failed.
asio::awaitable<void> Manager::answer_ended(std::shared_ptr<peer::Connection> connection,
                                            const journal::SessionRecord& record) {
  peer::PeerMessage hello = make_hello(record.id());
  hello.mutable_hello()->set_ended(true);
  (void)connection->send(hello);
  if (record.state() != journal::SessionRecord::SUCCEEDED) {
    const Error error{static_cast<ErrorCode>(record.error_code()), record.error()};
    co_return co_await refuse(connection, error);
  }
  auto work = [context = context_, id = record.id()] { return context->journal->files(id); };
  const auto files = co_await in_pool(context_, std::move(work));
  for (size_t i = 0; files && !record.source() && i < files->size(); ++i) {
    peer::PeerMessage message;
    message.mutable_object_state()->set_object(static_cast<uint32_t>(i));
    message.mutable_object_state()->set_done(true);
    message.mutable_object_state()->set_digest((*files)[i].record.digest());
    (void)connection->send(message);
  }
  peer::PeerMessage end;
  end.mutable_object_state()->set_end(true);
  if (!record.source()) (void)connection->send(end);
  peer::PeerMessage done;
  done.mutable_session_done();
  (void)connection->send(done);
  co_await hang_up(context_->io, std::move(connection));
}

}  // namespace sluice::control
