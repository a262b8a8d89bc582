// What always holds of a sender, between two events, whatever peers and workers say.
// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/sender.h"
#include "dataplane/base/check.h"

namespace sluice::recovery {

void Sender::check_invariants() const {
  if (!base::dchecks_enabled) return;
  uint64_t held = 0;
  size_t done = 0;
  for (ObjectId id; id < objects_.end_id(); ++id) {
    const Object& object = objects_[id];
    if (!object.failed) held += object.done ? object.layout.size_bytes : object.at_peer.set_bytes();
    done += object.done ? 1 : 0;
    check_object(id);
  }
  for (const auto& [flow, work] : lanes_) check_lane(work);
  DCHECK(held == bytes_held_, "the bytes at the peer are those of all objects");
  DCHECK(done == done_, "as many objects are done as are counted");
  DCHECK(known_ <= objects_.size(), "the peer knows nothing that there is not");
  uint64_t unknown = 0;
  for (const Object& object : objects_) unknown += object.unknown.set_extents();
  for (const UnknownRun& run : unknown_) {
    unknown -= run.end.value() - run.first.value();
    DCHECK(objects_.contains(run.object) && run.first < run.end &&
               run.end <= objects_[run.object].given.end_id(),
           "what must be read again lies in its object");
  }
  DCHECK(unknown == 0, "what must be read again is noted once");
}

void Sender::check_object(ObjectId id) const {
  const Object& object = objects_[id];
  object.ledger.check_invariants();
  object.given.check_invariants();
  object.at_peer.check_invariants();
  DCHECK(object.given.contains(object.at_peer), "what the peer has is not given to a lane");
  check_wants(id);
  DCHECK(object.given.complete({.offset = 0, .length = object.next_offset}),
         "nothing is left to give before the next offset");
  DCHECK(id >= cursor_ || object.done || object.withdrawn || object.given.complete(),
         "nothing is left to give of the objects before the cursor");
  DCHECK(
      id >= short_cursor_ || !is_short(object) || object.done || object.withdrawn || object.given.complete(),
      "nothing is left to give of the short objects before theirs");
  DCHECK(object.placed.empty() || may_give_ || adopted_,
         "nothing is given before the peer has said what it has");
  uint64_t end_before = 0;
  for (const auto& [offset, placed] : object.placed) {
    DCHECK(offset < placed.end && placed.end <= object.layout.size_bytes,
           "what is placed lies in the object");
    DCHECK(offset <= placed.sent_end && placed.sent_end <= placed.end, "what was sent of it lies in it");
    DCHECK(lanes_.contains(placed.flow), "it lies at a lane of this attempt");
    DCHECK(object.given.complete({.offset = offset, .length = placed.end - offset}), "it is given");
    // Workers that were found say themselves what they hold, two of them maybe the same.
    DCHECK(offset >= end_before || adopted_, "nothing is placed twice");
    end_before = placed.end;
  }
  DCHECK(!object.failed || (object.withdrawn && object.done), "nothing is sent of what has failed");
  if (!object.done || object.failed) return;
  // A worker that was found may still hold some of it.
  DCHECK(object.placed.empty() || adopted_, "what is done lies at no lane");
  const bool compared = object.ledger.complete() && object.peer_digest == object.ledger.digest();
  DCHECK(object.peer_digest && (compared || options_.obeys_wants),
         "done is what is known whole, with equal digests, or what a peer that is obeyed calls so");
}

void Sender::check_wants(ObjectId id) const {
  const Object& object = objects_[id];
  object.wanted.check_invariants();
  DCHECK(wanted_.contains(id) == (object.wanted.set_extents() != 0), "what is wanted is known by its object");
  if (object.wanted.set_extents() == 0) return;
  DCHECK(options_.obeys_wants && !object.done && !object.withdrawn, "of what can still be sent");
  for (ExtentId at = object.wanted.next_set(ExtentId(0)); at < object.wanted.end_id();) {
    const ExtentId end = object.wanted.next_clear({at, object.wanted.end_id()});
    DCHECK(object.given.set_bytes({at, end}) == 0, "what is wanted is not given yet");
    at = object.wanted.next_set(end);
  }
  DCHECK(object.open || to_open_.contains(id), "what is wanted is opened");
}

void Sender::check_lane(const LaneWork& work) const {
  uint64_t bytes = 0;
  for (const Part& part : work.parts) {
    bytes += part.length;
    const uint64_t end = part.offset + part.length;
    DCHECK(
        objects_.contains(part.object) && part.length != 0 && end <= objects_[part.object].layout.size_bytes,
        "a part lies in its object");
    DCHECK(part.reported_end >= part.offset && (part.reported_end <= end || adopted_),
           "what was reported of a part lies in it");
  }
  DCHECK(bytes == work.queued_bytes, "the bytes queued at a lane are those of its parts");
}

}  // namespace sluice::recovery
