// The receiving end's way to durability: group commit, failed syncs, digests, the final name.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "control/session/destination.h"

namespace sluice::control {
namespace {

// A smaller file that was never synced goes straight to commit, whose fsync makes it durable.
constexpr uint64_t kDirectCommitBytes = 4U << 20;

}  // namespace

void Destination::start_due_syncs(uint64_t now_ns) {
  const config::Node& node = session_.context()->node;
  const bool lag = unsynced_bytes_ >= node.sync_lag_bytes;
  for (const uint32_t index : active_) {
    const Object& object = objects_[index];
    if (object.unsynced.empty() || object.finishing) continue;
    if (lag || now_ns - object.unsynced_since_ns >= node.sync_lag_ms * 1'000'000ULL) start_sync(index);
  }
}

void Destination::start_sync(uint32_t index) {
  if (objects_[index].syncing) return;
  objects_[index].syncing = true;
  session_.spawn(sync(index));
}

// Takes what is written, syncs, reports it durable. The extents were written before the sync begins.
asio::awaitable<void> Destination::sync(uint32_t index) {
  Object& object = objects_[index];
  const Unsynced taken = std::exchange(object.unsynced, {});
  const uint64_t bytes = std::exchange(object.unsynced_bytes, 0);
  ++blocking_;
  auto work = [file = object.file] { return file->sync(); };
  const Status status = co_await in_pool(session_.context(), std::move(work));
  --blocking_;
  unsynced_bytes_ -= bytes;
  object.syncing = false;
  ++steps_;
  if (session_.failed()) co_return;
  if (!status) {
    sync_failed(index, taken, status);
    co_return;
  }
  std::vector<uint64_t> extents;
  for (const auto& [extent, crc] : taken) extents.push_back(extent);
  peer::PeerMessage message;
  message.mutable_partition_done()->set_object(index);
  for (const recovery::Range& range : recovery::join_extents(object.written, std::move(extents))) {
    peer::ByteRange* added = message.mutable_partition_done()->add_ranges();
    added->set_offset(range.offset);
    added->set_length(range.length);
  }
  session_.send(message);
  finish_if_complete(index);
}

// Nothing since the last good sync is certain: these bytes are asked for once more.
void Destination::sync_failed(uint32_t index, const Unsynced& taken, const Status& status) {
  Object& object = objects_[index];
  if (object.sync_failed) return session_.fail(status.error());
  object.sync_failed = true;
  spdlog::warn("{}: {}; asking for {} extent(s) again", session_.log_name(), status.error().message,
               taken.size());
  std::vector<uint64_t> extents;
  for (const auto& [extent, crc] : taken) {
    extents.push_back(extent);
    if (!object.written.clear(extent)) continue;
    fold(object, extent, crc);
    bytes_written_ -= object.written.extent_length(extent);
  }
  const std::vector<recovery::Range> ranges = recovery::join_extents(object.written, std::move(extents));
  for (const recovery::Range& range : ranges) {
    session_.command(board::CommandKind::kForgetExtents, object.planner.lane_of(range.offset), index, range);
    // If the bytes of this NEED are lost, the planner asks for them again.
    object.planner.sent(object.written, object.planner.lane_of(range.offset), range, now_ns_);
  }
  send_need(index, ranges);
}

void Destination::finish_if_complete(uint32_t index) {
  Object& object = objects_[index];
  if (!object.written.complete() || !object.source_digest || object.syncing || object.finishing) return;
  object.finishing = true;
  session_.spawn(finish(index));
}

asio::awaitable<void> Destination::finish(uint32_t index) {
  Object& object = objects_[index];
  const wire::CrcKind kind = session_.agreement().crc_kind;
  if (object.source_digest->size() != object.meta.size() || object.source_digest->digest() != object.digest) {
    session_.fail({ErrorCode::kIntegrity,
                   fmt::format("{}: digest {} was sent, {} was received: nothing was stored, send it again",
                               object.final_path, digest_hex(kind, object.source_digest->digest()),
                               digest_hex(kind, object.digest))});
    co_return;
  }
  if (object.file && !object.unsynced.empty() && object.meta.size() > kDirectCommitBytes) {
    object.syncing = true;
    co_await sync(index);  // finishing is set: it does not come back here by itself
    if (session_.failed()) co_return;
    if (!object.written.complete()) {
      object.finishing = false;
      co_return;
    }
  }
  const Status status = co_await make_final(index);
  if (!status) session_.fail(status.error());
}

asio::awaitable<Status> Destination::make_final(uint32_t index) {
  Object& object = objects_[index];
  if (object.file) {
    ++blocking_;
    auto work = [file = object.file] { return file->commit(); };
    const Status status = co_await in_pool(session_.context(), std::move(work));
    --blocking_;
    if (!status) co_return status;
    unsynced_bytes_ -= std::exchange(object.unsynced_bytes, 0);
    object.unsynced.clear();
    object.file.reset();
  }
  object.done = true;
  std::erase(active_, index);
  ++done_;
  ++steps_;
  // Its number may be used again before the source hears that it is done.
  const uint32_t next = index + board::kOpenObjectsMax;
  if (next < objects_.size() && !session_.failed()) {
    if (object.open) co_await session_.context()->board->close_object(session_.slot(), index);
    object.open = false;
    if (session_.failed()) co_return Status();
    const Status status = co_await open_object(next);
    if (!status) co_return status;
  }
  if (session_.failed()) co_return Status();
  peer::PeerMessage message;
  message.mutable_file_done()->set_object(index);
  message.mutable_file_done()->set_digest(object.digest);
  session_.send(message);
  session_.changed().notify();
  co_return Status();
}

}  // namespace sluice::control
