// What this node orders of two others: that one sends to the other. docs/WIRE.md, 2.13; decision 19.
//
// On the loop's thread. No byte of the data comes here. An order is a session of this node like any other for
// whoever looks: it has an id, the same as at the two nodes, stands in the journal, and lives as long as
// theirs does, whatever becomes of the calls by which it is followed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <string>
#include <vector>

#include "control/async/notify.h"
#include "control/node/options.h"
#include "control/node/sessionless_call.h"
#include "control/node/sessions.h"

namespace sluice::node {

class Orders final : public Elsewhere {
 public:
  static constexpr size_t kOrdersMax = 1000;  // that have not ended

  // `sessions` outlives it.
  Orders(std::shared_ptr<runtime::Services> services, Sessions& sessions);
  ~Orders() override;
  Orders(const Orders&) = delete;
  Orders& operator=(const Orders&) = delete;

  // -> its id, once the journal has it. kUsage, kPeerUntrusted, kConfiguration: it cannot be ordered.
  asio::awaitable<Result<std::string>> begin(Wishes wishes);
  // From the journal, after a restart.
  void restore(const transfer::Record& record);
  void stop();  // nothing is followed any more; the next control goes on

  std::vector<transfer::View> views() const override;
  bool has(const std::string& id) const override;
  asio::awaitable<Result<transfer::View>> wish(std::string id, transfer::OrderWish wish) override;

  struct Order;

 private:
  using OrderPtr = std::shared_ptr<Order>;
  using CallPtr = std::shared_ptr<SessionlessCall>;

  OrderPtr find(const std::string& id) const;
  void add(const OrderPtr& order);
  Status check(const Wishes& wishes, const identity::Standing& now) const;
  Result<transfer::SignedGrant> grant_for(const Order& order, const identity::Standing& now) const;
  static asio::awaitable<void> follow(Orders* self, std::shared_ptr<bool> alive, OrderPtr order);
  // One call, until it breaks off or the order has ended.
  asio::awaitable<Status> call(std::shared_ptr<bool> alive, OrderPtr order);
  asio::awaitable<Status> greet(CallPtr call, OrderPtr order);
  asio::awaitable<Status> hear(std::shared_ptr<bool> alive, CallPtr call, OrderPtr order);
  asio::awaitable<Status> say_wishes(CallPtr call, OrderPtr order);
  void take_state(Order& order, const transfer::OrderState& state);
  void end(const OrderPtr& order, transfer::RecordState how, std::optional<Error> error);
  asio::awaitable<Status> write(OrderPtr order, bool with_request);
  bool over(const Order& order) const;
  Error cancelled_here() const;

  const std::shared_ptr<runtime::Services> services_;
  Sessions& sessions_;
  std::vector<OrderPtr> orders_;
  bool stopped_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // coroutines may outlive this object
};

}  // namespace sluice::node
