// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/sender.h"

#include <algorithm>

namespace sluice::recovery {
namespace {

constexpr uint64_t kPartsPerLane = 4;  // a session's data is cut at least so finely
constexpr size_t kPartsQueuedMin = 2;
constexpr size_t kPartsQueuedMax = 12;              // a worker takes 16
constexpr uint64_t kQueuedNs = 5'000'000;           // what a lane sends in this time is queued, at least
constexpr uint64_t kStuckNs = 200'000'000;          // then what left so far is reported
constexpr uint64_t kRepairShareNs = 1'000'000'000;  // a lane with a repair counts as busy for so long

}  // namespace

Sender::Sender(const Indexed<ObjectId, Layout>& objects, uint32_t lanes, const Options& options) {
  for (const Layout& layout : objects) {
    Object object;
    object.layout = layout;
    object.ledger = ExtentLedger(layout);
    object.given = object.peer = ExtentMap(layout);
    bytes_total_ += layout.size_bytes;
    objects_.push_back(std::move(object));
  }
  start_attempt(lanes, options, 0);
}

void Sender::start_attempt(uint32_t lanes, const Options& options, uint64_t now_ns) {
  now_ns_ = now_ns;
  options_ = options;
  may_give_ = adopted_ = false;
  lanes_.assign(lanes, {});
  part_bytes_ = options.partition_bytes;
  if (lanes > 1 && !objects_.empty()) {
    const uint64_t extent_bytes = objects_.begin()->layout.extent_bytes;
    const uint64_t share = bytes_total_ / (lanes * kPartsPerLane) / extent_bytes + 1;
    part_bytes_ = std::min(part_bytes_, share * extent_bytes);
  }
  cursor_ = ObjectId();
  unknown_.clear();
  bytes_held_ = 0;
  for (Object& object : objects_) {
    const bool done = object.done;
    object.given = object.peer = ExtentMap(object.layout);
    object.placed.clear();
    object.next_offset = 0;
    object.open = false;
    object.digest_reported = false;
    if (done) bytes_held_ += object.layout.size_bytes;
  }
}

void Sender::adopt(const board::Event& event, LaneId lane) {
  const ObjectId id(event.object);
  if (!objects_.contains(id) || event.offset % objects_[id].layout.extent_bytes != 0) return;
  const Range range = objects_[id].given.cut({.offset = event.offset, .length = event.length});
  if (range.length == 0) return;
  adopted_ = true;
  const Part part{.object = id, .offset = range.offset, .length = range.length, .reported_end = range.offset};
  if (event.kind == board::EventKind::kQueued) {
    place(lane, part, part.offset);
    lanes_[lane].parts.push_back(part);
    lanes_[lane].bytes += part.length;
  } else if (event.kind == board::EventKind::kHeld) {
    place(lane, part, part.offset + part.length);
  }
}

// ---- the peer ----------------------------------------------------------------------------------

void Sender::peer_has(ObjectId id, const std::vector<Range>& ranges) {
  if (!objects_.contains(id) || objects_[id].done) return;
  Object& object = objects_[id];
  const uint32_t extent_bytes = object.layout.extent_bytes;
  const bool lanes_may_hold = may_give_ || adopted_;
  for (const Range& told : ranges) {
    if (told.offset >= object.layout.size_bytes) continue;
    const Range range = object.peer.cut(told);
    for (ExtentId extent((range.offset + extent_bytes - 1) / extent_bytes); extent < object.peer.end_id();
         ++extent) {
      if (object.peer.range_of(extent).end() > range.end()) break;
      object.given.set(extent);
      if (!object.peer.set(extent)) continue;
      bytes_held_ += object.peer.range_of(extent).length;
      if (object.ledger.map().is_set(extent)) continue;
      if (!unknown_.empty() && unknown_.back().object == id && unknown_.back().end == extent) {
        ++unknown_.back().end;
      } else {
        unknown_.push_back({.object = id, .first = extent, .end = extent.plus(1)});
      }
    }
    forget_placed(object, range);
    // Two lanes may have sent an extent (a repair that an earlier life of this control ordered): the peer
    // lists it for one of them, and the other would hold it for ever.
    for (LaneId lane; lanes_may_hold && range.length != 0 && lane < lanes_.end_id(); ++lane) {
      out_.commands.push_back(
          {.kind = board::CommandKind::kPeerHas, .lane = lane, .object = id, .range = range});
    }
  }
  ++steps_;
}

void Sender::forget_placed(Object& object, Range range) {
  auto at = object.placed.upper_bound(range.offset);
  if (at != object.placed.begin()) --at;
  while (at != object.placed.end() && at->first < range.end()) {
    const bool all = object.peer.complete({.offset = at->first, .length = at->second.end - at->first});
    at = all ? object.placed.erase(at) : std::next(at);
  }
}

void Sender::peer_knows() {
  may_give_ = true;
  feed();
  for (ObjectId id; id < objects_.end_id(); ++id) check_done(id);
}

void Sender::report_again() {
  for (ObjectId id; id < objects_.end_id(); ++id) {
    Object& object = objects_[id];
    if (object.done) continue;
    for (const auto& [offset, placed] : object.placed) {
      if (placed.sent_end == offset) continue;
      out_.sent.push_back({.object = id,
                           .lane = placed.lane,
                           .range = {.offset = offset, .length = placed.sent_end - offset}});
    }
    object.digest_reported = false;
    check_done(id);
  }
}

Sender::Placed* Sender::placed_at(Object& object, uint64_t offset) {
  auto at = object.placed.upper_bound(offset);
  if (at == object.placed.begin()) return nullptr;
  --at;
  return offset < at->second.end ? &at->second : nullptr;
}

// Parts of extents go again on the lane that the peer names: its worker there holds their rest, and if this
// control was restarted only the peer knows. Whole extents go on the lane that carried them, if that is
// known. What was never sent comes in its turn: a peer that was restarted does not know, and asks for all it
// lacks.
void Sender::need(ObjectId id, std::optional<LaneId> told_lane, const std::vector<Range>& ranges) {
  if (!objects_.contains(id) || objects_[id].done) return;
  Object& object = objects_[id];
  for (const Range& told : ranges) {
    const Range range = object.peer.cut(told);
    Range repair{.offset = range.offset, .length = 0};  // neighbours on one lane, joined
    LaneId lane;
    for (uint64_t at = range.offset; at < range.end();) {
      const ExtentId extent = object.peer.extent_at(at);
      const Range whole = object.peer.range_of(extent);
      const uint64_t piece_end = std::min(range.end(), whole.end());
      if (object.peer.clear(extent)) bytes_held_ -= whole.length;  // it had it: lost again
      const Placed* placed = placed_at(object, at);
      // A part of an extent is missing only where another part has come.
      const bool part = at != whole.offset || piece_end != whole.end();
      const bool sent = placed != nullptr ? at < placed->sent_end : object.given.is_set(extent);
      const bool repeat = sent || part || object.ledger.map().is_set(extent);
      const LaneId known_lane = placed != nullptr ? placed->lane : told_lane.value_or(LaneId());
      const LaneId its_lane = part ? told_lane.value_or(known_lane) : known_lane;
      if (!repeat || its_lane != lane || repair.end() != at) {
        add_repair(lane, id, repair);
        repair = {.offset = at, .length = 0};
        lane = its_lane;
      }
      if (repeat) {
        repair.length += piece_end - at;
        object.given.set(extent);
        at = piece_end;
      } else {
        at = placed != nullptr
                 ? piece_end
                 : std::max(piece_end, never_sent_until(object, {.offset = at, .length = range.end() - at}));
        repair.offset = at;
      }
    }
    add_repair(lane, id, repair);
  }
}

// The end of the run from the start of `range` that was neither given to a lane nor ever sent.
uint64_t Sender::never_sent_until(const Object& object, Range range) {
  const auto run_end = [&](const ExtentMap& map) {
    const std::vector<Range> run = map.missing(range, 1);
    return run.empty() || run.front().offset != range.offset ? range.offset : run.front().end();
  };
  return std::min(run_end(object.given), run_end(object.ledger.map()));
}

void Sender::add_repair(LaneId lane, ObjectId id, Range range) {
  if (range.length == 0 || !lanes_.contains(lane)) return;  // without flows: it will be asked for again
  out_.commands.push_back({.kind = board::CommandKind::kRepair, .lane = lane, .object = id, .range = range});
  lanes_[lane].repair_until_ns = now_ns_ + kRepairShareNs;
}

bool Sender::file_done(ObjectId id, uint64_t digest) {
  if (!objects_.contains(id)) return false;
  Object& object = objects_[id];
  if (object.done) return true;
  object.peer_digest = digest;
  peer_has(id, {{.offset = 0, .length = object.layout.size_bytes}});
  check_done(id);
  return true;
}

// ---- what is sent ------------------------------------------------------------------------------

void Sender::add_crc(ObjectId id, ExtentId extent, uint64_t crc) {
  if (objects_[id].ledger.add(extent, crc) == ExtentLedger::Add::kDiffers) out_.changed.push_back(id);
  check_done(id);
}

void Sender::check_done(ObjectId id) {
  Object& object = objects_[id];
  if (object.done || !object.ledger.complete()) return;
  if (object.peer_digest) {
    if (*object.peer_digest != object.ledger.digest()) {
      out_.differ.push_back(id);
      return;
    }
    object.done = true;
    object.placed.clear();
    ++done_;
    ++steps_;
    out_.done.push_back(id);
  } else if (may_give_ && !object.digest_reported) {
    object.digest_reported = true;
    out_.digests.push_back(id);
  }
}

bool Sender::wants(const LaneWork& work) const {
  if (work.parts.size() < kPartsQueuedMin) return true;
  const uint64_t enough = std::max(part_bytes_, options_.lane_rate_bps / 8 * kQueuedNs / 1'000'000'000);
  return work.parts.size() < kPartsQueuedMax && work.bytes < enough;
}

std::optional<Sender::Part> Sender::next_part() {
  for (; cursor_ < objects_.end_id(); ++cursor_) {
    Object& object = objects_[cursor_];
    if (object.done) continue;
    const Range rest{.offset = object.next_offset, .length = object.layout.size_bytes - object.next_offset};
    const std::vector<Range> run = object.given.missing(rest, 1);
    if (run.empty()) continue;
    if (!object.open) return std::nullopt;
    Part part{.object = cursor_, .offset = run.front().offset};
    // Cut at multiples of the partition, so that the pieces of a resumed file are not ever smaller.
    const uint64_t cut = (part.offset / part_bytes_ + 1) * part_bytes_;
    part.length = std::min(run.front().length, cut - part.offset);
    part.reported_end = part.offset;
    object.next_offset = part.offset + part.length;
    return part;
  }
  return std::nullopt;
}

void Sender::place(LaneId lane, const Part& part, uint64_t sent_end) {
  Object& object = objects_[part.object];
  const uint64_t end = part.offset + part.length;
  for (uint64_t at = part.offset; at < end; at += object.layout.extent_bytes) {
    object.given.set(object.given.extent_at(at));
  }
  object.placed[part.offset] = {.end = end, .sent_end = sent_end, .lane = lane};
}

void Sender::feed() {
  if (!may_give_) return;
  for (bool gave = true; gave;) {
    gave = false;
    for (LaneId lane; lane < lanes_.end_id(); ++lane) {
      LaneWork& work = lanes_[lane];
      if (!wants(work)) continue;
      const std::optional<Part> part = next_part();
      if (!part) return;
      place(lane, *part, part->offset);
      if (work.parts.empty()) work.moved_ns = now_ns_;
      work.parts.push_back(*part);
      work.bytes += part->length;
      out_.commands.push_back({.kind = board::CommandKind::kPartition,
                               .lane = lane,
                               .object = part->object,
                               .range = {.offset = part->offset, .length = part->length}});
      gave = true;
    }
  }
}

void Sender::object_opened(ObjectId id) {
  objects_[id].open = true;
  feed();
}

void Sender::on_event(const board::Event& event, LaneId lane) {
  if (!objects_.contains(ObjectId(event.object)) || !lanes_.contains(lane)) return;
  if (event.kind == board::EventKind::kExtentSent) extent_sent(event, lane);
  if (event.kind == board::EventKind::kPartitionSent) partition_sent(event, lane);
}

void Sender::extent_sent(const board::Event& event, LaneId lane) {
  const ObjectId id(event.object);
  Object& object = objects_[id];
  const Range range{.offset = event.offset, .length = event.length};
  const std::optional<ExtentId> extent = object.given.extent_of(range);
  if (!extent) return;
  // The peer has it by a repair that an earlier life of this control ordered, and will not list it for this
  // lane; told before the worker had opened it, the worker does not know.
  if (object.done || object.peer.is_set(*extent)) {
    out_.commands.push_back(
        {.kind = board::CommandKind::kPeerHas, .lane = lane, .object = id, .range = range});
  }
  if (object.done) return;
  lanes_[lane].moved_ns = now_ns_;
  ++steps_;
  Placed* const placed = placed_at(object, event.offset);
  if (placed != nullptr && placed->sent_end == event.offset) placed->sent_end += event.length;
  add_crc(id, *extent, event.digest);
}

void Sender::partition_sent(const board::Event& event, LaneId lane) {
  LaneWork& work = lanes_[lane];
  const uint64_t end = event.offset + event.length;
  // By its end: of a partition that was continued, only the rest is known here.
  const auto part = std::find_if(work.parts.begin(), work.parts.end(), [&](const Part& candidate) {
    return candidate.object == ObjectId(event.object) && candidate.offset + candidate.length == end;
  });
  if (part == work.parts.end()) return;
  report(lane, &*part, end);
  work.bytes -= part->length;
  work.parts.erase(part);
  feed();
}

void Sender::report(LaneId lane, Part* part, uint64_t end) {
  out_.sent.push_back({.object = part->object,
                       .lane = lane,
                       .range = {.offset = part->offset, .length = end - part->offset}});
  part->reported_end = end;
}

// A lane that stands still may hold all its credit in extents with holes: the peer can ask for them only
// when it knows that they were sent.
void Sender::tick(uint64_t now_ns) {
  now_ns_ = now_ns;
  for (LaneId lane; lane < lanes_.end_id(); ++lane) {
    if (now_ns - std::min(now_ns, lanes_[lane].moved_ns) < kStuckNs) continue;
    for (Part& part : lanes_[lane].parts) {
      const Placed* placed = placed_at(objects_[part.object], part.offset);
      if (placed != nullptr && placed->sent_end > part.reported_end) report(lane, &part, placed->sent_end);
    }
  }
}

bool Sender::has_work(LaneId lane, const board::FlowState& state) const {
  return !lanes_[lane].parts.empty() || lanes_[lane].repair_until_ns > now_ns_ ||
         state.opened_extents.load(std::memory_order_relaxed) >
             state.extents_done.load(std::memory_order_relaxed);
}

// ---- CRCs that this control does not know --------------------------------------------------------

std::optional<Sender::ObjectExtent> Sender::next_reread() {
  while (!unknown_.empty()) {
    Unknown& run = unknown_.front();
    const ObjectExtent next{.object = run.object, .extent = run.first++};
    if (run.first == run.end) unknown_.pop_front();
    if (!objects_[next.object].ledger.map().is_set(next.extent)) return next;
  }
  return std::nullopt;
}

void Sender::reread(const ObjectExtent& extent, uint64_t crc) { add_crc(extent.object, extent.extent, crc); }

}  // namespace sluice::recovery
