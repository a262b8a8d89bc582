// SPDX-License-Identifier: Apache-2.0
#include "control/node/reception.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/steady_timer.hpp>

#include "control/audit/lines.h"
#include "control/peer/codec.h"
#include "control/runtime/standing.h"
#include "dataplane/base/check.h"
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

Reception::Reception(std::shared_ptr<runtime::Services> services, Sessions& sessions)
    : services_(std::move(services)), sessions_(sessions) {}

Reception::~Reception() { *alive_ = false; }

Status Reception::open() {
  DCHECK(!listener_, "a node listens once");
  if (services_->node.calls_only()) return {};
  Result<std::unique_ptr<peer::Listener>> listener = peer::listen(
      services_->io, *services_->self, services_->node.listen, services_->frames,
      [services = services_] { return runtime::standing_now(services); },
      [this, alive = alive_](std::unique_ptr<peer::Connection> connection) {
        if (*alive) take(std::move(connection));
      },
      [services = services_](identity::Offer offer) {
        runtime::remember_offer(*services, std::move(offer));
      });
  if (!listener) return listener.error();
  listener_ = std::move(*listener);
  return {};
}

void Reception::close() {
  listener_.reset();
  names_desk_->stop();
}

void Reception::take(std::shared_ptr<peer::Connection> connection) {
  DCHECK(connection, "whoever calls has a connection");
  asio::co_spawn(services_->io, serve(alive_, std::move(connection)), asio::detached);
}

void Reception::expect(const std::vector<std::string>& addresses) {
  if (listener_) listener_->expect(addresses);
}

std::optional<peer::CallerCounts> Reception::counts() const {
  if (!listener_) return std::nullopt;
  return listener_->counts();
}

asio::awaitable<void> Reception::serve(std::shared_ptr<bool> alive,
                                       std::shared_ptr<peer::Connection> connection) {
  const Result<peer::PeerMessage> first = co_await receive_within(services_->io, connection);
  if (!*alive || sessions_.stopping() || !first) co_return;
  std::optional<transfer::Message> message = peer::from_wire(*first);
  if (!message || !std::holds_alternative<transfer::Hello>(*message)) co_return;
  if (const Status status = transfer::admit(&*message); !status)
    co_return co_await refuse(std::move(connection), status.error(), status.error().message);
  // Trust may have ended since the handshake.
  const Result<identity::Standing> now = co_await runtime::standing_now(services_);
  const Status trusted = now ? now->trust->check_still(connection->peer()) : Status(now.error());
  if (!*alive || sessions_.stopping()) co_return;
  if (!trusted) co_return co_await refuse(std::move(connection), trusted.error(), trusted.error().message);
  const transfer::Hello& hello = std::get<transfer::Hello>(*message);
  if (hello.names) co_return co_await names_desk_->serve(std::move(connection), hello);
  co_await receive(alive, std::move(connection), hello);
}

asio::awaitable<void> Reception::refuse(std::shared_ptr<peer::Connection> connection, Error error,
                                        std::string reason) {
  log::of(log::kPeer)->warn("{} is refused: {}", connection->peer().name, reason);
  std::vector<transfer::Message> words{transfer::failure_of(error)};
  return say(services_->io, std::move(connection), std::move(words));
}

asio::awaitable<void> Reception::receive(std::shared_ptr<bool> alive,
                                         std::shared_ptr<peer::Connection> connection,
                                         transfer::Hello hello) {
  const std::shared_ptr<runtime::Services> services = services_;
  const std::string peer = connection->peer().name;
  Result<std::optional<transfer::Saved>> saved = std::optional<transfer::Saved>();
  for (uint64_t before = sessions_.ended_count() - 1; before != sessions_.ended_count();) {
    before = sessions_.ended_count();  // what ended while the journal was read is looked up again
    auto work = [services, id = hello.session_id] { return services->journal->saved(id, false); };
    saved = co_await services->pool.wait_for(std::move(work));
    if (!*alive || sessions_.stopping()) co_return;
  }
  transfer::UnderId known = sessions_.under_id(hello.session_id);
  if (saved && saved->has_value()) known.record = &(*saved)->record;
  transfer::Decision decision = transfer::receive_call(peer, hello, known);
  Status status = saved ? Status() : Status(saved.error());
  if (status && decision.kind == transfer::CallKind::kNew) status = sessions_.check_room_for(peer);
  if (!status) {
    decision = {
        .kind = transfer::CallKind::kRefused, .error = status.error(), .reason = status.error().message};
  }
  switch (decision.kind) {
    case transfer::CallKind::kRefused:
      DCHECK(decision.error, "whoever is refused hears why");
      co_return co_await refuse(std::move(connection), *decision.error, std::move(decision.reason));
    case transfer::CallKind::kEnded:
      DCHECK(saved && saved->has_value(), "what is said of an ended session is in the journal");
      co_return co_await say(services->io, std::move(connection), transfer::ended_answer(**saved));
    case transfer::CallKind::kNothing:
      co_return co_await say(services->io, std::move(connection), transfer::nothing_answer(hello));
    case transfer::CallKind::kUnknown:
      log::of(log::kPeer)
          ->warn("{} asks for session {}, which is not known here: it ends there", peer,
                 hello.session_id.substr(0, 8));
      co_return co_await say(services->io, std::move(connection), transfer::unknown_answer(hello));
    case transfer::CallKind::kKnows:
      if (const Sessions::Task task = sessions_.active(hello.session_id)) {
        if (const auto leg = task->transfer().leg_to(peer, hello.leg))
          task->post(transfer::PeerInquires{*leg});
        co_return co_await say(services->io, std::move(connection),
                               transfer::knows_answer(hello, task->transfer().pausing()));
      }
      co_return co_await say(services->io, std::move(connection), transfer::knows_answer(hello, false));
    case transfer::CallKind::kNew:
    case transfer::CallKind::kKnown:
      co_return take_call(connection, hello);
  }
}

void Reception::take_call(const std::shared_ptr<peer::Connection>& connection, const transfer::Hello& hello) {
  Sessions::Task task = sessions_.active(hello.session_id);
  if (!task) {
    const std::string& peer = connection->peer().name;
    // One that ended before it had begun is begun anew under its id, and takes the place of its former self.
    sessions_.forget_ended(hello.session_id);
    log::of(log::kPeer)
        ->info("{} ({}) opens session {}", peer, connection->remote_address(), hello.session_id.substr(0, 8));
    sessions_.note(
        audit::session_begun(hello.session_id, transfer::Role::kUnknown, false, peer, {}, async::unix_ns()));
    task = sessions_.add(std::make_unique<transfer::Transfer>(services_->settings, hello.session_id, peer,
                                                              async::unix_ns(), async::monotonic_ns()),
                         {});
  }
  DCHECK(task->transfer().id() == hello.session_id, "a call goes to the session of its id");
  task->peer_called(connection, hello);
}

}  // namespace sluice::node
