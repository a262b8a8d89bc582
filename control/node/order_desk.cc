// SPDX-License-Identifier: Apache-2.0
#include "control/node/order_desk.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/async/clock.h"
#include "control/audit/lines.h"
#include "control/grant/grant.h"
#include "control/leg/negotiation.h"
#include "control/node/mapping.h"
#include "control/node/order_view.h"
#include "control/runtime/standing.h"
#include "dataplane/base/log.h"

namespace sluice::node {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kOrderTimeout = 10s;
constexpr auto kLookForNews = 100ms;  // has anything changed?
constexpr auto kTellAgain = 1s;

Error desk_stops() { return {ErrorCode::kDaemonNotRunning, "sluice-control is stopping"}; }

bool has_ended(const transfer::View& view) { return view.state >= transfer::ViewState::kSucceeded; }

// What whoever ordered it is to hear at once.
bool differs(const transfer::OrderState& one, const transfer::OrderState& other) {
  return one.state != other.state || one.waiting_for != other.waiting_for || one.error != other.error ||
         one.names.failed != other.names.failed || one.names.total != other.names.total ||
         one.rate_limit_bps != other.rate_limit_bps || one.queue_place != other.queue_place;
}

}  // namespace

Status OrderDesk::check_room(const std::string& peer) const {
  if (stopped_) return desk_stops();
  const size_t of_peer = calls_of(peer, calls_);
  if (calls_.size() < kCallsMax && of_peer < kCallsPerPeerMax) return {};
  return Error{
      ErrorCode::kResources,
      fmt::format("node {} follows {} orders already, {} of them of {}: try again when one has ended "
                  "(at most {} at a time, and {} of one peer)",
                  services_->node.name, calls_.size(), of_peer, peer, kCallsMax, kCallsPerPeerMax)};
}

asio::awaitable<void> OrderDesk::serve(std::shared_ptr<peer::Connection> connection, transfer::Hello hello) {
  const std::shared_ptr<OrderDesk> self = shared_from_this();
  const auto call =
      std::make_shared<SessionlessCall>(services_->io, std::move(connection), peer::Stage::kSession);
  Status status = transfer::check_hello(hello);
  if (status) status = check_room(call->peer());
  if (status) {
    calls_.insert(call);
    call->begin();
    transfer::Hello greeting = transfer::make_hello(hello.session_id);
    greeting.orders = true;
    call->say(greeting);
    status = co_await answer(call, hello.session_id, hello.known);
    calls_.erase(call);
  }
  if (!status) {
    log::of(log::kPeer)
        ->info("{}: an order for session {}: {}", call->peer(), hello.session_id.substr(0, 8),
               status.error().message);
    call->say(transfer::failure_of(status.error()));
  }
  call->end({ErrorCode::kCancelled, "it was told"});
}

void OrderDesk::stop() {
  stopped_ = true;
  const std::set<CallPtr> calls = calls_;
  for (const CallPtr& call : calls) {
    call->say(transfer::failure_of(desk_stops()));
    call->end(desk_stops());
  }
}

asio::awaitable<Status> OrderDesk::answer(CallPtr call, std::string id, bool known) {
  Result<std::optional<SessionlessCall::Said>> said = co_await call->next(kOrderTimeout);
  if (!said) co_return said.error();
  auto* const message = *said ? std::get_if<transfer::Message>(&**said) : nullptr;
  auto* const order = message == nullptr ? nullptr : std::get_if<transfer::Order>(message);
  if (order == nullptr)
    co_return Error{ErrorCode::kIncompatible, "an order was due: the peer said something else"};
  const Status taken = co_await take(call, id, known, std::move(*order));
  if (!taken) {
    note_refused(*call, id, taken.error());
    co_return taken.error();
  }
  co_return co_await tell(call, id);
}

// A node that is refused for now asks again every few seconds: that is not worth a line each time.
void OrderDesk::note_refused(const SessionlessCall& call, const std::string& id, const Error& why) {
  if (!order_waits(why.code)) sessions_.note(audit::grant_refused(id, call.peer(), why, async::unix_ns()));
}

asio::awaitable<Result<transfer::Granted>> OrderDesk::believe(CallPtr call, std::string id,
                                                              transfer::SignedGrant grant) {
  const Result<identity::Standing> now = co_await runtime::standing_now(services_);
  if (!now) co_return now.error();
  Result<transfer::Granted> granted = grant::check(grant,
                                                   {.session_id = id,
                                                    .shown_by = call->node(),
                                                    .by_issuer = true,
                                                    .self = *now->self,
                                                    .known = sessions_.active(id) != nullptr,
                                                    .now_unix_ns = async::unix_ns()},
                                                   *now->trust);
  if (granted) {
    if (const Status may = check_orders_of(granted->issuer, now->users.get()); !may) granted = may.error();
  }
  co_return granted;
}

// Of a session that this node has begun for `issuer`. kUsage: there is none.
asio::awaitable<Result<transfer::View>> OrderDesk::find(std::string id, std::string issuer) const {
  const Error others{ErrorCode::kIncompatible, "the id of this session cannot be used here: order another"};
  if (const Result<transfer::View> view = sessions_.find(id)) {
    if (view->asker.of_this_node && view->asker.ordered_by == issuer) co_return view;
    co_return others;
  }
  auto work = [services = services_, id] { return services->journal->saved(id, false); };
  const Result<std::optional<transfer::Saved>> saved = co_await services_->pool.wait_for(std::move(work));
  if (!saved) co_return saved.error();
  if (!saved->has_value()) co_return Error{ErrorCode::kUsage, "this node knows no such order of the peer"};
  const transfer::Record& record = (*saved)->record;
  if (!record.initiator || !record.granted || record.granted->issuer != issuer) co_return others;
  // It is about to be remembered.
  if (!transfer::has_ended(record.state))
    co_return Error{ErrorCode::kResources, "the session ends just now: ask again"};
  co_return transfer::view_of(**saved);
}

asio::awaitable<Status> OrderDesk::take(CallPtr call, std::string id, bool known, transfer::Order order) {
  while (beginning_.contains(id)) {  // by another call
    co_await call->wait_for_wake(kLookForNews);
    if (call->problem()) co_return *call->problem();
  }
  // One that has ended is told of, however long ago its grant has.
  if (sessions_.active(id) == nullptr) {
    const Result<transfer::View> view = co_await find(id, call->peer());
    if (view) co_return Status();
    if (view.error().code != ErrorCode::kUsage) co_return view.error();
    // To begin it anew could replace what has come there since.
    if (known)
      co_return Error{
          ErrorCode::kIncompatible,
          "this node knows nothing of the order any more (its journal was lost, or has forgotten it): look "
          "at the destination before you order it again"};
  }
  Result<transfer::Granted> granted = co_await believe(call, id, order.grant);
  if (!granted) co_return granted.error();
  if (const Sessions::Task task = sessions_.active(id)) {
    const std::optional<transfer::Granted>& has = task->transfer().job().granted;
    if (!task->transfer().initiator() || !has || has->issuer != granted->issuer)
      co_return Error{ErrorCode::kIncompatible, "the id of this session cannot be used here: order another"};
    task->post(transfer::GrantRenewed{std::move(*granted)});
    co_return Status();
  }
  // It has begun and ended while its grant was looked at: to begin it anew could replace what has come there
  // since.
  if (sessions_.find(id)) {
    const Result<transfer::View> view = co_await find(id, call->peer());
    co_return view ? Status() : Status(view.error());
  }
  if (!beginning_.insert(id).second) co_return Error{ErrorCode::kResources, "it is being begun: ask again"};
  const Status begun = co_await begin(id, std::move(order), std::move(*granted));
  beginning_.erase(id);
  co_return begun;
}

// Which peer of this node that is: addresses come from its own list, never from a grant.
asio::awaitable<Result<std::string>> OrderDesk::name_of(std::string party) const {
  const Result<identity::Standing> now = co_await runtime::standing_now(services_);
  if (!now) co_return now.error();
  co_return grant::find_party(party, *now->trust);
}

asio::awaitable<Status> OrderDesk::begin(std::string id, transfer::Order order, transfer::Granted granted) {
  if (order.problem) co_return *order.problem;
  const Result<grant::Signed> shown = grant::read(granted.grant);
  if (!shown) co_return shown.error();
  if (shown->grant.sources_sha256 != grant::digest_of(order.source_paths) ||
      granted.path != order.destination || (order.options.overwrite.value_or(false) && !granted.overwrite)) {
    co_return Error{ErrorCode::kPeerUntrusted,
                    "the order is not the one that its grant is for: order it again"};
  }
  const Result<std::string> destination = co_await name_of(shown->grant.destination);
  if (!destination) co_return destination.error();
  if (const Status room = sessions_.check_room_for(granted.issuer); !room) co_return room.error();
  Wishes wishes{.peer = *destination,
                .sources = std::move(order.source_paths),
                .destination = std::move(order.destination),
                .options = order.options,
                .selection = std::move(order.selection),
                .order = OrderTaken{.id = id, .granted = std::move(granted)}};
  const Result<std::string> begun = co_await starter_.send(std::move(wishes));
  if (!begun) co_return begun.error();
  co_return Status();
}

// Until it has ended, and whoever ordered it was told, or hangs up.
asio::awaitable<Status> OrderDesk::tell(CallPtr call, std::string id) {
  std::optional<transfer::OrderState> told;
  auto told_at = steady_clock::now();
  for (;;) {
    const Result<transfer::View> view = co_await find(id, call->peer());
    if (!view && view.error().code == ErrorCode::kResources && !call->problem()) {
      co_await call->wait_for_wake(kLookForNews);
      continue;
    }
    if (!view) co_return view.error();
    transfer::OrderState state = state_of(*view);
    const auto now = steady_clock::now();
    if (!told || differs(*told, state) || now - told_at >= kTellAgain) {
      call->say(state);
      told_at = now;
      told = std::move(state);
    }
    if (has_ended(*view)) co_return Status();
    Result<std::optional<SessionlessCall::Said>> said = co_await call->next(kLookForNews);
    if (!said) co_return said.error();
    if (!*said) continue;
    const auto* const message = std::get_if<transfer::Message>(&**said);
    const auto* const wish = message == nullptr ? nullptr : std::get_if<transfer::OrderWish>(message);
    if (wish == nullptr)
      co_return Error{ErrorCode::kIncompatible,
                      "the peer said something else than what it wishes of its order"};
    co_await hear(call, id, *wish);
  }
}

// What cannot be done just now changes nothing: the next state says how it stands.
asio::awaitable<void> OrderDesk::hear(CallPtr call, std::string id, transfer::OrderWish wish) {
  Result<transfer::View> done = Error{ErrorCode::kUsage, "nothing"};
  switch (wish.kind) {
    case transfer::OrderWishKind::kNothing:
      co_return;
    case transfer::OrderWishKind::kCancel:
      done = co_await sessions_.cancel(id, call->peer());
      break;
    case transfer::OrderWishKind::kPause:
      done = co_await sessions_.pause(id);
      break;
    case transfer::OrderWishKind::kContinue:
      done = co_await sessions_.go_on(id);
      break;
    case transfer::OrderWishKind::kLimit:
      done = co_await sessions_.limit(id, wish.rate_bps);
      break;
    case transfer::OrderWishKind::kRenew: {
      Result<transfer::Granted> granted = co_await believe(call, id, wish.grant);
      if (!granted) {
        note_refused(*call, id, granted.error());
        done = granted.error();
      }
      const Sessions::Task task = sessions_.active(id);
      if (granted && task) task->post(transfer::GrantRenewed{std::move(*granted)});
      if (granted) co_return;
      break;
    }
  }
  if (!done)
    log::of(log::kSession)
        ->info("session {}: what {} wishes: {}", id.substr(0, 8), call->peer(), done.error().message);
}

}  // namespace sluice::node
