// Whom a peer's user is here, by the map of users ([control] users_map_file): judged when a session begins,
// and with each call of it.
//
// local_user() and check_orders_of() are pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "control/identity/user_map.h"
#include "control/runtime/services.h"
#include "control/words/terms.h"

namespace sluice::node {

// A call that opens a session, or goes on with one.
struct UserCall {
  std::string peer;
  std::string user;  // as the peer's control says; empty: an operator, or it does not say
  uint32_t share = 0;
  bool goes_on = false;                        // the session is known here
  std::optional<transfer::Mapped> known = {};  // then: whose it is
};

// The name of the user of this host as whom files are opened; nothing: as for the peer itself. `map` null:
// there is none. kPeerUntrusted: the map does not let them in. kIncompatible: the session is somebody else's.
Result<std::optional<std::string>> local_user(const UserCall& call, const identity::UserMap* map);
// May this node's operators order transfers of this one (docs/WIRE.md 2.13)? An order is the issuer's
// operator's, for whom files are opened as ever: so kPeerUntrusted where the map makes them somebody else, or
// denies them.
Status check_orders_of(const std::string& issuer, const identity::UserMap* map);

// Is somebody there who opens files as this user, if there is one, and may this user? kDaemonNotRunning,
// kConfiguration.
asio::awaitable<Status> check_user(std::shared_ptr<runtime::Services> services,
                                   std::optional<transfer::User> user);
// As local_user(), and that this user is one of this host who may.
asio::awaitable<Result<std::optional<transfer::Mapped>>> map_user(
    std::shared_ptr<runtime::Services> services, UserCall call, std::shared_ptr<const identity::UserMap> map);

}  // namespace sluice::node
