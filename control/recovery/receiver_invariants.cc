// What always holds of a receiver, between two events, whatever peers and workers say.
// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/receiver.h"
#include "dataplane/base/check.h"

namespace sluice::recovery {

void Receiver::check_invariants() const {
  if (!base::dchecks_enabled) return;
  uint64_t written = 0;
  uint64_t unsynced = 0;
  size_t done = 0;
  for (const Object& object : objects_) {
    if (!object.failed) written += object.done ? object.layout.size_bytes : object.written.set_bytes();
    unsynced += object.unsynced_bytes;
    done += object.done ? 1 : 0;
    check_object(object);
  }
  DCHECK(written == bytes_written_, "the bytes written are those of all objects");
  DCHECK(unsynced == unsynced_bytes_, "so are those that are not durable");
  DCHECK(done == done_ && unfinished_.size() == objects_.size() - done, "an object is done or unfinished");
  DCHECK(!adoption_ || flows_.empty() || adoption_->awaited != 0,
         "an adoption that awaits nothing has ended");
}

void Receiver::check_object(const Object& object) const {
  object.written.check_invariants();
  object.ledger.check_invariants();
  object.sums.check_invariants();
  if (object.done) {
    DCHECK(object.unsynced.empty() && object.syncing.empty() && object.unsynced_bytes == 0,
           "what is done needs no sync");
    return;
  }
  object.planner.check_invariants(object.written, flows_);
  DCHECK(object.written.contains(object.ledger.map()), "what is durable is written");
  uint64_t bytes = 0;
  uint64_t digest = object.ledger.digest();
  uint64_t extents = object.ledger.map().set_extents();
  for (const Crcs* crcs : {&object.unsynced, &object.syncing}) {
    for (const auto& [extent, crc] : *crcs) {
      DCHECK(object.written.is_set(extent), "what is synced is written");
      DCHECK(crcs == &object.syncing || !object.syncing.contains(extent),
             "an extent is synced once at a time");
      bytes += object.written.range_of(extent).length;
      if (object.ledger.map().is_set(extent)) continue;  // It is synced, and its row not yet in the journal.
      digest ^= shifted(object, extent, crc);
      ++extents;
    }
  }
  DCHECK(bytes == object.unsynced_bytes, "the bytes to sync are those of the extents to sync");
  DCHECK(extents == object.written.set_extents(), "what is written is durable, or will be synced");
  DCHECK(digest == object.digest, "the digest is that of what is written");
  DCHECK(object.sync_under_way == !object.syncing.empty(), "a sync is of something");
  DCHECK(!object.finishing || object.written.complete(), "only a whole file is given its name");
  DCHECK(object.fence.awaited <= flows_.size(), "each flow says once whether it still writes");
  DCHECK(object.fence.awaited == 0 || object.written.complete(), "nothing that is wanted is given up");
  DCHECK(object.unanswered <= object.asked.size(), "no more answers are due than questions were asked");
}

}  // namespace sluice::recovery
