// What all transfers of a node share. Lives as long as the last of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/io_context.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "control/async/pool.h"
#include "control/async/turns.h"
#include "control/attach/client.h"
#include "control/audit/audit_log.h"
#include "control/exports/exports.h"
#include "control/identity/trust.h"
#include "control/journal/journal.h"
#include "control/peer/frame_memory.h"
#include "control/runtime/packs.h"
#include "control/runtime/places.h"
#include "control/runtime/quotas.h"
#include "control/runtime/session_logs.h"
#include "control/transfer/terms.h"
#include "control/users/client.h"
#include "dataplane/base/config/config.h"

namespace sluice::runtime {

transfer::Settings settings_of(const config::Node& node);

inline constexpr uint32_t kListThreads = 4;   // a list that takes long holds up no sync, and no other session
inline constexpr uint32_t kUserThreads = 1;   // of each user, whose helper takes one call at a time
inline constexpr uint32_t kNamesThreads = 8;  // one for each question that is answered at a time

struct Services {
  Services(asio::io_context& context, config::Node n, identity::Identity i, exports::Exports e,
           std::unique_ptr<journal::Journal> j)
      : io(context),
        node(std::move(n)),
        settings(settings_of(node)),
        exports(std::move(e)),
        journal(std::move(j)),
        board(std::make_shared<control::BoardClient>(context, node, turns)),
        self(std::make_shared<const identity::Identity>(std::move(i))) {}

  // What of the exports a session with `peer` may use that is of this user, or of nobody here.
  exports::Exports exports_for(const std::string& peer, const std::optional<transfer::User>& user) const {
    exports::Exports open = exports.for_peer(peer);
    return user ? open.for_user(users.of(user->uid)) : open;
  }

  // Where what blocks for these runs: a user who holds his own process up, holds up nobody else. On the loop.
  control::Pool& pool_for(const exports::Exports& open) {
    return open.of_user() ? pool_of_user(open.uid()) : pool;
  }
  control::Pool& packs_pool_for(const exports::Exports& open) {
    return open.of_user() ? pool_of_user(open.uid()) : packs_pool;
  }
  control::Pool& lists_pool_for(const exports::Exports& open) {
    return open.of_user() ? pool_of_user(open.uid()) : lists_pool;
  }
  control::Pool& pool_of_user(uint32_t uid) {
    std::unique_ptr<control::Pool>& his = user_pools[uid];
    if (!his) his = std::make_unique<control::Pool>(io, kUserThreads);
    return *his;
  }

  asio::io_context& io;
  const config::Node node;
  const transfer::Settings settings;
  const exports::Exports exports;                         // blocking; any thread
  const users::Client users{node.users_helper_socket()};  // blocking; any thread
  const audit::AuditLog audit{node.audit_log()};          // blocking; any thread
  const std::unique_ptr<journal::Journal> journal;        // blocking; any thread
  const std::shared_ptr<peer::FrameMemory> frames = std::make_shared<peer::FrameMemory>();
  const std::shared_ptr<control::TurnMeter> turns = std::make_shared<control::TurnMeter>();
  const std::shared_ptr<control::BoardClient> board;
  Quotas quotas{node.name};
  SessionLogs logs;
  Places places{io, node.sessions_max, node.sessions_per_peer};
  control::Pool pool{io};
  control::Pool packs_pool{io, pack_threads(std::thread::hardware_concurrency())};
  control::Pool lists_pool{io, kListThreads};
  std::map<uint32_t, std::unique_ptr<control::Pool>> user_pools;  // of each user who ever asked for a session
  // On the loop, as of the last look (standing.h).
  std::shared_ptr<const identity::Identity> self;
  std::string trust_problems;                     // of files that say whom it trusts, as they were told last
  std::map<std::string, identity::Offer> offers;  // by the name of the pinned peer
  control::Pool names_pool{io,
                           kNamesThreads};  // what peers ask about names: may take long, and waits for nobody
};

}  // namespace sluice::runtime
