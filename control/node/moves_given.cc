// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include "control/audit/lines.h"
#include "control/grant/grant.h"
#include "control/identity/sha256.h"
#include "control/node/moves_parts.h"
#include "control/runtime/export_key.h"
#include "control/runtime/standing.h"
#include "dataplane/base/log.h"

namespace sluice::node {
namespace {

constexpr int64_t kAnswerWithinNs = 30LL * 86400 * grant::kSecondNs;

// Only what this node began for its own operator, with one peer, is its to give away.
Status may_go(const transfer::Job& job, size_t legs) {
  const std::string id = job.id.substr(0, 8);
  if (!job.initiator)
    return cannot_move(
        fmt::format("session {} was begun by the other node: only that one can give it away", id));
  if (!job.began)
    return cannot_move(
        fmt::format("session {} has not begun to move data: cancel it, and begin it at the other "
                    "node",
                    id));
  if (job.granted || !job.request)
    return cannot_move(
        fmt::format("session {} was ordered by another node: order it anew, of another source", id));
  if (legs != 1)
    return cannot_move(
        fmt::format("session {} has several sources: each would have to be told; begin it at the "
                    "other node",
                    id));
  if (job.request->user || job.request->local_files)
    return cannot_move(
        fmt::format("session {} is a user's, or of files outside the exports: only who began it can "
                    "open them",
                    id));
  if (job.complete()) return cannot_move(fmt::format("session {} has ended already", id));
  return {};
}

}  // namespace

// Paused, as by an operator: the peer hears so, and closes its files as well.
asio::awaitable<Status> Moves::bring_to_rest(std::string id) {
  const std::shared_ptr<bool> alive = alive_;
  const auto until = std::chrono::steady_clock::now() + kRestsWithin;
  asio::steady_timer timer(services_->io);
  while (std::chrono::steady_clock::now() < until) {
    const Sessions::Task task = sessions_.active(id);
    if (!task) co_return cannot_move(fmt::format("session {} has ended already", id));
    if (const Status may = may_go(task->transfer().job(), task->transfer().legs()); !may) co_return may;
    if (!task->transfer().pausing()) {
      const Result<transfer::View> paused = co_await sessions_.pause(id);
      if (!*alive) co_return stops();
      if (!paused) co_return paused.error();
      continue;
    }
    if (task->transfer().at_rest()) co_return co_await task->journal_settled();
    timer.expires_after(kLookAgain);
    co_await timer.async_wait(asio::use_awaitable);
    if (!*alive || sessions_.stopping()) co_return stops();
  }
  co_return Error{
      ErrorCode::kStalled,
      fmt::format("session {} has not come to rest within {} s: it is paused; 'sluice session show' says "
                  "what it waits for; export it then",
                  id.substr(0, 8), kRestsWithin.count())};
}

asio::awaitable<Result<std::string>> Moves::give(std::string id, std::string to, uint32_t within_s) {
  const std::shared_ptr<bool> alive = alive_;
  if (within_s == 0) within_s = kWithinS;
  if (static_cast<int64_t>(within_s) * grant::kSecondNs > grant::kEndWithinNs)
    co_return cannot_move(fmt::format("within {} s: {} days are possible at most", within_s,
                                      grant::kEndWithinNs / grant::kSecondNs / 86400));
  const Result<transfer::View> view = sessions_.find(id);
  if (!view) co_return view.error();
  if (not_here(*view))
    co_return cannot_move(
        fmt::format("session {} is between {} and {}: such a session does not move; order it anew, of "
                    "another source",
                    view->id.substr(0, 8), view->asker.source_node, view->peer));
  id = view->id;
  if (busy(id)) co_return cannot_move(fmt::format("session {} is being moved already", id.substr(0, 8)));
  if (const Sessions::Task task = sessions_.active(id)) {
    // First what can be known without touching it.
    if (const Status may = may_go(task->transfer().job(), task->transfer().legs()); !may)
      co_return may.error();
    const auto& moved = task->transfer().job().moved;
    if (moved && task->transfer().view(async::monotonic_ns()).summary.attempts == 0)
      co_return cannot_move(
          fmt::format("session {} came here from {}, and its peer does not know yet: let it move "
                      "data first, or withdraw it there",
                      id.substr(0, 8), moved->from.empty() ? "this node" : moved->from));
    const Status known = co_await check_target(task->transfer().peer(), to);
    if (!*alive) co_return stops();
    if (!known) co_return known.error();
    const Busy moving(*this, id);
    const Status rests = co_await bring_to_rest(id);
    if (!*alive) co_return stops();
    if (!rests) co_return rests.error();
    const Sessions::Task at_rest = sessions_.active(id);
    if (!at_rest) co_return cannot_move(fmt::format("session {} has ended already", id));
    transfer::Event how = transfer::Detach{};
    const Status gone = co_await let_go(at_rest, std::move(how));
    if (!*alive) co_return stops();
    if (!gone) co_return gone.error();
    Result<transfer::Saved> rows = co_await saved(id);
    if (!*alive) co_return stops();
    if (!rows) co_return rows.error();  // the next start finds it, paused
    Result<std::string> bundle = co_await give_now(*rows, to, within_s);
    if (!*alive) co_return stops();
    if (!bundle) (void)go_on(*rows);
    co_return bundle;
  }
  const Busy moving(*this, id);
  Result<transfer::Saved> rows = co_await saved(id);
  if (!*alive) co_return stops();
  if (!rows) co_return rows.error();
  if (!given_away(rows->record)) co_return cannot_move(fmt::format("session {} has ended already", id));
  co_return co_await give_now(std::move(*rows), to, within_s);
}

// Does this node know whom it is to go to?
asio::awaitable<Status> Moves::check_target(std::string peer, std::string to) {
  if (to == peer)
    co_return cannot_move(fmt::format("{} is the other end of this session: name a third node", to));
  const std::shared_ptr<runtime::Services> services = services_;
  const Result<identity::Standing> standing = co_await runtime::standing_now(services);
  if (!standing) co_return standing.error();
  const Result<identity::Peer> target = standing->trust->find(to);
  co_return target ? Status() : Status(target.error());
}

// The rows are there, and nothing of the session runs. What was signed once is signed once: else two nodes
// could be told to go on with it.
asio::awaitable<Result<std::string>> Moves::give_now(transfer::Saved saved, std::string to,
                                                     uint32_t within_s) {
  const std::shared_ptr<bool> alive = alive_;
  const std::shared_ptr<runtime::Services> services = services_;
  const bool again = given_away(saved.record);
  const std::string id = saved.record.id;
  if (again && saved.record.moved->to != to)
    co_return cannot_move(fmt::format("session {} has gone to {}: withdraw it first (--withdraw)",
                                      id.substr(0, 8), saved.record.moved->to));
  journal::MovedRows rows{.saved = saved, .exports = places_of(services->node)};
  journal::make_portable(&rows.saved);
  journal::MovedSession bundle{.move = {}, .content = journal::encode(rows)};
  if (bundle.content.size() > journal::kBundleBytesMax / 2)
    co_return cannot_move(fmt::format("session {} has {} MiB of rows: at most {} can move; let it end here",
                                      id.substr(0, 8), bundle.content.size() >> 20,
                                      journal::kBundleBytesMax >> 21));
  if (again) {
    const Result<grant::SignedBy> signed_before = grant::read(saved.record.moved->move);
    if (!signed_before) co_return signed_before.error();
    if (signed_before->move.content_sha256 != identity::sha256_of(bundle.content))
      co_return cannot_move(
          fmt::format("session {} was exported by another version, or under other exports: withdraw "
                      "it (--withdraw), and export it again",
                      id.substr(0, 8)));
    bundle.move = saved.record.moved->move;
    co_return journal::encode(bundle);
  }
  const Result<identity::Standing> standing = co_await runtime::standing_now(services);
  if (!*alive) co_return stops();
  if (!standing) co_return standing.error();
  const Result<identity::Peer> target = standing->trust->find(to);
  if (!target) co_return target.error();
  const Result<identity::Peer> peer = standing->trust->find(saved.record.legs.front().peer);
  if (!peer) co_return peer.error();
  const uint64_t epoch = (saved.record.moved ? saved.record.moved->epoch : 0) + 1;
  const int64_t now_unix_ns = async::unix_ns();
  const grant::Move move{.session = id,
                         .from = standing->self->fingerprint,
                         .to = grant::party_of(*target),
                         .peer = grant::party_of(*peer),
                         .epoch = epoch,
                         .not_before_unix_ns = now_unix_ns,
                         .end_by_unix_ns = now_unix_ns + static_cast<int64_t>(within_s) * grant::kSecondNs,
                         .content_sha256 = identity::sha256_of(bundle.content)};
  Result<transfer::SignedMove> made = grant::sign(*standing->self, move);
  if (!made) co_return made.error();
  bundle.move = std::move(*made);
  transfer::Record& record = saved.record;
  record.state = transfer::RecordState::kFailed;
  record.error =
      Error{ErrorCode::kMoved,
            fmt::format("the session goes on at node {}: 'sluice session import' there, with the file that "
                        "'sluice session export' writes here",
                        to)};
  record.moved = transfer::Moved{.move = bundle.move, .from = "", .to = to, .epoch = epoch};
  auto write = [services, record] {
    return services->journal->write(record.id, {.record = record}, transfer::Durability::kPower);
  };
  const Status written = co_await services->pool.wait_for(std::move(write));
  if (!*alive) co_return stops();
  if (!written) co_return written.error();
  sessions_.note(audit::session_moved(id, "", to, epoch, async::unix_ns()));
  log::of(log::kSession)->info("session {} goes to {}", id.substr(0, 8), to);
  sessions_.ended_elsewhere(transfer::view_of(saved));
  co_return journal::encode(bundle);
}

asio::awaitable<Result<transfer::View>> Moves::withdraw(std::string id) {
  const std::shared_ptr<bool> alive = alive_;
  const std::shared_ptr<runtime::Services> services = services_;
  const Result<transfer::View> view = sessions_.find(id);
  if (!view) co_return view.error();
  id = view->id;
  if (busy(id)) co_return cannot_move(fmt::format("session {} is being moved just now", id.substr(0, 8)));
  if (sessions_.active(id)) co_return cannot_move(fmt::format("session {} is here", id.substr(0, 8)));
  const Busy moving(*this, id);
  Result<transfer::Saved> rows = co_await saved(id);
  if (!*alive) co_return stops();
  if (!rows) co_return rows.error();
  transfer::Record& record = rows->record;
  if (!given_away(record))
    co_return cannot_move(fmt::format("session {} is not one that was exported here", id.substr(0, 8)));
  const Result<identity::Standing> standing = co_await runtime::standing_now(services);
  if (!*alive) co_return stops();
  if (!standing) co_return standing.error();
  const Result<identity::Peer> peer = standing->trust->find(record.legs.front().peer);
  if (!peer) co_return peer.error();
  const int64_t now_unix_ns = async::unix_ns();
  const uint64_t epoch = record.moved->epoch + 1;
  const grant::Move move{.session = id,
                         .from = standing->self->fingerprint,
                         .to = standing->self->fingerprint,
                         .peer = grant::party_of(*peer),
                         .epoch = epoch,
                         .not_before_unix_ns = now_unix_ns,
                         .end_by_unix_ns = now_unix_ns + kAnswerWithinNs,
                         .content_sha256 = {}};
  Result<transfer::SignedMove> made = grant::sign(*standing->self, move);
  if (!made) co_return made.error();
  record.state = transfer::RecordState::kPaused;
  record.error.reset();
  record.moved = transfer::Moved{.move = std::move(*made), .from = "", .to = "", .epoch = epoch};
  record.summary.attempts = 0;
  auto write = [services, record] {
    return services->journal->write(record.id, {.record = record}, transfer::Durability::kPower);
  };
  const Status written = co_await services->pool.wait_for(std::move(write));
  if (!*alive) co_return stops();
  if (!written) co_return written.error();
  if (sessions_.stopping()) co_return stops();
  sessions_.note(audit::session_moved(id, "", "", epoch, async::unix_ns()));
  co_return go_on(*rows)->view();
}

}  // namespace sluice::node
