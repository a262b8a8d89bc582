// Where other nodes order transfers of this one, as their source. docs/WIRE.md, 2.13.
//
// On the loop's thread. A call is of one order: it begins a session, or finds the one that was begun by it,
// and tells how it stands until it has ended. The session does not depend on the call.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <set>
#include <string>

#include "control/node/begin.h"
#include "control/node/sessionless_call.h"
#include "control/node/sessions.h"

namespace sluice::node {

class OrderDesk : public std::enable_shared_from_this<OrderDesk> {
 public:
  static constexpr size_t kCallsMax = 256;
  static constexpr size_t kCallsPerPeerMax = 64;

  // Both outlive it, or stop() comes first.
  OrderDesk(std::shared_ptr<runtime::Services> services, Sessions& sessions, Starter& starter)
      : services_(std::move(services)), sessions_(sessions), starter_(starter) {}

  // A call from its Hello to its end.
  asio::awaitable<void> serve(std::shared_ptr<peer::Connection> connection, transfer::Hello hello);
  // Every call ends, and no other begins. Sessions go on.
  void stop();

 private:
  using CallPtr = std::shared_ptr<SessionlessCall>;

  Status check_room(const std::string& peer) const;
  // `known`: whoever ordered it was told of it before.
  asio::awaitable<Status> answer(CallPtr call, std::string id, bool known);
  void note_refused(const SessionlessCall& call, const std::string& id, const Error& why);
  asio::awaitable<Result<transfer::Granted>> believe(CallPtr call, std::string id,
                                                     transfer::SignedGrant grant);
  // The session of this order, which may have been begun before.
  asio::awaitable<Status> take(CallPtr call, std::string id, bool known, transfer::Order order);
  asio::awaitable<Status> begin(std::string id, transfer::Order order, transfer::Granted granted);
  asio::awaitable<Result<std::string>> name_of(std::string party) const;
  asio::awaitable<Status> tell(CallPtr call, std::string id);
  asio::awaitable<void> hear(CallPtr call, std::string id, transfer::OrderWish wish);
  asio::awaitable<Result<transfer::View>> find(std::string id, std::string issuer) const;

  const std::shared_ptr<runtime::Services> services_;
  Sessions& sessions_;
  Starter& starter_;
  std::set<CallPtr> calls_;
  std::set<std::string> beginning_;  // ids of sessions whose sources are looked for
  bool stopped_ = false;
};

}  // namespace sluice::node
