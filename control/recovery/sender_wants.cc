// A sender that obeys wants: lanes get what the peer asks for, and it hears the digest of each extent.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/recovery/sender.h"

namespace sluice::recovery {
namespace {

// Extents that are read at a time: 16 MiB at most. Until they were, one of the few threads for calls into the
// export is busy, and what is asked for meanwhile waits.
constexpr uint64_t kReadExtents = 16;

}  // namespace

// Whole extents of an object of which something can still be sent.
std::vector<ExtentRun> Sender::asked_for(ObjectId id, const std::vector<Range>& ranges) const {
  std::vector<ExtentRun> runs;
  if (!options_.obeys_wants || !objects_.contains(id) || objects_[id].done || objects_[id].withdrawn)
    return runs;
  const ExtentMap& map = objects_[id].wanted;
  for (const Range& told : ranges) {
    if (told.offset >= map.size_bytes()) continue;
    const ExtentRun run = map.whole_in(map.cut(told));
    if (run.first < run.end) runs.push_back(run);
  }
  return runs;
}

void Sender::want(ObjectId id, const std::vector<Range>& ranges) {
  for (const ExtentRun& run : asked_for(id, ranges)) {
    take_back(id, run);
    say_again(id, run);
    Object& object = objects_[id];
    for (const ExtentRun& fresh : object.given.missing(run)) object.wanted.set(fresh);
    if (object.wanted.set_extents() != 0) wanted_.insert(id);
    open_for_peer(id);
  }
  give_parts();
}

void Sender::want_no_more(ObjectId id, const std::vector<Range>& ranges) {
  for (const ExtentRun& run : asked_for(id, ranges)) objects_[id].wanted.clear(run);
  if (objects_.contains(id) && objects_[id].wanted.set_extents() == 0) wanted_.erase(id);
}

// Looks at no more extents than may be asked for, whatever the message names.
bool Sender::want_digests(ObjectId id, const std::vector<Range>& ranges, bool last) {
  const uint64_t most = options_.digests_unanswered;
  uint64_t unanswered = desk_.demanded();
  uint64_t named = 0;
  for (const ExtentRun& run : asked_for(id, ranges)) {
    named += run.end.value() - run.first.value();
    if (named > most) return false;
    for (ExtentId extent = run.first; extent < run.end; ++extent)
      unanswered += (last ? desk_.demand_last(id, extent) : desk_.demand(id, extent)) ? 1 : 0;
    if (unanswered > most) return false;
    open_for_peer(id);
  }
  return true;
}

// All that the peer wants of it has left on a lane, once.
bool Sender::read_all_wanted(ObjectId id) const {
  const Object& object = objects_[id];
  return object.wanted.set_extents() == 0 && std::ranges::all_of(object.placed, [](const auto& placed) {
           return placed.second.sent_end == placed.second.end;
         });
}

void Sender::release_last_digests() {
  for (const ObjectId id : desk_.waiting_for_last())
    if (read_all_wanted(id)) desk_.release_last(id);
}

void Sender::forget_wants() {
  for (const ObjectId id : wanted_) objects_[id].wanted = ExtentMap(objects_[id].layout);
  wanted_.clear();
  to_open_.clear();
  desk_.new_stream();
}

// The peer had told these as its own, and has lost them. What a lane carried is repeated there.
void Sender::take_back(ObjectId id, ExtentRun extents) {
  Object& object = objects_[id];
  for (ExtentId at = object.at_peer.next_set(extents.first); at < extents.end;) {
    const uint64_t offset = object.at_peer.range_of(at).offset;
    const Placed* const placed = placed_at(object, offset);
    const auto next = object.placed.upper_bound(offset);
    ExtentId end = object.at_peer.next_clear({at, extents.end});
    if (placed != nullptr) end = std::min(end, object.at_peer.extent_at(placed->end - 1).plus(1));
    if (next != object.placed.end()) end = std::min(end, object.at_peer.extent_at(next->first));
    bytes_held_ -= object.at_peer.clear({at, end});
    if (placed == nullptr) object.given.clear({at, end});
    const uint64_t bytes_end = object.at_peer.bytes_of({at, end}).end();
    if (placed != nullptr && placed->sent_end > offset)
      order_repair(placed->flow, id,
                   {.offset = offset, .length = std::min(bytes_end, placed->sent_end) - offset});
    at = object.at_peer.next_set(end);
  }
}

// What left on a lane of this attempt goes no second time, but its digest does: it may have been lost.
void Sender::say_again(ObjectId id, ExtentRun extents) {
  const Object& object = objects_[id];
  const Range range = object.given.bytes_of(extents);
  auto at = object.placed.upper_bound(range.offset);
  if (at != object.placed.begin()) --at;
  for (; at != object.placed.end() && at->first < range.end(); ++at) {
    const Range sent = {.offset = at->first, .length = at->second.sent_end - at->first};
    const ExtentRun whole = object.given.whole_in(sent);
    const ExtentId end = std::min(whole.end, extents.end);
    for (ExtentId extent = std::max(whole.first, extents.first); extent < end; ++extent)
      if (!object.at_peer.is_set(extent)) desk_.repeat(id, extent);
  }
}

void Sender::open_for_peer(ObjectId id) {
  if (!objects_[id].open) to_open_.insert(id);
}

// Of this object nothing more is sent.
void Sender::end_wants(ObjectId id) {
  if (wanted_.erase(id) != 0) objects_[id].wanted = ExtentMap(objects_[id].layout);
  to_open_.erase(id);
  desk_.drop(id);
}

// Of the objects that are open; those of others wait.
std::optional<Sender::Part> Sender::take_wanted_part() {
  for (const ObjectId id : wanted_) {
    const Object& object = objects_[id];
    if (!object.open) continue;
    const ExtentId first = object.wanted.next_set(ExtentId(0));
    const ExtentRun run{first, object.wanted.next_clear({first, object.wanted.end_id()})};
    const Range range = object.wanted.bytes_of(run);
    return Part{.object = id,
                .offset = range.offset,
                .length = std::min(range.length, cut_at(range.offset) - range.offset),
                .reported_end = range.offset};
  }
  return std::nullopt;
}

// First of the object of which the least is to be read: what is compared, and a last look, are a few extents,
// and do not wait for the many of a large file.
std::optional<Sender::UnknownRun> Sender::take_unread() {
  std::optional<ObjectId> least;
  for (const ObjectId id : desk_.unread()) {
    if (objects_[id].open && (!least || desk_.unread(id) < desk_.unread(*least))) least = id;
  }
  if (!least) return std::nullopt;
  const std::optional<ExtentRun> run = desk_.take_unread(*least, kReadExtents);
  return UnknownRun{.object = *least, .first = run->first, .end = run->end};
}

}  // namespace sluice::recovery
