// SPDX-License-Identifier: Apache-2.0
#include "control/node/reception.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/steady_timer.hpp>

#include "control/async/clock.h"
#include "control/audit/lines.h"
#include "control/grant/judge.h"
#include "control/node/mapping.h"
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

Reception::Reception(std::shared_ptr<runtime::Services> services, Sessions& sessions, Starter& starter,
                     Moves& moves)
    : services_(std::move(services)),
      sessions_(sessions),
      moves_(moves),
      order_desk_(std::make_shared<OrderDesk>(services_, sessions, starter)) {}

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
  order_desk_->stop();
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
  if (hello.names) co_return co_await names_desk_->serve(std::move(connection), hello, now->users);
  if (hello.orders) co_return co_await order_desk_->serve(std::move(connection), hello);
  co_await receive(alive, std::move(connection), hello, *now);
}

asio::awaitable<void> Reception::refuse(std::shared_ptr<peer::Connection> connection, Error error,
                                        std::string reason) {
  log::of(log::kPeer)->warn("{} is refused: {}", connection->peer().name, reason);
  std::vector<transfer::Message> words{transfer::failure_of(error)};
  return say(services_->io, std::move(connection), std::move(words));
}

// The caller asks again, and counts that as no failure of the peer.
asio::awaitable<void> Reception::say_later(std::shared_ptr<peer::Connection> connection) {
  std::vector<transfer::Message> words{
      transfer::Pause{.node = services_->node.name, .place = 1, .places = 1}};
  return say(services_->io, std::move(connection), std::move(words));
}

// What ended while the journal was read is looked up again.
asio::awaitable<Result<Reception::Known>> Reception::look_up(std::shared_ptr<bool> alive, std::string id) {
  const std::shared_ptr<runtime::Services> services = services_;
  Result<std::optional<transfer::Saved>> saved = std::optional<transfer::Saved>();
  for (uint64_t before = sessions_.ended_count() - 1; before != sessions_.ended_count();) {
    before = sessions_.ended_count();
    auto work = [services, id] { return services->journal->saved(id, false); };
    saved = co_await services->pool.wait_for(std::move(work));
    if (!*alive || sessions_.stopping())
      co_return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
  }
  if (!saved) co_return saved.error();
  Known known{.saved = std::move(*saved), .under_id = sessions_.under_id(id), .granted = {}};
  if (known.saved) known.granted = known.saved->record.granted;
  if (const Sessions::Task task = sessions_.active(id)) known.granted = task->transfer().job().granted;
  co_return known;
}

Result<std::optional<transfer::Granted>> Reception::judge(const peer::Connection& connection,
                                                          const transfer::Hello& hello, const Known& known,
                                                          const identity::Standing& now) {
  if (!hello.grant && !known.granted) return std::optional<transfer::Granted>();
  const std::string& caller = connection.peer().name;
  const transfer::UnderId& under = known.under_id;
  const std::vector<std::string>& peers = under.peers;
  const bool of_record = known.saved && std::ranges::any_of(known.saved->record.legs, [&](const auto& leg) {
                           return leg.peer == caller;
                         });
  const Sessions::Task task = sessions_.active(hello.session_id);
  const grant::Call call{
      .hello = hello,
      .peer = connection.peer(),
      .known = known.granted,
      .knows_session = under.active || known.saved.has_value(),
      .active = task != nullptr,
      .of_caller = of_record || std::ranges::find(peers, caller) != peers.end(),
      .began_here = under.active ? under.initiator : known.saved && known.saved->record.initiator,
      .now_unix_ns = async::unix_ns()};
  grant::Judged judged = grant::judge(call, now);
  if (task && judged.ends) task->post(transfer::Cancel{judged.ends});
  if (!judged.granted)
    sessions_.note(audit::grant_refused(hello.session_id, caller, judged.granted.error(), async::unix_ns()));
  return std::move(judged.granted);
}

asio::awaitable<Result<std::optional<transfer::Mapped>>> Reception::find_user(
    std::shared_ptr<peer::Connection> connection, const transfer::Hello& hello, const Known& known,
    std::string issuer, std::shared_ptr<const identity::UserMap> map) {
  if (!issuer.empty()) {
    if (!hello.user.empty())
      co_return Error{ErrorCode::kIncompatible,
                      "the peer names a user, and an order has none: orders are operators'"};
    if (const Status may = check_orders_of(issuer, map.get()); !may) co_return may.error();
    co_return std::optional<transfer::Mapped>();
  }
  const Sessions::Task task = sessions_.active(hello.session_id);
  const bool saved = known.saved && !transfer::has_ended(known.saved->record.state);
  UserCall call{
      .peer = connection->peer().name, .user = hello.user, .share = hello.share, .goes_on = task || saved};
  if (call.goes_on) call.known = task ? task->transfer().job().mapped : known.saved->record.mapped;
  co_return co_await map_user(services_, std::move(call), std::move(map));
}

// False: what runs under a lower epoch of its lease has not ended yet.
asio::awaitable<Result<bool>> Reception::may_write(const peer::Connection& connection,
                                                   const transfer::Hello& hello, const Known& known) {
  const Sessions::Task task = sessions_.active(hello.session_id);
  const bool goes_on = task || (known.saved && !transfer::has_ended(known.saved->record.state));
  if (goes_on && (task ? task->transfer().job().lease : known.saved->record.lease) != hello.lease)
    co_return Error{ErrorCode::kIncompatible,
                    "the session runs under another lease, or under none: begin another session"};
  if (!hello.lease) co_return true;
  LeaseDesk::Claim claim{.lease = *hello.lease, .holder = connection.peer().name, .goes_on = goes_on};
  co_return co_await sessions_.leases().claim(std::move(claim));
}

asio::awaitable<Result<Reception::Entry>> Reception::enter(std::shared_ptr<bool> alive,
                                                           std::shared_ptr<peer::Connection> connection,
                                                           const transfer::Hello& hello, const Known& known,
                                                           std::string issuer,
                                                           std::shared_ptr<const identity::UserMap> map) {
  const uint64_t ended = sessions_.ended_count();
  const auto mapped = co_await find_user(connection, hello, known, std::move(issuer), std::move(map));
  if (!*alive || sessions_.stopping()) co_return Entry{};
  if (!mapped) {
    sessions_.note(audit::user_refused(hello.session_id, connection->peer().name, hello.user, mapped.error(),
                                       async::unix_ns()));
    co_return mapped.error();
  }
  const Result<bool> may = co_await may_write(*connection, hello, known);
  if (!*alive || sessions_.stopping()) co_return Entry{};
  if (!may) co_return may.error();
  const Sessions::Task task = sessions_.active(hello.session_id);
  // If it was this session that ended meanwhile, the next call hears how.
  const bool gone = ended != sessions_.ended_count() && !task;
  // Another call may have begun it meanwhile, for somebody else.
  const bool others = task && task->transfer().job().mapped != *mapped;
  co_return Entry{.later = !*may || gone || others || moves_.busy(hello.session_id), .mapped = *mapped};
}

asio::awaitable<void> Reception::receive(std::shared_ptr<bool> alive,
                                         std::shared_ptr<peer::Connection> connection, transfer::Hello hello,
                                         identity::Standing now) {
  const std::shared_ptr<runtime::Services> services = services_;
  const std::string peer = connection->peer().name;
  Result<Known> known = co_await look_up(alive, hello.session_id);
  if (!*alive || sessions_.stopping()) co_return;
  if (!known) co_return co_await refuse(std::move(connection), known.error(), known.error().message);
  if (moves_.busy(hello.session_id)) co_return co_await say_later(std::move(connection));
  const Result<Moves::Shown> shown = moves_.shown(connection->peer(), hello, known->saved, now);
  if (!shown) {
    sessions_.note(audit::move_refused(hello.session_id, peer, shown.error(), async::unix_ns()));
    co_return co_await refuse(std::move(connection), shown.error(), shown.error().message);
  }
  if (*shown == Moves::Shown::kLater) co_return co_await say_later(std::move(connection));
  if (*shown == Moves::Shown::kEnded)
    co_return co_await say(services->io, std::move(connection), transfer::ended_answer(*known->saved));
  const Result<std::optional<transfer::Granted>> granted = judge(*connection, hello, *known, now);
  if (!granted) co_return co_await refuse(std::move(connection), granted.error(), granted.error().message);
  if (known->saved) known->under_id.record = &known->saved->record;
  transfer::Decision decision = transfer::receive_call(peer, hello, known->under_id);
  if (decision.kind == transfer::CallKind::kNew) {
    if (const Status room = sessions_.check_room_for(*granted ? (*granted)->issuer : peer); !room)
      decision = {
          .kind = transfer::CallKind::kRefused, .error = room.error(), .reason = room.error().message};
  }
  std::optional<transfer::Mapped> mapped;
  if (const bool begins =
          decision.kind == transfer::CallKind::kNew || decision.kind == transfer::CallKind::kKnown;
      begins && !hello.ended) {
    std::string issuer = *granted ? (*granted)->issuer : "";
    const Result<Entry> entry =
        co_await enter(alive, connection, hello, *known, std::move(issuer), now.users);
    if (!*alive || sessions_.stopping()) co_return;
    if (!entry) co_return co_await refuse(std::move(connection), entry.error(), entry.error().message);
    if (entry->later) co_return co_await say_later(std::move(connection));
    mapped = entry->mapped;
  }
  switch (decision.kind) {
    case transfer::CallKind::kRefused:
      DCHECK(decision.error, "whoever is refused hears why");
      co_return co_await refuse(std::move(connection), *decision.error, std::move(decision.reason));
    case transfer::CallKind::kEnded:
      DCHECK(known->saved, "what is said of an ended session is in the journal");
      co_return co_await say(services->io, std::move(connection), transfer::ended_answer(*known->saved));
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
      co_return co_await say(
          services->io, std::move(connection),
          transfer::knows_answer(hello, known->saved && transfer::moved_away(known->saved->record)));
    case transfer::CallKind::kLater:
      co_return co_await say_later(std::move(connection));
    case transfer::CallKind::kNew:
    case transfer::CallKind::kKnown:
      co_return take_call(connection, hello, *granted, std::move(mapped));
  }
}

void Reception::take_call(const std::shared_ptr<peer::Connection>& connection, const transfer::Hello& hello,
                          std::optional<transfer::Granted> granted, std::optional<transfer::Mapped> mapped) {
  Sessions::Task task = sessions_.active(hello.session_id);
  if (!task) {
    const std::string& peer = connection->peer().name;
    // One that ended before it had begun is begun anew under its id, and takes the place of its former self.
    sessions_.forget_ended(hello.session_id);
    log::of(log::kPeer)
        ->info("{} ({}) opens session {}{}", peer, connection->remote_address(),
               hello.session_id.substr(0, 8), mapped ? " for " + transfer::mapped_text(*mapped, peer) : "");
    sessions_.note(audit::session_begun(hello.session_id, transfer::Role::kUnknown, false, peer, {},
                                        async::unix_ns(), granted ? granted->issuer : "", mapped));
    auto transfer = std::make_unique<transfer::Transfer>(services_->settings, hello.session_id, peer,
                                                         async::unix_ns(), async::monotonic_ns());
    if (granted) transfer->begin_granted(std::move(*granted));
    transfer->begin_leased(hello.lease);
    transfer->begin_mapped(std::move(mapped));
    task = sessions_.add(std::move(transfer), {});
  } else if (const auto& has = task->transfer().job().granted;
             has && granted && !(has->grant == granted->grant)) {
    task->post(transfer::GrantRenewed{std::move(*granted)});
  }
  DCHECK(task->transfer().id() == hello.session_id, "a call goes to the session of its id");
  task->peer_called(connection, hello);
}

}  // namespace sluice::node
