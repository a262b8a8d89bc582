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
#include "control/node/begin.h"
#include "control/node/moves_parts.h"
#include "control/runtime/export_key.h"
#include "control/runtime/standing.h"
#include "dataplane/base/log.h"
#include "dataplane/base/text.h"

namespace sluice::node {
namespace {

// It went elsewhere, and comes by a later move. What a node has taken back in vain counts for nothing: nobody
// but itself has heard of it.
bool may_replace(const transfer::Record& record, uint64_t epoch) {
  if (!transfer::has_ended(record.state) || !record.error || record.error->code != ErrorCode::kMoved)
    return false;
  const bool in_vain = record.moved && record.moved->from.empty() && record.moved->to.empty();
  return !record.moved || in_vain || record.moved->epoch < epoch;
}

// Another host may see the same file system under another device number. All else of what tells one file from
// another has to be the same, and what a file holds is read again.
void find_devices(const exports::Exports& exports, std::vector<catalog::File>* files) {
  for (catalog::File& file : *files) {
    if (file.path.empty() || file.identity.inode == 0) continue;
    if (const auto device = exports.device_of(file.path)) file.identity.device = *device;
  }
}

}  // namespace

Status Moves::place(journal::MovedRows* rows) const {
  if (const Status placed = journal::place(&rows->saved, rows->exports, places_of(services_->node)); !placed)
    return placed;
  const bool writes = rows->saved.record.role == transfer::Role::kDestination;
  const exports::Exports open = services_->exports_for(rows->saved.record.legs.front().peer, {}, {});
  for (const catalog::File& file : rows->saved.files) {
    if (file.path.empty()) continue;
    if (const Status status = open.check_within(file.path); !status) return status;
    const std::string name = open.export_of(file.path);
    const auto here = std::ranges::find(services_->node.exports, name, &config::Export::name);
    if (here == services_->node.exports.end() || (writes ? here->write : here->read)) continue;
    return Error{
        ErrorCode::kOutsideExports,
        fmt::format("export {} of this node lacks the right '{}', which this session needs: set mode in "
                    "node.toml",
                    name, writes ? 'w' : 'r')};
  }
  return {};
}

// Who gives it away, what of, and that the rows are those that were signed.
Result<Moves::Arrival> Moves::read_bundle(const std::string& bytes, const identity::Standing& here) {
  Result<journal::MovedSession> bundle = journal::decode_bundle(bytes);
  if (!bundle) return bundle.error();
  Result<grant::MoveShown> shown = grant::check_taken(bundle->move, here, async::unix_ns());
  if (!shown) return shown.error();
  if (shown->move.content_sha256 != identity::sha256_of(bundle->content))
    return Error{
        ErrorCode::kIntegrity,
        "the file is damaged: its rows are not those that the node signed; export the session again"};
  Result<journal::MovedRows> rows = journal::decode_rows(bundle->content);
  if (!rows) return rows.error();
  transfer::Record& record = rows->saved.record;
  if (record.id != shown->move.session)
    return Error{ErrorCode::kIntegrity, "the file has another session than its move: export it again"};
  Result<std::string> peer = grant::find_party(shown->move.peer, *here.trust);
  if (!peer)
    return Error{
        ErrorCode::kPeerUntrusted,
        fmt::format("this node does not know the other end of the session, which {} calls {}: exchange "
                    "identities of both with 'sluice node trust'",
                    shown->from.name, base::printable(record.legs.front().peer))};
  record.legs.front().peer = std::move(*peer);
  return Arrival{.move = std::move(bundle->move),
                 .from = shown->from.name,
                 .epoch = shown->move.epoch,
                 .rows = std::move(*rows)};
}

// Is there room for it, and has it not gone further since?
asio::awaitable<Status> Moves::check_new(std::string id, std::string peer, uint64_t epoch) {
  const std::shared_ptr<runtime::Services> services = services_;
  const std::shared_ptr<bool> alive = alive_;
  auto known_before = [services, id] { return services->journal->session(id); };
  const Result<std::optional<transfer::Record>> before =
      co_await services->pool.wait_for(std::move(known_before));
  if (!before) co_return before.error();
  if (before->has_value() && !may_replace(**before, epoch))
    co_return cannot_move(fmt::format(
        "session {} has ended here, or has gone from here since: this file is an old one", id.substr(0, 8)));
  auto known = [services, peer] { return check_peer(services->node, peer); };
  const Result<identity::Peer> callable = co_await services->pool.wait_for(std::move(known));
  if (!callable) co_return callable.error();
  co_return *alive ? sessions_.check_room() : Status(stops());
}

asio::awaitable<Status> Moves::find_files(transfer::Saved* saved) {
  const std::shared_ptr<runtime::Services> services = services_;
  std::vector<std::string> paths;
  for (const catalog::File& file : saved->files)
    if (!file.path.empty()) paths.push_back(file.path);
  const auto open = std::make_shared<const exports::Exports>(
      services->exports_for(saved->record.legs.front().peer, {}, {}));
  const async::KeyedPart part =
      services->part(services->files_pool, *open, runtime::export_key(*open, paths));
  auto files = std::make_shared<std::vector<catalog::File>>(saved->files);
  auto look = [open, files] {
    find_devices(*open, files.get());
    return 0;
  };
  (void)co_await part.wait_for(std::move(look));
  saved->files = std::move(*files);
  // Another node's word for what is on the disk is not taken without a look, also where this node's own is.
  if (services->settings.trust_journal)
    for (std::vector<recovery::Block>& blocks : saved->blocks) blocks.clear();
  co_return Status();
}

asio::awaitable<Status> Moves::write_all(const transfer::Saved& saved) {
  const std::shared_ptr<runtime::Services> services = services_;
  transfer::Batch batch{.record = saved.record, .drop_blocks = true, .drop_files = true};
  for (uint32_t i = 0; i < saved.files.size(); ++i)
    batch.files.push_back({.file = catalog::FileId(i), .record = saved.files[i]});
  for (ObjectId object; object < saved.blocks.end_id(); ++object)
    if (!saved.blocks[object].empty())
      batch.blocks.push_back({.object = object, .blocks = saved.blocks[object]});
  auto write = [services, id = saved.record.id, batch = std::move(batch)] {
    return services->journal->write(id, batch, transfer::Durability::kPower);
  };
  co_return co_await services->pool.wait_for(std::move(write));
}

asio::awaitable<Result<transfer::View>> Moves::take(std::string bytes) {
  const std::shared_ptr<bool> alive = alive_;
  const Result<identity::Standing> standing = co_await runtime::standing_now(services_);
  if (!*alive) co_return stops();
  if (!standing) co_return standing.error();
  Result<Arrival> arrival = read_bundle(bytes, *standing);
  if (!arrival) co_return arrival.error();
  transfer::Saved& saved = arrival->rows.saved;
  transfer::Record& record = saved.record;
  const std::string id = record.id;
  if (busy(id)) co_return cannot_move(fmt::format("session {} is being moved already", id.substr(0, 8)));
  const Busy moving(*this, id);
  if (const Sessions::Task task = sessions_.active(id)) {
    const auto& moved = task->transfer().job().moved;
    if (moved && moved->move == arrival->move) co_return task->view();  // said again
    co_return cannot_move(fmt::format("session {} is here already", id.substr(0, 8)));
  }
  const Status fresh = co_await check_new(id, record.legs.front().peer, arrival->epoch);
  if (!*alive) co_return stops();
  if (!fresh) co_return fresh.error();
  if (const Status placed = place(&arrival->rows); !placed) co_return placed.error();
  (void)co_await find_files(&saved);
  if (!*alive) co_return stops();
  if (record.lease) {
    LeaseDesk::Claim claim{.lease = *record.lease, .holder = "", .goes_on = true};
    const Status held = co_await sessions_.leases().claim_and_wait(std::move(claim));
    if (!*alive) co_return stops();
    if (!held) co_return held.error();
  }
  record.state = transfer::RecordState::kActive;
  record.summary.attempts = 0;  // here: until there is one, the peer may not know of the move
  record.moved =
      transfer::Moved{.move = arrival->move, .from = arrival->from, .to = "", .epoch = arrival->epoch};
  const Status written = co_await write_all(saved);
  if (!*alive) co_return stops();
  if (!written) co_return written.error();
  if (sessions_.stopping()) co_return stops();
  sessions_.note(audit::session_moved(id, arrival->from, "", arrival->epoch, async::unix_ns()));
  log::of(log::kSession)
      ->info("session {} with {} comes from {}: going on", id.substr(0, 8), record.legs.front().peer,
             arrival->from);
  co_return go_on(saved)->view();
}

}  // namespace sluice::node
