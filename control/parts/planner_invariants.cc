// What always holds of a planner, between two calls.
// SPDX-License-Identifier: Apache-2.0
#include "control/parts/planner.h"
#include "dataplane/base/check.h"

namespace sluice::parts {

void Planner::check_invariants() const {
  if (!base::dchecks_enabled) return;
  uint64_t missing = 0;
  uint64_t in_pool = 0;
  for (ObjectId id; id < objects_.end_id(); ++id) {
    const Object& object = objects_[id];
    if (!object.added) continue;
    missing += object.there.size_bytes() - object.there.set_bytes();
    for (const ExtentRun& run : object.pool.all()) in_pool += object.there.bytes_of(run).length;
    check_object(id);
  }
  DCHECK(missing == missing_bytes_, "what is missing is what is not there");
  DCHECK(in_pool == pool_bytes_, "the bytes of the pool add up");
  for (const auto& [leg, state] : legs_) {
    state.outstanding.check_invariants();
    uint64_t bytes = 0;
    for (const Piece& piece : state.outstanding.all()) {
      DCHECK(exists(piece.object) && piece.run.end <= objects_[piece.object].there.end_id(),
             "a leg is asked for what there is");
      bytes += objects_[piece.object].there.bytes_of(piece.run).length;
    }
    DCHECK(bytes == state.bytes, "the outstanding bytes of a leg add up");
    DCHECK(state.received <= state.bytes, "no more has come than is outstanding");
    DCHECK(state.phase != LegState::Phase::kSilent || state.outstanding.empty(),
           "a silent leg is asked for nothing");
  }
}

void Planner::check_object(ObjectId id) const {
  const Object& object = objects_[id];
  object.there.check_invariants();
  object.pool.check_invariants();
  for (const ExtentRun& run : object.pool.all()) {
    DCHECK(run.end <= object.there.end_id() && object.there.set_bytes(run) == 0,
           "what is in the pool is not there");
  }
  uint64_t outstanding = 0;
  uint64_t copied = 0;
  for (const auto& [leg, state] : legs_) {
    for (const Piece& piece : state.outstanding.within(id, all_of(object))) {
      const uint64_t extents = piece.run.end.value() - piece.run.first.value();
      (piece.copied ? copied : outstanding) += extents;
      DCHECK(object.there.set_bytes(piece.run) == 0, "nobody is asked for what is there");
      DCHECK(object.pool.within(piece.run).empty(), "nothing is outstanding and in the pool");
      DCHECK(object.kind == Kind::kDivisible || object.first == leg, "one leg brings a whole object");
      DCHECK(!closed(leg, id), "nobody is asked for what it has otherwise");
      uint64_t others = 0;
      for (const auto& [other, its] : legs_) {
        if (other == leg) continue;
        for (const Piece& copy : its.outstanding.within(id, piece.run)) {
          DCHECK(copy.copied, "what two legs are asked for is known as copied");
          others += copy.run.end.value() - copy.run.first.value();
        }
      }
      DCHECK(others == (piece.copied ? extents : 0), "a copied extent is asked of two legs, another of one");
    }
  }
  DCHECK(
      object.there.set_extents() + object.pool.extents() + outstanding + copied / 2 == object.there.extents(),
      "each extent is there, in the pool or outstanding");
  DCHECK(object.begun || object.pool.extents() == object.there.extents(),
         "nothing is there or asked for of what nobody has begun");
  DCHECK(fresh_.contains(id) == (!object.begun && !object.pool.empty()), "what is fresh is listed");
  DCHECK(begun_.contains(id) == (object.begun && !object.pool.empty()), "so is what is left of the others");
}

}  // namespace sluice::parts
