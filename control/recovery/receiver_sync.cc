// The receiver's group commit: what is written becomes durable, or is taken back. And the end of a file.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/recovery/receiver.h"

namespace sluice::recovery {

size_t Receiver::begin_sync(ObjectId id) {
  Object& object = objects_[id];
  if (object.sync_under_way || object.finishing || object.done || object.unsynced.empty()) return 0;
  if (object.fence.awaited != 0) return 0;  // it is about to be finished, with a sync
  object.sync_under_way = true;
  object.syncing = std::exchange(object.unsynced, {});
  return object.syncing.size();
}

std::vector<Block> Receiver::sync_succeeded(ObjectId id) {
  Object& object = objects_[id];
  CHECK(object.sync_under_way, "what ends has begun");
  for (const auto& [extent, crc] : object.syncing) object.ledger.add(extent, crc);
  std::vector<Block> blocks = object.ledger.take_changed();
  object.journalling.clear();
  for (const Block& block : blocks) object.journalling.push_back(block.id);
  return blocks;
}

void Receiver::not_journalled(ObjectId id) {
  Object& object = objects_[id];
  CHECK(object.sync_under_way, "what ends has begun");
  for (const BlockId block : object.journalling) object.ledger.mark_changed(block);
  object.unsynced.merge(object.syncing);
  object.syncing.clear();
  object.sync_under_way = false;
}

std::vector<Range> Receiver::journalled(ObjectId id) {
  Object& object = objects_[id];
  CHECK(object.sync_under_way, "what ends has begun");
  std::vector<ExtentId> extents;
  for (const auto& [extent, crc] : std::exchange(object.syncing, {})) {
    DCHECK(object.ledger.map().is_set(extent), "the journal has the rows of what is durable");
    extents.push_back(extent);
    const uint64_t bytes = object.written.range_of(extent).length;
    object.unsynced_bytes -= bytes;
    unsynced_bytes_ -= bytes;
  }
  object.sync_under_way = false;
  finish_if_complete(id);
  return join_extents(object.written, std::move(extents));
}

bool Receiver::sync_failed(ObjectId id) {
  Object& object = objects_[id];
  CHECK(object.sync_under_way || object.finishing, "what ends has begun");
  // What was written while the sync ran is as uncertain: the error may be that of any write before its end.
  object.syncing.merge(object.unsynced);
  object.unsynced.clear();
  std::vector<ExtentId> extents;
  for (const auto& [extent, crc] : std::exchange(object.syncing, {})) {
    // An earlier sync made it durable, and only its row did not come into the journal.
    if (object.ledger.map().is_set(extent)) {
      object.unsynced.emplace(extent, crc);
      continue;
    }
    extents.push_back(extent);
    const uint64_t bytes = object.written.range_of(extent).length;
    object.unsynced_bytes -= bytes;
    unsynced_bytes_ -= bytes;
    bytes_written_ -= bytes;
    object.digest ^= shifted(object, extent, crc);
    object.written.clear(extent);
  }
  object.sync_under_way = object.finishing = false;
  forget_and_need(id, std::move(extents));
  finish_if_complete(id);  // of one whose last sync failed nothing may be missing
  return !std::exchange(object.failed_once, true);
}

// The workers take these extents anew, and the source is asked for them.
void Receiver::forget_and_need(ObjectId id, std::vector<ExtentId> extents) {
  if (extents.empty()) return;
  Object& object = objects_[id];
  ++forgettings_;
  object.fence = {};
  std::vector<Query> pieces;
  for (const Range& range : join_extents(object.written, std::move(extents))) {
    object.sums.forget(range);
    const FlowRef flow = or_first(object.planner.flow_of(range.offset));
    order({.kind = board::CommandKind::kForgetExtents, .flow = flow, .object = id, .range = range});
    // If the bytes are lost on their way, the planner asks for them again.
    object.planner.note_sent(object.written, flow, range, now_ns_);
    pieces.push_back({.flow = flow, .range = range});
  }
  add_needs(id, pieces);
}

void Receiver::begin_anew(ObjectId id) {
  Object& object = objects_[id];
  CHECK(!object.done && !object.sync_under_way, "nothing is under way for a file that is gone");
  bytes_written_ -= object.written.set_bytes();
  unsynced_bytes_ -= object.unsynced_bytes;
  drop_unread(object);
  Object fresh;
  fresh.layout = object.layout;
  fresh.written = ExtentMap(object.layout);
  fresh.ledger = ExtentLedger(object.layout);
  fresh.sums = sums::Tree(object.sums.shape(), object.sums.wanted());
  ++forgettings_;
  object = std::move(fresh);
}

void Receiver::put_zeros(ObjectId id, const std::vector<Range>& ranges) {
  Object& object = objects_[id];
  CHECK(!object.done && object.written.set_extents() == 0, "nothing came of a file that was just made");
  for (const Range& range : ranges) object.ledger.add_zeros(range);
  object.written = object.ledger.map();
  object.digest = object.ledger.digest();
  bytes_written_ += object.written.set_bytes();
}

bool Receiver::may_fail(ObjectId id) const {
  const Object& object = objects_[id];
  return !adoption_ && !object.sync_under_way && !(reading_ && reading_->object == id);
}

void Receiver::failed(ObjectId id) {
  Object& object = objects_[id];
  CHECK(!object.done && may_fail(id), "nothing is under way for a file that is given up");
  drop_unread(object);
  bytes_written_ -= object.written.set_bytes();
  unsynced_bytes_ -= std::exchange(object.unsynced_bytes, 0);
  object.unsynced.clear();
  object.failed = object.done = true;
  object.finishing = false;
  ++done_;
  std::erase(unfinished_, id);
  order_give_up(id, 0);
}

void Receiver::order_give_up(ObjectId id, uint32_t tag) {
  const Range all{.offset = 0, .length = objects_[id].layout.size_bytes};
  for (const FlowRef flow : flows_) {
    if (all.length != 0)
      order({.kind = board::CommandKind::kGiveUp, .flow = flow, .object = id, .range = all, .tag = tag});
  }
}

// An extent may come twice: by two lanes, or because its source sends what this node had before, such as a
// hole. Written once the file is cut to its size, the last one would make it longer.
bool Receiver::fenced(ObjectId id) {
  Object& object = objects_[id];
  Fence& fence = object.fence;
  if (fence.clear || flows_.empty() || flows_ended_ || object.layout.size_bytes == 0) return true;
  // Answers that a former control asked for may still come. And what it did not know is forgotten first.
  if (fence.awaited != 0 || adoption_) return false;
  fence = {.tag = ++fences_, .awaited = static_cast<uint32_t>(flows_.size())};
  order_give_up(id, fence.tag);
  return false;
}

void Receiver::given_up(ObjectId id, const board::Event& event) {
  Fence& fence = objects_[id].fence;
  if (event.tag != fence.tag || fence.awaited == 0) return;
  fence.writing |= event.length != 0;
  if (--fence.awaited != 0) return;
  fence.clear = !fence.writing;  // If not, tick() asks again.
  if (fence.clear) finish_if_complete(id);
}

bool Receiver::awaits_writes() const {
  return std::any_of(unfinished_.begin(), unfinished_.end(), [this](ObjectId id) {
    return objects_[id].fence.awaited == 0 && objects_[id].fence.writing;
  });
}

void Receiver::give_up_later(ObjectId id) {
  objects_[id].fence.awaited = 0;
  objects_[id].fence.writing = true;
}

void Receiver::flows_ended() {
  flows_ended_ = true;
  for (const ObjectId id : unfinished_) objects_[id].fence = {};
}

void Receiver::set_done(ObjectId id, uint64_t digest) {
  Object& object = objects_[id];
  if (object.done) return;
  drop_unread(object);
  object.digest = digest;
  object.done = true;
  object.finishing = false;
  // After a restart a file may be known as done of which no extent is known.
  bytes_written_ += object.layout.size_bytes - object.written.set_bytes();
  unsynced_bytes_ -= std::exchange(object.unsynced_bytes, 0);
  // The rows of its last sync may still be on their way into the journal: they count no more.
  object.unsynced.clear();
  object.syncing.clear();
  ++done_;
  std::erase(unfinished_, id);
}

}  // namespace sluice::recovery
