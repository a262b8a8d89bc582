// SPDX-License-Identifier: Apache-2.0
#include "control/node/orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <deque>

#include "control/async/clock.h"
#include "control/audit/lines.h"
#include "control/grant/grant.h"
#include "control/leg/negotiation.h"
#include "control/node/begin.h"
#include "control/node/order_of_orders.h"
#include "control/node/order_view.h"
#include "control/peer/codec.h"
#include "control/proto/option_fields.h"
#include "control/runtime/leg_stream.h"
#include "control/runtime/standing.h"
#include "dataplane/base/log.h"

namespace sluice::node {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kFirstRest = 200ms;  // between two calls, doubled
constexpr auto kLongestRest = 5s;

// The state, as the journal keeps it.
std::string bytes_of(const transfer::OrderState& state) {
  return peer::to_wire(state).order_state().SerializeAsString();
}

// Likewise what was asked for: what was not is the source's to decide.
std::string bytes_of(const options::Wish& wish) {
  api::TransferOptions message;
  api::put_wish(wish, &message);
  return message.SerializeAsString();
}

transfer::OrderState state_in(const std::string& bytes) {
  peer::PeerMessage message;
  if (!message.mutable_order_state()->ParseFromString(bytes)) return {};
  std::optional<transfer::Message> state = peer::from_wire(message);
  if (!state || !transfer::admit(&*state)) return {};
  return std::get<transfer::OrderState>(*state);
}

// An order that was not taken ends with what keeps it from that. What the source has taken goes on there
// whatever is wrong with a call: it ends when the source says so.
bool is_end(const Orders::Order& order, const Error& error, int64_t age_ns) {
  if (age_ns > grant::kEndWithinNs) return true;
  if (order.record.ordered->taken) return order.final_word && !order_waits(error.code);
  if (!order_waits(error.code)) return true;
  return age_ns > grant::kStartWithinNs && error.code != ErrorCode::kResources;  // it is full, and there
}

}  // namespace

Orders::Orders(std::shared_ptr<runtime::Services> services, Sessions& sessions)
    : services_(std::move(services)), sessions_(sessions) {
  sessions_.follow(this);
}

Orders::~Orders() {
  *alive_ = false;
  sessions_.follow(nullptr);
}

void Orders::stop() {
  stopped_ = true;
  for (const OrderPtr& order : orders_) order->news.notify();
}

bool Orders::over(const Order& order) const { return stopped_ || transfer::has_ended(order.record.state); }

// ---- which there are -----------------------------------------------------------------------------

std::vector<transfer::View> Orders::views() const {
  std::vector<transfer::View> all;
  for (const OrderPtr& order : orders_) all.push_back(order->view());
  return all;
}

Orders::OrderPtr Orders::find(const std::string& id) const {
  const Result<transfer::View> found = sessions_.find(id);
  if (!found) return nullptr;
  const auto order =
      std::ranges::find_if(orders_, [&](const OrderPtr& each) { return each->record.id == found->id; });
  return order == orders_.end() ? nullptr : *order;
}

bool Orders::has(const std::string& id) const { return !orders_.empty() && find(id) != nullptr; }

// ---- how they begin ------------------------------------------------------------------------------

Status Orders::check(const Wishes& wishes, const identity::Standing& now) const {
  if (stopped_) return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
  if (wishes.user)
    return Error{
        ErrorCode::kUsage,
        "transfers between two other nodes are not for members of [control] users_group: ask an operator "
        "of this node"};
  if (orders_.size() >= kOrdersMax)
    return Error{
        ErrorCode::kResources,
        fmt::format("{} transfers of other nodes are ordered and have not ended: wait for one to end, or "
                    "cancel one",
                    orders_.size())};
  if (wishes.source_node == wishes.peer)
    return Error{ErrorCode::kUsage,
                 fmt::format("{} is both source and destination: copy the files there", wishes.peer)};
  const Result<identity::Peer> source = now.trust->find(wishes.source_node);
  if (!source) return source.error();
  if (source->address.empty())
    return Error{ErrorCode::kConfiguration,
                 fmt::format("node {0} is trusted, but its address is not known, and it has to be called: "
                             "'sluice node trust {0} --address HOST:PORT' says it",
                             wishes.source_node)};
  if (const Result<identity::Peer> destination = now.trust->find(wishes.peer); !destination)
    return destination.error();
  for (const std::string& path : wishes.sources) {
    if (path.empty()) return Error{ErrorCode::kUsage, "an empty path; name a file of " + wishes.source_node};
  }
  if (wishes.sources.empty()) return Error{ErrorCode::kUsage, "no source given: name at least one file"};
  return check_wishes(transfer::Role::kSource, wishes);
}

Result<transfer::SignedGrant> Orders::grant_for(const Order& order, const identity::Standing& now) const {
  const transfer::Request& request = *order.record.request;
  const Result<identity::Peer> source = now.trust->find(order.source());
  if (!source) return source.error();
  const Result<identity::Peer> destination = now.trust->find(order.record.ordered->destination);
  if (!destination) return destination.error();
  const int64_t now_unix_ns = async::unix_ns();
  return grant::sign(*now.self, {.id = order.record.id,
                                 .issuer = now.self->fingerprint,
                                 .holder = grant::party_of(*source),
                                 .destination = grant::party_of(*destination),
                                 .sources_sha256 = grant::digest_of(request.source_paths),
                                 .path = request.destination,
                                 .overwrite = request.options.overwrite,
                                 .bytes_max = request.options.max_bytes,
                                 .not_before_unix_ns = now_unix_ns,
                                 .start_by_unix_ns = now_unix_ns + grant::kStartWithinNs,
                                 .end_by_unix_ns = order.record.started_unix_ns + grant::kEndWithinNs});
}

asio::awaitable<Result<std::string>> Orders::begin(Wishes wishes) {
  const std::shared_ptr<bool> alive = alive_;
  const Result<identity::Standing> now = co_await runtime::standing_now(services_);
  if (!now) co_return now.error();
  if (!*alive) co_return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
  if (const Status status = check(wishes, *now); !status) co_return status.error();
  if (!wishes.selection.names.empty() && !wishes.sources.front().ends_with('/'))
    wishes.sources.front() += '/';
  const auto order = std::make_shared<Order>(services_->io, services_->pool);
  transfer::Record& record = order->record;
  record.id = new_session_id();
  record.initiator = true;
  record.role = transfer::Role::kSource;
  record.started_unix_ns = sessions_.next_start_ns();
  record.legs.push_back({.peer = wishes.source_node});
  record.ordered = transfer::Ordered{.destination = wishes.peer};
  const Result<transfer::Options> options = options::fill_in(wishes.options, services_->node.transfer);
  if (!options) co_return options.error();
  record.ordered->options = bytes_of(wishes.options);
  record.request = transfer::Request{.options = *options,
                                     .source_paths = std::move(wishes.sources),
                                     .selection = std::move(wishes.selection),
                                     .destination = std::move(wishes.destination)};
  // What can be known at once of the grant is an error of the call.
  if (const auto grant = grant_for(*order, *now); !grant) co_return grant.error();
  order->waiting_for = "node " + order->source();
  if (const Status written = co_await write(order, true); !written) co_return written.error();
  if (!*alive) co_return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
  sessions_.note(
      audit::order_begun(record.id, order->source(), record.ordered->destination, async::unix_ns()));
  log::of(log::kSession)
      ->info("session {}: {} is told to send {} to {}, asked for by an operator", record.id.substr(0, 8),
             order->source(), record.request->source_paths.front(), record.ordered->destination);
  add(order);
  co_return record.id;
}

void Orders::add(const OrderPtr& order) {
  orders_.push_back(order);
  asio::co_spawn(services_->io, follow(this, alive_, order), asio::detached);
}

void Orders::restore(const transfer::Record& record) {
  const auto order = std::make_shared<Order>(services_->io, services_->pool);
  order->record = record;
  order->said = state_in(record.ordered->state);
  if (record.error && record.error->code == ErrorCode::kCancelled && !transfer::has_ended(record.state)) {
    order->cancelled = true;
    order->wishes.push_back({.wish = {.kind = transfer::OrderWishKind::kCancel}});
  }
  if (transfer::has_ended(record.state)) {
    sessions_.remember(order->view());
    return;
  }
  order->waiting_for = "node " + order->source();
  add(order);
}

asio::awaitable<Status> Orders::write(OrderPtr order, bool with_request) {
  transfer::Batch batch;
  order->record.ordered->state = bytes_of(order->said);
  batch.record = order->record;
  if (!with_request) batch.record->request.reset();
  auto work = [services = services_, batch = std::move(batch), id = order->record.id] {
    return services->journal->write(id, batch, transfer::Durability::kPower);
  };
  co_return co_await services_->pool.wait_on(order->journal, std::move(work));
}

// ---- how they are followed -----------------------------------------------------------------------

asio::awaitable<void> Orders::follow(Orders* self, std::shared_ptr<bool> alive, OrderPtr order) {
  std::chrono::nanoseconds rest = kFirstRest;
  while (*alive && !self->over(*order)) {
    const bool was_taken = order->record.ordered->taken;
    order->final_word = false;
    for (Order::Wish& each : order->wishes) each.said = false;
    const Status called = co_await self->call(alive, order);
    if (!*alive || self->over(*order)) break;
    const Error error = called ? Error{ErrorCode::kPeerUnreachable, "the call ended"} : called.error();
    order->trouble = error;
    order->waiting_for = "node " + order->source();
    const int64_t age_ns = async::unix_ns() - order->record.started_unix_ns;
    if (order->cancelled && !order->record.ordered->taken) {
      self->end(order, transfer::RecordState::kCancelled, self->cancelled_here());
    } else if (is_end(*order, error, age_ns)) {
      self->end(order, transfer::RecordState::kFailed, error);
    }
    if (self->over(*order)) break;
    if (order->record.ordered->taken && !was_taken) rest = kFirstRest;
    co_await order->news.wait_for(rest);
    rest = std::min<std::chrono::nanoseconds>(2 * rest, kLongestRest);
  }
  if (!*alive || !transfer::has_ended(order->record.state)) co_return;
  const Status written = co_await self->write(order, false);
  if (!written) log::of(log::kSession)->error("{}", written.error().message);
  if (!*alive) co_return;
  std::erase(self->orders_, order);
  self->sessions_.ended_elsewhere(order->view());
}

Error Orders::cancelled_here() const {
  return {ErrorCode::kCancelled, fmt::format("cancelled by an operator of node {}", services_->node.name)};
}

void Orders::end(const OrderPtr& order, transfer::RecordState how, std::optional<Error> error) {
  order->record.state = how;
  order->record.error = std::move(error);
}

// Answered at once where the source hears it now; else once it can be called.
asio::awaitable<Result<transfer::View>> Orders::wish(std::string id, transfer::OrderWish wish) {
  const std::shared_ptr<bool> alive = alive_;
  const OrderPtr order = find(id);
  if (!order) co_return Error{ErrorCode::kUsage, "no such order"};
  if (wish.kind == transfer::OrderWishKind::kCancel && !order->cancelled) {
    order->cancelled = true;
    order->record.error = cancelled_here();
    // Whoever is told that it will end finds it so after a crash.
    if (const Status written = co_await write(order, false); !written) co_return written.error();
    if (!*alive) co_return order->view();
  }
  order->wishes.push_back({.wish = std::move(wish)});
  order->news.notify();
  // What it led to, if that is known soon.
  const auto until = steady_clock::now() + 2s;
  const uint32_t before = order->said.state;
  while (*alive && !over(*order) && steady_clock::now() < until && order->said.state == before)
    co_await order->news.wait_for(100ms);
  co_return order->view();
}

}  // namespace sluice::node
