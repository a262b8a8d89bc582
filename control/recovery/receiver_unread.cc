// Identity is not content: the journal may be wrong about a file that was out of this process's hands (the
// process was down, or let go of the file). Volumes go back to snapshots, files are replaced, disks forget.
// So these bytes are unread: each is read once more while the transfer goes on, and what is not as the
// journal says comes again from the source.
//
// The unread bytes of an object are read from its start to its end. What arrives meanwhile is not among them;
// the block that it fills up is read with them, since of a full block only one digest is known.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/recovery/receiver.h"

namespace sluice::recovery {

void Receiver::distrust(ObjectId id) {
  Object& object = objects_[id];
  if (object.done) return;
  drop_unread(object);
  object.unread = object.ledger.map();
  object.unread_from = ExtentId(0);
  // They are summed as they are read.
  object.sums.forget_if([&](const Range& known) {
    const ExtentRun run = object.unread.whole_in(known);
    return object.unread.next_set(run.first) < run.end;
  });
  unread_bytes_ += object.unread.set_bytes();
}

std::optional<ExtentId> Receiver::next_unread(const Object& object) const {
  const ExtentMap& unread = object.unread;
  const ExtentId next = unread.next_set(object.unread_from);
  return next < unread.end_id() ? std::optional(next) : std::nullopt;
}

void Receiver::set_unread_from(Object& object, ExtentId from) {
  if (from <= object.unread_from) return;
  unread_bytes_ -= object.unread.set_bytes({object.unread_from, from});
  object.unread_from = from;
}

void Receiver::drop_unread(Object& object) {
  set_unread_from(object, object.unread.end_id());
  object.unread = ExtentMap();
}

std::optional<Unread> Receiver::take_unread(ObjectId id) {
  Object& object = objects_[id];
  // A sync that is under way holds extents that might have to be forgotten.
  if (reading_ || adoption_ || object.done || object.finishing || object.sync_under_way) return std::nullopt;
  const std::optional<ExtentId> next = next_unread(object);
  if (!next) return std::nullopt;
  reading_ = Reading{.object = id, .piece = object.ledger.piece_at(*next)};
  return Unread{.object = id, .range = reading_->piece.range};
}

Judgement Receiver::judge_unread(std::optional<uint64_t> crc, const std::vector<sums::Summed>& sums) {
  CHECK(reading_, "what is answered was asked for");
  const Reading reading = *std::exchange(reading_, std::nullopt);
  Object& object = objects_[reading.object];
  const bool good = crc == reading.piece.crc;
  // It is read again after the sync: only then can it be forgotten.
  if (!good && object.sync_under_way) return Judgement::kLater;
  if (good && object.sums.wanted() != 0)
    for (const sums::Summed& summed : sums) object.sums.add(summed);
  const Range judged = good ? reading.piece.range : forget_unread(reading.object, reading.piece.range);
  set_unread_from(object, object.unread.extent_at(judged.end() - 1).plus(1));
  finish_if_complete(reading.object);
  return good ? Judgement::kGood : Judgement::kForgotten;
}

// With it goes the rest of a block that has filled up since it was asked for.
Range Receiver::forget_unread(ObjectId id, Range unread) {
  Object& object = objects_[id];
  const uint64_t before = object.ledger.digest();
  const Range range = object.ledger.forget(unread);
  object.digest ^= before ^ object.ledger.digest();
  bytes_written_ -= range.length;
  std::vector<ExtentId> extents;
  const ExtentId last = object.written.extent_at(range.end() - 1);
  for (ExtentId extent = object.written.extent_at(range.offset); extent <= last; ++extent) {
    object.written.clear(extent);
    extents.push_back(extent);
    // Durable, and only its row is missing in the journal: it must not come there any more.
    if (object.unsynced.erase(extent) == 0) continue;
    const uint64_t bytes = object.written.range_of(extent).length;
    object.unsynced_bytes -= bytes;
    unsynced_bytes_ -= bytes;
  }
  forget_and_need(id, std::move(extents));
  return range;
}

bool Receiver::forget(ObjectId id, ExtentRun run) {
  Object& object = objects_[id];
  if (object.done) return true;
  const bool some_count = object.written.next_set(run.first) < run.end;
  if (some_count && (object.sync_under_way || object.finishing || reading_)) return false;
  object.source_digest.reset();
  std::vector<ExtentId> extents;
  for (ExtentId extent = run.first; extent < run.end; ++extent) {
    if (object.ledger.map().is_set(extent)) continue;
    extents.push_back(extent);
    const auto crc = object.unsynced.find(extent);
    if (crc == object.unsynced.end()) continue;  // a worker wrote it, and nobody counted it
    const uint64_t bytes = object.written.range_of(extent).length;
    object.digest ^= shifted(object, extent, crc->second);
    object.unsynced.erase(crc);
    object.written.clear(extent);
    object.unsynced_bytes -= bytes;
    unsynced_bytes_ -= bytes;
    bytes_written_ -= bytes;
  }
  forget_and_need(id, std::move(extents));
  const ExtentMap& durable = object.ledger.map();
  for (ExtentId at = durable.next_set(run.first); at < run.end; at = durable.next_set(at)) {
    const Range range = forget_unread(id, object.written.range_of(at));
    if (object.unread.extents() == 0) continue;
    const ExtentRun gone = object.unread.whole_in(range);
    const ExtentId first = std::max(gone.first, object.unread_from);
    if (first < gone.end) unread_bytes_ -= object.unread.clear(ExtentRun{.first = first, .end = gone.end});
  }
  return true;
}

}  // namespace sluice::recovery
