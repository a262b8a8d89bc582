// SPDX-License-Identifier: Apache-2.0
#include "control/node/moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include "control/audit/lines.h"
#include "control/grant/grant.h"
#include "control/node/moves_parts.h"
#include "control/runtime/export_key.h"
#include "control/runtime/standing.h"
#include "dataplane/base/log.h"

namespace sluice::node {

Moves::Moves(std::shared_ptr<runtime::Services> services, Sessions& sessions)
    : services_(std::move(services)), sessions_(sessions) {}

Moves::~Moves() { *alive_ = false; }

asio::awaitable<Result<transfer::Saved>> Moves::saved(std::string id) {
  const std::shared_ptr<runtime::Services> services = services_;
  auto work = [services, id]() -> Result<transfer::Saved> {
    Result<std::optional<transfer::Saved>> found = services->journal->saved(id, true);
    if (!found) return found.error();
    if (found->has_value()) return std::move(**found);
    return Error{ErrorCode::kUsage, fmt::format("session {}: the journal knows nothing of it", id)};
  };
  co_return co_await services->pool.wait_for(std::move(work));
}

Sessions::Task Moves::go_on(const transfer::Saved& saved) {
  sessions_.forget_ended(saved.record.id);
  if (saved.record.request)
    services_->logs.begin(saved.record.id,
                          static_cast<board::LogLevel>(saved.record.request->options.log_level));
  return sessions_.add(std::make_unique<transfer::Transfer>(services_->settings, saved, std::nullopt,
                                                            async::monotonic_ns(), async::unix_ns()),
                       {});
}

// Until nothing of it runs. As when this control stops, its rows and unfinished files stay.
asio::awaitable<Status> Moves::let_go(Sessions::Task task, transfer::Event how) {
  const std::shared_ptr<bool> alive = alive_;
  const std::string id = task->transfer().id();
  task->post(std::move(how));
  const auto until = std::chrono::steady_clock::now() + kRestsWithin;
  asio::steady_timer timer(services_->io);
  while (!task->over()) {
    if (std::chrono::steady_clock::now() >= until)
      co_return Error{ErrorCode::kStalled,
                      fmt::format("session {} does not let go of its files", id.substr(0, 8))};
    timer.expires_after(kLookAgain);
    co_await timer.async_wait(asio::use_awaitable);
    if (!*alive || sessions_.stopping()) co_return stops();
  }
  const Status written = co_await task->journal_settled();
  services_->places.leave(id);
  services_->quotas.leave(id);
  co_return written;
}

// ---- the peer of such a session --------------------------------------------------------------------

Result<Moves::Shown> Moves::shown(const identity::Peer& caller, const transfer::Hello& hello,
                                  const std::optional<transfer::Saved>& saved,
                                  const identity::Standing& now) {
  const std::string& id = hello.session_id;
  const Sessions::Task task = sessions_.active(id);
  if (!hello.move || hello.inquires || hello.ended || (!task && !saved)) return Shown::kGoOn;
  const bool began_here = task ? task->transfer().initiator() : saved->record.initiator;
  if (began_here) return Shown::kGoOn;
  const auto& moved = task ? task->transfer().job().moved : saved->record.moved;
  const std::string owner = task ? task->transfer().peer() : saved->record.legs.front().peer;
  if (moved && moved->move == *hello.move && owner == caller.name) return Shown::kGoOn;
  const Result<grant::MoveShown> shown = grant::check_shown(*hello.move, id, caller, now, async::unix_ns());
  if (!shown) return shown.error();
  if (shown->from.name != owner || shown->move.epoch <= (moved ? moved->epoch : 0)) {
    if (owner == caller.name) return Shown::kGoOn;  // an old one, of the node that has it anyway
    return Error{ErrorCode::kMoved,
                 "the session has gone to another node since: only that one goes on with it"};
  }
  if (task ? task->transfer().job().granted.has_value() : saved->record.granted.has_value())
    return Error{ErrorCode::kPeerUntrusted,
                 "the session was ordered by a third node: it cannot move; order it anew"};
  if (!task && transfer::has_ended(saved->record.state)) return Shown::kEnded;
  if (const Status room = sessions_.check_room_for(caller.name); !room) return room.error();
  const exports::Exports open = services_->exports_for(caller.name, {}, {});
  if (!task) return Shown::kLater;
  for (size_t i = 0; saved && i < saved->files.size(); ++i) {
    const catalog::File& file = saved->files[i];
    if (file.path.empty() || open.check_within(file.path)) continue;
    return Error{
        ErrorCode::kPeerUntrusted,
        fmt::format("export {} is not open to {}, which is to go on with the session: add it to the export's "
                    "peers, restart sluice-control there, and continue the session",
                    services_->exports.export_of(file.path), caller.name)};
  }
  transfer::Moved next{.move = *hello.move, .from = owner, .to = caller.name, .epoch = shown->move.epoch};
  busy_.insert(id);  // from now on, not when the coroutine has its turn
  asio::co_spawn(services_->io, hand_over(std::move(next), task), asio::detached);
  return Shown::kLater;
}

// Whoever had it is told, if its stream is there, and its flows end, before anybody else may write.
asio::awaitable<void> Moves::hand_over(transfer::Moved moved, Sessions::Task task) {
  const std::shared_ptr<bool> alive = alive_;
  const std::shared_ptr<runtime::Services> services = services_;
  const std::string id = task->transfer().id();
  const Busy moving(*this, id);
  const Error reason{ErrorCode::kMoved, fmt::format("the session has gone to node {}", moved.to)};
  transfer::Event how = transfer::HandOver{reason};
  const Status gone = co_await let_go(task, std::move(how));
  if (!*alive || sessions_.stopping()) co_return;
  if (task->transfer().ended()) co_return;  // just before
  if (!gone) co_return log::of(log::kSession)->error("session {}: {}", id.substr(0, 8), gone.error().message);
  Result<transfer::Saved> rows = co_await saved(id);
  if (!*alive || sessions_.stopping()) co_return;
  // Nothing had been agreed upon: whoever calls begins it.
  if (!rows) co_return log::of(log::kSession)->info("{}", rows.error().message);
  const transfer::Saved before = *rows;
  transfer::Record& record = rows->record;
  record.legs.front().peer = moved.to;
  record.legs.front().flows.clear();
  record.moved = moved;
  auto write = [services, record] {
    return services->journal->write(record.id, {.record = record}, transfer::Durability::kPower);
  };
  const Status written = co_await services->pool.wait_for(std::move(write));
  if (!*alive || sessions_.stopping()) co_return;
  if (!written) {
    log::of(log::kSession)->error("session {}: {}", id.substr(0, 8), written.error().message);
    (void)go_on(before);
    co_return;
  }
  sessions_.note(audit::session_moved(id, moved.from, moved.to, moved.epoch, async::unix_ns()));
  log::of(log::kSession)
      ->info("session {} goes on with {} instead of {}", id.substr(0, 8), moved.to, moved.from);
  (void)go_on(*rows);
}

}  // namespace sluice::node
