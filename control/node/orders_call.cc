// The calls by which an order is given, and followed.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "control/async/clock.h"
#include "control/grant/grant.h"
#include "control/leg/negotiation.h"
#include "control/node/order_of_orders.h"
#include "control/peer/codec.h"
#include "control/proto/option_fields.h"
#include "control/runtime/leg_stream.h"
#include "control/runtime/standing.h"
#include "dataplane/base/log.h"

namespace sluice::node {
namespace {

using namespace std::chrono_literals;

constexpr auto kHearFor = 200ms;  // then wishes are looked at, and whether the grant grows old
constexpr int64_t kRenewAfterNs = grant::kStartWithinNs / 2;

// What was asked for: what was not is the source's to decide.
options::Wish wish_in(const std::string& bytes) {
  api::TransferOptions message;
  if (!message.ParseFromString(bytes)) return {};
  const Result<options::Wish> wish = api::wish_of(message);
  return wish ? *wish : options::Wish();
}

bool may_still_begin(const transfer::OrderState& state) {
  const std::optional<transfer::ViewState> seen = view_state_of(state.state);
  return !seen || *seen == transfer::ViewState::kQueued || *seen == transfer::ViewState::kConnecting ||
         *seen == transfer::ViewState::kNegotiating || *seen == transfer::ViewState::kWaiting ||
         *seen == transfer::ViewState::kPaused;
}

// Said in one breath: a round trip is saved, and who does not know orders hangs up on it.
std::vector<peer::PeerMessage> words_of(const Orders::Order& order, transfer::SignedGrant grant) {
  transfer::Hello hello = transfer::make_hello(order.record.id);
  hello.orders = true;
  hello.inquires = true;  // whoever does not know `orders` opens nothing
  hello.known = order.record.ordered->taken;
  const transfer::Request& request = *order.record.request;
  const transfer::Order said{.grant = std::move(grant),
                             .source_paths = request.source_paths,
                             .selection = request.selection,
                             .destination = request.destination,
                             .options = wish_in(order.record.ordered->options)};
  return {peer::to_wire(hello), peer::to_wire(said)};
}

}  // namespace

asio::awaitable<Status> Orders::call(std::shared_ptr<bool> alive, OrderPtr order) {
  const std::shared_ptr<runtime::Services> services = services_;
  const Result<identity::Standing> now = co_await runtime::standing_now(services);
  if (!now) co_return now.error();
  if (!*alive) co_return Status();
  const Result<identity::Peer> source = now->trust->find(order->source());
  if (!source) co_return source.error();
  const Result<transfer::SignedGrant> grant = grant_for(*order, *now);
  if (!grant) co_return grant.error();
  peer::OnOffer on_offer = [services](identity::Offer offer) {
    runtime::remember_offer(*services, std::move(offer));
  };
  std::vector<peer::PeerMessage> words = words_of(*order, *grant);
  order->signed_unix_ns = async::unix_ns();
  Result<std::unique_ptr<peer::Connection>> connected =
      co_await peer::connect(*now, *source, runtime::kConnectTimeoutMs, services->frames, std::move(on_offer),
                             std::make_shared<peer::FirstWords>(std::move(words)));
  if (!connected) co_return connected.error();
  if (!*alive) co_return Status();
  const auto call = std::make_shared<SessionlessCall>(services->io, std::shared_ptr(std::move(*connected)),
                                                      peer::Stage::kSession);
  call->begin();
  Status status = co_await greet(call, order);
  if (status && *alive) status = co_await hear(alive, call, order);
  call->end({ErrorCode::kCancelled, "nobody follows the order any more"});
  co_return status;
}

asio::awaitable<Status> Orders::greet(CallPtr call, OrderPtr order) {
  Result<std::optional<SessionlessCall::Said>> said = co_await call->next(peer::kHelloTimeout);
  if (!said) co_return said.error();
  if (!said->has_value())
    co_return Error{ErrorCode::kPeerUnreachable,
                    fmt::format("{} did not answer within {} s; see the log of its sluice-control",
                                call->peer(), peer::kHelloTimeout.count())};
  const auto* const message = std::get_if<transfer::Message>(&**said);
  if (message != nullptr && std::holds_alternative<transfer::Failure>(*message)) {
    order->final_word = true;
    co_return transfer::error_of(call->peer(), std::get<transfer::Failure>(*message));
  }
  const auto* const answer = message == nullptr ? nullptr : std::get_if<transfer::Hello>(message);
  if (answer == nullptr || !transfer::check_hello(*answer))
    co_return Error{ErrorCode::kIncompatible, call->peer() + " did not answer with Hello"};
  if (answer->orders) co_return Status();
  co_return Error{
      ErrorCode::kIncompatible,
      fmt::format("{} is too old ({}): it takes no orders of other nodes; bring all three to one version",
                  call->peer(), answer->software)};
}

asio::awaitable<Status> Orders::say_wishes(CallPtr call, OrderPtr order) {
  // A state that was on its way already says nothing of them; the second one was made since.
  std::erase_if(order->wishes, [](const Order::Wish& each) { return each.heard >= 2; });
  for (Order::Wish& each : order->wishes) {
    if (!std::exchange(each.said, true)) call->say(each.wish);
  }
  if (async::unix_ns() - order->signed_unix_ns < kRenewAfterNs || !may_still_begin(order->said))
    co_return Status();
  const Result<identity::Standing> now = co_await runtime::standing_now(services_);
  if (!now) co_return Status();
  const Result<transfer::SignedGrant> grant = grant_for(*order, *now);
  if (!grant) co_return grant.error();
  order->signed_unix_ns = async::unix_ns();
  call->say(transfer::OrderWish{.kind = transfer::OrderWishKind::kRenew, .grant = *grant});
  co_return Status();
}

asio::awaitable<Status> Orders::hear(std::shared_ptr<bool> alive, CallPtr call, OrderPtr order) {
  while (*alive && !over(*order)) {
    Result<std::optional<SessionlessCall::Said>> said = co_await call->next(kHearFor);
    if (!*alive || over(*order)) break;
    if (!said) co_return said.error();
    if (*said) {
      const auto* const message = std::get_if<transfer::Message>(&**said);
      if (message != nullptr && std::holds_alternative<transfer::Failure>(*message)) {
        order->final_word = true;
        co_return transfer::error_of(call->peer(), std::get<transfer::Failure>(*message));
      }
      const auto* const state = message == nullptr ? nullptr : std::get_if<transfer::OrderState>(message);
      if (state == nullptr)
        co_return Error{ErrorCode::kIncompatible, call->peer() + " says what is no state of an order"};
      const bool first = !order->record.ordered->taken;
      take_state(*order, *state);
      for (Order::Wish& each : order->wishes) each.heard += each.said ? 1 : 0;
      if (first) {
        if (const Status written = co_await write(order, false); !written)
          log::of(log::kSession)->error("{}", written.error().message);
      }
    }
    if (*alive && !over(*order)) {
      if (const Status status = co_await say_wishes(call, order); !status) co_return status;
    }
  }
  co_return Status();
}

void Orders::take_state(Order& order, const transfer::OrderState& state) {
  order.said = state;
  order.waiting_for.clear();
  order.trouble.reset();
  order.record.ordered->taken = true;
  const bool succeeded = view_state_of(state.state) == transfer::ViewState::kSucceeded;
  if (!order.cancelled || succeeded) order.record.error.reset();
  if (state.error_code != 0) {
    const bool known = state.error_code <= static_cast<uint32_t>(kErrorCodeLast);
    order.record.error =
        Error{known ? static_cast<ErrorCode>(state.error_code) : ErrorCode::kInternal, state.error};
  }
  order.record.summary.bytes_done = state.bytes_done;
  switch (view_state_of(state.state).value_or(transfer::ViewState::kConnecting)) {
    case transfer::ViewState::kSucceeded:
      order.record.state = transfer::RecordState::kSucceeded;
      break;
    case transfer::ViewState::kFailed:
      order.record.state = transfer::RecordState::kFailed;
      break;
    case transfer::ViewState::kCancelled:
      order.record.state = transfer::RecordState::kCancelled;
      break;
    default:
      break;
  }
}

}  // namespace sluice::node
