// What all transfers of a node share. Lives as long as the last of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <asio/io_context.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "control/async/keyed_pool.h"
#include "control/async/pool.h"
#include "control/async/turns.h"
#include "control/attach/client.h"
#include "control/audit/audit_log.h"
#include "control/exports/exports.h"
#include "control/gather/packs.h"
#include "control/identity/standing_files.h"
#include "control/journal/journal.h"
#include "control/peer/frame_memory.h"
#include "control/runtime/places.h"
#include "control/runtime/quotas.h"
#include "control/runtime/session_logs.h"
#include "control/users/callers.h"
#include "control/users/client.h"
#include "control/words/terms.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/open_files.h"

namespace sluice::runtime {

transfer::ThisNode this_node(const config::Node& node);

// Of each export. A list that takes long holds up no sync, and no other session.
inline constexpr uint32_t kFileThreads = 4;
inline constexpr uint32_t kListThreads = 4;
inline constexpr uint32_t kNamesThreads = 4;   // what peers ask about names
inline constexpr uint32_t kVerifyThreads = 2;  // of `sluice verify`
inline constexpr uint64_t kHeldUpNs =
    5'000'000'000;                           // a file system that has let a call wait so long is named
inline constexpr uint32_t kUserThreads = 1;  // of each user's files; its trees have what an export has

// The descriptors that this daemon needs whatever its sessions do.
inline constexpr uint64_t kOpenFilesOfNode = 112;

// Of a session, so many of its files are open that are not at the dataplane. Those behind them are opened
// when their turn comes. Each takes two descriptors, with its directory; all sessions that may run have room.
inline size_t files_kept_open(uint64_t open_files_limit, const config::Node& node) {
  const uint64_t taken = kOpenFilesOfNode + node.exports.size();
  const uint64_t left = open_files_limit - std::min(open_files_limit, taken);
  return std::max<uint64_t>(1, left / 2 / std::max<uint32_t>(1, node.sessions_max));
}

struct Services {
  Services(asio::io_context& context, config::Node n, identity::Identity i, exports::Exports e,
           std::unique_ptr<journal::Journal> j)
      : io(context),
        node(std::move(n)),
        settings(this_node(node)),
        exports(std::move(e)),
        journal(std::move(j)),
        board(std::make_shared<attach::BoardClient>(context, node, turns)),
        self(std::make_shared<const identity::Identity>(std::move(i))) {}

  // The exports that a session with `peer` may use for this user; without one, for an operator or peer. With
  // `local_files`: files outside the exports.
  exports::Exports exports_for(const std::string& peer, const std::optional<transfer::User>& user,
                               const std::optional<transfer::LocalFiles>& local_files) const {
    if (local_files)
      return exports.anywhere().for_peer(peer).for_user(callers.of(local_files->uid, local_files->token));
    exports::Exports open = exports.for_peer(peer);
    return user ? open.for_user(users.of(user->uid)) : open;
  }

  // The part of a pool in which blocking work runs: each export has threads of its own in each pool, each
  // user one for all. So neither a file system that hangs nor a user's own process holds up anybody else.
  // `key`: of the export that the work is about (export_key.h); `owner`: a session.
  async::KeyedPart part(async::KeyedPool& of, const exports::Exports& open, std::string key,
                        std::string owner = "") {
    if (open.of_user() && (&of == &files_pool || open.trees_of_user() == nullptr))
      return part_of_user(open.user_key(), std::move(owner));
    if (open.of_user()) key = open.user_key();
    return {.pool = of, .key = {.name = std::move(key), .owner = std::move(owner), .most = 0}};
  }
  async::KeyedPart part_of_user(std::string key, std::string owner = "") {
    return {.pool = files_pool,
            .key = {.name = std::move(key), .owner = std::move(owner), .most = kUserThreads}};
  }

  // For how long a call into a file system has held up this session's work.
  uint64_t held_up_ns(const std::string& session, uint64_t now_ns) const {
    uint64_t longest_ns = 0;
    for (const async::KeyedPool* const each : {&files_pool, &packs_pool, &lists_pool})
      longest_ns = std::max(longest_ns, each->waited_ns(session, now_ns));
    return longest_ns;
  }

  asio::io_context& io;
  const config::Node node;
  const transfer::ThisNode settings;
  const size_t kept_open = files_kept_open(base::open_files_limit(), node);
  const exports::Exports exports;                         // blocking; any thread
  const users::Client users{node.users_helper_socket()};  // blocking; any thread
  users::Callers callers;                                 // blocking; any thread
  const audit::AuditLog audit{node.audit_log()};          // blocking; any thread
  const std::unique_ptr<journal::Journal> journal;        // blocking; any thread
  identity::StandingFiles standing{node};                 // blocking; any thread
  const std::shared_ptr<peer::FrameMemory> frames = std::make_shared<peer::FrameMemory>();
  const std::shared_ptr<async::TurnMeter> turns = std::make_shared<async::TurnMeter>();
  const std::shared_ptr<attach::BoardClient> board;
  Quotas quotas{node.name};
  SessionLogs logs;
  Places places{io, node.sessions_max, node.sessions_per_peer};
  async::Pool pool{io};  // of the node's own files: its journal, its logs, whom it trusts
  async::KeyedPool files_pool{io, kFileThreads};
  async::KeyedPool packs_pool{io, gather::pack_threads(std::thread::hardware_concurrency())};
  async::KeyedPool lists_pool{io, kListThreads};
  async::KeyedPool names_pool{io, kNamesThreads};
  async::KeyedPool verify_pool{io, kVerifyThreads};
  // On the loop, as of the last look (standing.h).
  std::shared_ptr<const identity::Identity> self;
  std::string trust_problems;                     // of files that say whom it trusts, as they were told last
  std::map<std::string, identity::Offer> offers;  // by the name of the pinned peer
};

}  // namespace sluice::runtime
