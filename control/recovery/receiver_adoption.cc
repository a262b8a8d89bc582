// How a receiver goes on with the flows of a former control (Receiver::Adoption).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/recovery/receiver.h"

namespace sluice::recovery {

void Receiver::adopt(LegId leg, uint32_t lanes, const std::vector<ObjectId>& open_objects, uint64_t now_ns) {
  start_attempt(leg, lanes, now_ns);
  for (ObjectId id; id < objects_.end_id(); ++id) {
    if (objects_[id].failed) order_give_up(id, 0);  // the former control may not have come to that
  }
  adoption_ = Adoption{};
  for (const ObjectId id : open_objects) {
    if (objects_[id].done) continue;
    adoption_->objects[id].missing = ExtentMap(objects_[id].layout);
    query_unwritten(id, 0);
  }
  if (adoption_->awaited == 0) adoption_.reset();
}

void Receiver::query_unwritten(ObjectId id, uint64_t from) {
  Adoption::Found& found = adoption_->objects[id];
  found.runs = 0;
  found.end = from;
  ++adoption_->awaited;
  const uint64_t bytes = objects_[id].layout.size_bytes - from;
  // An event will come of an extent that is being written. It counts as missing, or it would be taken for one
  // that the former control was told of.
  order({.kind = board::CommandKind::kQueryUnwritten,
         .flow = or_first({}),
         .object = id,
         .range = {.offset = from, .length = bytes},
         .tag = kAdoptTag});
}

void Receiver::adoption_answered(ObjectId id, const board::Event& event) {
  const auto at = adoption_->objects.find(id);
  if (at == adoption_->objects.end() || adoption_->awaited == 0) return;
  Adoption::Found& found = at->second;
  const Layout& layout = objects_[id].layout;
  if (event.kind == board::EventKind::kMissing) {
    const Range range = found.missing.cut({.offset = event.offset, .length = event.length});
    if (adoption_->round != Adoption::Round::kMissing || range.length == 0) return;
    ++found.runs;
    found.missing.set(
        {found.missing.extent_at(range.offset), found.missing.extent_at(range.end() - 1).plus(1)});
    found.end = std::max(found.end, range.end());
    return;
  }
  --adoption_->awaited;
  if (adoption_->round == Adoption::Round::kMissing) {
    // An answer with too many runs is cut: more may be missing behind its last extent.
    const uint64_t next = (found.end + layout.extent_bytes - 1) / layout.extent_bytes * layout.extent_bytes;
    if (found.runs >= board::kMissingRunsMax && next < layout.size_bytes) query_unwritten(id, next);
  }
  if (adoption_->awaited != 0) return;
  if (adoption_->round == Adoption::Round::kMissing) {
    adoption_->round = Adoption::Round::kEvents;
    return query_every_flow(id);
  }
  if (adoption_->round == Adoption::Round::kEvents && forget_unknown()) {
    adoption_->round = Adoption::Round::kForgotten;
    return query_every_flow(id);
  }
  finish_adoption();
}

// The former control told the source of bytes that were written and never became durable; the source does not
// send them again by itself. Whatever stays missing will be asked for.
void Receiver::finish_adoption() {
  for (const auto& [id, found] : adoption_->objects) {
    Object& object = objects_[id];
    if (!object.done) object.planner.note_all_maybe_sent(now_ns_);
  }
  adoption_.reset();
  for (const ObjectId id : unfinished_) finish_if_complete(id);
}

void Receiver::query_every_flow(ObjectId id) {
  for (const FlowRef flow : flows_) {
    ++adoption_->awaited;
    order({.kind = board::CommandKind::kQueryMissing, .flow = flow, .object = id, .tag = kAdoptTag});
  }
}

// An extent that a worker has written, that no event tells of and that is not in the journal was told to the
// former control. Its CRC is lost with that.
bool Receiver::forget_unknown() {
  bool forgot = false;
  for (const auto& [id, found] : adoption_->objects) {
    if (objects_[id].done) continue;
    std::vector<ExtentId> unknown;
    for (const ExtentRun& written : found.missing.missing({ExtentId(0), found.missing.end_id()})) {
      for (const ExtentRun& run : objects_[id].written.missing(written))
        for (ExtentId extent = run.first; extent < run.end; ++extent) unknown.push_back(extent);
    }
    forgot |= !unknown.empty();
    forget_and_need(id, std::move(unknown));
  }
  return forgot;
}

}  // namespace sluice::recovery
