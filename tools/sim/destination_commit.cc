// The destination's way to durability: group commit, failed syncs, and the final name.
// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/destination_control.h"

namespace sluice::sim {

// Takes what is written, syncs, journals, reports. The extents were written before the sync begins.
void DestinationControl::sync(uint32_t object) {
  if (receiver_.begin_sync(ObjectId(object)) == 0) return;
  const uint64_t inode = files_[object].inode;
  if (host_.plan.broken == Break::kCommitBeforeSync) return synced(object, true);
  const bool good = !host_.sync_fails();
  const uint64_t sync = host_.files.begin_sync(inode);
  const bool directory = !directory_synced_;
  directory_synced_ = true;
  if (directory) host_.files.sync_directory();
  host_.trace.add(host_.now_ns(), kDestination, "sync", object, inode);
  ++host_.trace.reached.syncs;
  host_.point();
  host_.operate(
      host_.sync_ns(), Host::IfKilled::kStillDone, [this, sync, good] { host_.files.end_sync(sync, good); },
      [this, object, good] { synced(object, good); });
}

void DestinationControl::synced(uint32_t object, bool good) {
  host_.point();
  if (end_ != End::kNone) return;
  if (!good && host_.plan.broken != Break::kNoForget) {
    host_.trace.add(host_.now_ns(), kDestination, "sync failed", object);
    ++host_.trace.reached.failed_syncs;
    if (!receiver_.sync_failed(ObjectId(object))) {
      host_.oracle.allow(End::kSyncFailed);
      fail(End::kSyncFailed, "a second sync failed");
    }
    return;
  }
  Transaction t;
  for (recovery::Block& block : receiver_.sync_succeeded(ObjectId(object)))
    t.rows.emplace_back(object, std::move(block));
  if (host_.plan.broken == Break::kReportBeforeCommit) {
    report(object);
    return host_.commit(std::move(t), [] {});
  }
  host_.commit(std::move(t), [this, object] {
    host_.point();
    report(object);
  });
}

void DestinationControl::report(uint32_t object) {
  const std::vector<recovery::Range> ranges = receiver_.journalled(ObjectId(object));
  for (const recovery::Range& range : ranges)
    host_.oracle.reported_durable(object, range.offset, range.length);
  host_.stream->send(kDestination, {.kind = Kind::kPartitionDone, .object = object, .ranges = ranges});
}

// ---- the final name --------------------------------------------------------------------------------

void DestinationControl::finish(uint32_t object) {
  if (end_ != End::kNone) return;
  FileRecord& file = files_[object];
  if (file.phase != Phase::kReceiving) return;  // begun in an attempt before this one
  file.phase = Phase::kFinishing;
  file.digest = receiver_.digest(ObjectId(object));
  Transaction t;
  t.files[object] = file;
  host_.trace.add(host_.now_ns(), kDestination, "finishing", object);
  host_.commit(std::move(t), [this, object] {
    host_.point();
    cut_to_size(object);
  });
}

void DestinationControl::cut_to_size(uint32_t object) {
  const uint64_t inode = files_[object].inode;
  host_.files.resize(inode, host_.plan.sizes[object]);
  const bool good = !host_.sync_fails();
  const uint64_t sync = host_.files.begin_sync(inode);
  host_.operate(
      host_.sync_ns(), Host::IfKilled::kStillDone, [this, sync, good] { host_.files.end_sync(sync, good); },
      [this, object, good] {
        host_.point();
        if (!good) {
          host_.oracle.allow(End::kSyncFailed);
          return fail(End::kSyncFailed, "the last sync failed");
        }
        rename(object);
      });
}

void DestinationControl::rename(uint32_t object) {
  if (!host_.files.rename(Oracle::temporary_name(object), Oracle::final_name(object))) {
    host_.oracle.fail("a file cannot be given its name");
  }
  host_.point();
  sync_name(object);
}

void DestinationControl::sync_name(uint32_t object) {
  const auto effect = [this] {
    if (host_.plan.broken != Break::kNoDirectorySync) host_.files.sync_directory();
  };
  host_.operate(host_.sync_ns() / 4, Host::IfKilled::kFate, effect, [this, object] {
    host_.point();
    name_synced(object);
  });
}

void DestinationControl::name_synced(uint32_t object) {
  FileRecord& file = files_[object];
  file.phase = Phase::kDone;
  Transaction t;
  t.files[object] = file;
  host_.commit(std::move(t), [this, object] {
    receiver_.set_done(ObjectId(object), files_[object].digest);
    closing_objects_.push_back(object);
    host_.oracle.reported_done(object);
    host_.oracle.reported_durable(object, 0, host_.plan.sizes[object]);
    host_.stream->send(kDestination,
                       {.kind = Kind::kFileDone, .object = object, .digest = files_[object].digest});
    host_.point();
  });
}

}  // namespace sluice::sim
