// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/sender.h"

#include <algorithm>

namespace sluice::recovery {
namespace {

constexpr uint64_t kPartsPerLane = 4;  // A session's data is cut at least so finely.
constexpr size_t kPartsQueuedMin = 2;
constexpr size_t kPartsQueuedMax = 12;      // A worker takes 16.
constexpr uint64_t kQueuedNs = 5'000'000;   // A lane has queued at least what it sends in this time.
constexpr uint64_t kStuckNs = 200'000'000;  // Of a lane that stands still so long, what has left is reported.

uint64_t queued_bytes(uint64_t rate_bps) { return rate_bps / 8 * kQueuedNs / 1'000'000'000; }

}  // namespace

Sender::Sender(const Indexed<ObjectId, Layout>& objects, uint32_t lanes, const Options& options) {
  for (const Layout& layout : objects) add(layout);
  start_attempt(LegId(), lanes, options, 0);
}

void Sender::add(const Layout& layout) {
  Object object;
  object.layout = layout;
  object.ledger = ExtentLedger(layout);
  object.given = object.at_peer = object.unknown = object.wanted = ExtentMap(layout);
  bytes_total_ += layout.size_bytes;
  objects_.push_back(std::move(object));
}

// What needs no lane, an empty file or one of zeros, is reported at once.
void Sender::peer_knows(size_t objects) {
  const size_t before = std::exchange(known_, std::clamp(objects, known_, objects_.size()));
  for (size_t i = before; i < known_; ++i) finish_or_report(ObjectId(static_cast<uint32_t>(i)));
  give_parts();
}

void Sender::start_attempt(LegId leg, uint32_t lanes, const Options& options, uint64_t now_ns) {
  now_ns_ = now_ns;
  may_give_ = adopted_ = false;
  known_ = objects_.size();
  actions_ = {};  // of an attempt that is over
  lanes_.clear();
  told_.clear();
  add_leg(leg, lanes, options);
  cursor_ = short_cursor_ = ObjectId();
  short_turn_ = false;
  unknown_.clear();
  wanted_.clear();
  to_open_.clear();
  desk_.clear();
  bytes_held_ = 0;
  for (Object& object : objects_) {
    const bool done = object.done;
    object.given = object.at_peer = object.unknown = object.wanted = ExtentMap(object.layout);
    object.placed.clear();
    object.next_offset = 0;
    object.open = false;
    object.digest_reported = false;
    if (done && !object.failed) bytes_held_ += object.layout.size_bytes;
  }
}

void Sender::add_leg(LegId leg, uint32_t lanes, const Options& options) {
  const bool first = lanes_.empty();
  if (!first) options_.partition_bytes = std::min(options_.partition_bytes, options.partition_bytes);
  if (first) options_ = options;
  for (LaneId lane; lane < LaneId(lanes); ++lane)
    lanes_.try_emplace({.leg = leg, .lane = lane}).first->second.rate_bps = options.lane_rate_bps;
  cut_parts();
}

// A small session is cut more finely, so that each lane gets its share.
void Sender::cut_parts() {
  part_bytes_ = options_.partition_bytes;
  if (objects_.empty()) return;
  const uint64_t extent_bytes = objects_.begin()->layout.extent_bytes;
  if (options_.obeys_wants) {  // what a lane has the peer cannot take back
    const uint64_t queued = queued_bytes(options_.lane_rate_bps) / kPartsQueuedMax;
    part_bytes_ = std::min(part_bytes_, (queued / extent_bytes + 1) * extent_bytes);
  }
  if (lanes_.size() <= 1) return;
  const uint64_t share = bytes_total_ / (lanes_.size() * kPartsPerLane) / extent_bytes + 1;
  part_bytes_ = std::min(part_bytes_, share * extent_bytes);
}

void Sender::drop_leg(LegId leg) {
  const auto of_leg = [leg](const auto& each) { return each.flow.leg == leg; };
  std::erase_if(lanes_, [leg](const auto& each) { return each.first.leg == leg; });
  std::erase_if(actions_.commands, of_leg);
  std::erase_if(actions_.sent, of_leg);
  told_.erase(leg);
  if (!lanes_.empty()) cut_parts();
  for (ObjectId id; id < objects_.end_id(); ++id) {
    Object& object = objects_[id];
    std::erase_if(object.placed, [leg](const auto& each) { return each.second.flow.leg == leg; });
    give_again(id);
  }
  give_parts();
}

// What the peer has not, and no lane that is there.
void Sender::give_again(ObjectId id) {
  Object& object = objects_[id];
  if (object.done || object.withdrawn) return;
  object.given = object.at_peer;
  for (const auto& [offset, placed] : object.placed)
    object.given.set({object.given.extent_at(offset), object.given.extent_at(placed.end - 1).plus(1)});
  give_from_start(id);
}

void Sender::give_from_start(ObjectId id) {
  objects_[id].next_offset = 0;
  cursor_ = std::min(cursor_, id);
  short_cursor_ = std::min(short_cursor_, id);
}

Sender::Actions Sender::take_actions() {
  check_invariants();
  return std::exchange(actions_, {});
}

void Sender::order(const LaneCommand& command) {
  CHECK(lanes_.contains(command.flow), "a command goes to a flow of this attempt");
  DCHECK(command.range.length != 0 && command.range.end() <= objects_[command.object].layout.size_bytes,
         "its range lies in the object");
  actions_.commands.push_back(command);
}

void Sender::adopt(const board::Event& event, FlowRef flow) {
  const ObjectId id(event.object);
  if (!objects_.contains(id) || !lanes_.contains(flow)) return;
  if (event.offset % objects_[id].layout.extent_bytes != 0) return;
  const Range range = objects_[id].given.cut({.offset = event.offset, .length = event.length});
  if (range.length == 0) return;
  adopted_ = true;
  const Part part{.object = id, .offset = range.offset, .length = range.length, .reported_end = range.offset};
  if (event.kind == board::EventKind::kQueued) {
    place(flow, part, part.offset);
    lanes_[flow].parts.push_back(part);
    lanes_[flow].queued_bytes += part.length;
  } else if (event.kind == board::EventKind::kHeld) {
    place(flow, part, part.offset + part.length);
  }
}

void Sender::add_crc(ObjectId id, ExtentId extent, uint64_t crc) {
  if (objects_[id].ledger.add(extent, crc) == ExtentLedger::Add::kDiffers) actions_.changed.push_back(id);
  if (options_.obeys_wants && !objects_[id].done && !objects_[id].withdrawn) desk_.note(id, extent, crc);
  finish_or_report(id);
}

void Sender::finish_or_report(ObjectId id) {
  Object& object = objects_[id];
  const bool compares = object.ledger.complete();
  const bool trusts = options_.obeys_wants && object.peer_digest;
  if (object.done || (!compares && !trusts)) return;
  if (object.peer_digest) {
    if (compares && *object.peer_digest != object.ledger.digest()) {
      actions_.differ.push_back(id);
      return;
    }
    object.done = true;
    object.placed.clear();
    end_wants(id);
    // The peer may have asked for parts again after it had called the file done.
    bytes_held_ += object.layout.size_bytes - object.at_peer.set_bytes();
    ++done_;
    ++steps_;
    actions_.done.push_back(id);
  } else if (may_give_ && id.value() < known_ && !object.digest_reported && !object.withdrawn &&
             !options_.obeys_wants) {
    object.digest_reported = true;
    actions_.digests.push_back(id);
  }
}

bool Sender::has_room(const LaneWork& work) const {
  if (work.parts.size() < kPartsQueuedMin) return true;
  const uint64_t enough = std::max(part_bytes_, queued_bytes(work.rate_bps));
  return work.parts.size() < kPartsQueuedMax && work.queued_bytes < enough;
}

std::optional<Sender::Part> Sender::take_next_part() {
  if (options_.obeys_wants) return take_wanted_part();
  short_turn_ = !short_turn_;
  std::optional<Part> part;
  if (short_turn_) part = take_part_of(&short_cursor_, true);
  if (!part) part = take_part_of(&cursor_, false);
  // The one whose turn it is may not be open yet.
  if (!part) part = take_part_of(&short_cursor_, true);
  return part;
}

std::optional<Sender::Part> Sender::take_part_of(ObjectId* cursor, bool short_only) {
  for (; *cursor < objects_.end_id(); ++*cursor) {
    Object& object = objects_[*cursor];
    if (object.done || object.withdrawn || (short_only && !is_short(object))) continue;
    const Range rest{.offset = object.next_offset, .length = object.layout.size_bytes - object.next_offset};
    const std::vector<Range> run = object.given.missing(rest, 1);
    if (run.empty()) continue;
    if (!object.open) return std::nullopt;  // those behind it are opened later
    Part part{.object = *cursor, .offset = run.front().offset};
    part.length = std::min(run.front().length, cut_at(part.offset) - part.offset);
    part.reported_end = part.offset;
    CHECK(part.offset >= object.next_offset && part.length != 0, "the next part lies behind those given");
    object.next_offset = part.offset + part.length;
    return part;
  }
  return std::nullopt;
}

// Where the part that begins at `offset` ends. Cutting at multiples of the partition keeps the pieces of a
// file that is often resumed from becoming smaller each time.
uint64_t Sender::cut_at(uint64_t offset) const {
  CHECK(part_bytes_ != 0, "partitions have bytes");
  return (offset / part_bytes_ + 1) * part_bytes_;
}

void Sender::place(FlowRef flow, const Part& part, uint64_t sent_end) {
  Object& object = objects_[part.object];
  const uint64_t end = part.offset + part.length;
  const ExtentRun run{object.given.extent_at(part.offset), object.given.extent_at(end - 1).plus(1)};
  object.given.set(run);
  if (object.wanted.clear(run) != 0 && object.wanted.set_extents() == 0) wanted_.erase(part.object);
  add_placed(object, part.offset, {.end = end, .sent_end = sent_end, .flow = flow});
}

// Of two lanes that have the same extent, as workers that were found may, the one that has more from there on
// is remembered, so that nothing of it is taken for left over.
void Sender::add_placed(Object& object, uint64_t offset, const Placed& placed) {
  const auto [at, is_new] = object.placed.try_emplace(offset, placed);
  if (!is_new && at->second.end < placed.end) at->second = placed;
}

void Sender::give_parts() {
  if (!may_give_) return;
  for (bool gave = true; gave;) {
    gave = false;
    for (auto& [flow, work] : lanes_) {
      if (!work.ready || !has_room(work)) continue;
      const std::optional<Part> part = take_next_part();
      if (!part) return;
      place(flow, *part, part->offset);
      if (work.parts.empty()) work.moved_ns = now_ns_;
      work.parts.push_back(*part);
      work.queued_bytes += part->length;
      order({.kind = board::CommandKind::kPartition,
             .flow = flow,
             .object = part->object,
             .range = {.offset = part->offset, .length = part->length}});
      gave = true;
    }
  }
}

void Sender::object_opened(ObjectId id) {
  objects_[id].open = true;
  to_open_.erase(id);
  give_parts();
}

void Sender::on_event(const board::Event& event, FlowRef flow) {
  if (!objects_.contains(ObjectId(event.object)) || !lanes_.contains(flow)) return;
  if (event.kind == board::EventKind::kExtentSent) extent_sent(event, flow);
  if (event.kind == board::EventKind::kPartitionSent) partition_sent(event, flow);
}

void Sender::extent_sent(const board::Event& event, FlowRef flow) {
  const ObjectId id(event.object);
  Object& object = objects_[id];
  const Range range{.offset = event.offset, .length = event.length};
  const std::optional<ExtentId> extent = object.given.extent_of(range);
  if (!extent) return;
  // The peer has this extent by another lane, and will not list it for this one, which would hold it for
  // ever. The worker may have been told so before it opened the extent, and then does not remember.
  if (object.done || object.withdrawn || object.at_peer.is_set(*extent)) {
    order({.kind = board::CommandKind::kPeerHas, .flow = flow, .object = id, .range = range});
  }
  if (object.done || object.withdrawn) return;
  lanes_[flow].moved_ns = now_ns_;
  ++steps_;
  Placed* const placed = placed_at(object, range.offset);
  if (placed != nullptr && placed->sent_end == range.offset) {
    // What a worker said that it had may end within this extent.
    placed->sent_end = std::min(range.end(), placed->end);
  }
  add_crc(id, *extent, event.digest);
}

void Sender::partition_sent(const board::Event& event, FlowRef flow) {
  LaneWork& work = lanes_[flow];
  const uint64_t end = event.offset + event.length;
  // Its end tells which part this is: of a partition that a former control gave, only the rest is known.
  const auto part = std::find_if(work.parts.begin(), work.parts.end(), [&](const Part& candidate) {
    return candidate.object == ObjectId(event.object) && candidate.offset + candidate.length == end;
  });
  if (part == work.parts.end()) return;
  report_sent(flow, &*part, end);
  work.queued_bytes -= part->length;
  work.parts.erase(part);
  give_parts();
}

void Sender::report_sent(FlowRef flow, Part* part, uint64_t end) {
  actions_.sent.push_back({.object = part->object,
                           .flow = flow,
                           .range = {.offset = part->offset, .length = end - part->offset}});
  part->reported_end = end;
}

// A lane that stands still may have used up its credit for extents with holes. The peer asks for what is
// missing in them only when it knows that they were sent.
void Sender::tick(uint64_t now_ns) {
  now_ns_ = now_ns;
  // What is opened ahead goes by the cursor: it also passes what became done with nothing to give.
  give_parts();
  for (auto& [flow, work] : lanes_) {
    if (now_ns - std::min(now_ns, work.moved_ns) < kStuckNs) continue;
    for (Part& part : work.parts) {
      const uint64_t end = sent_until(flow, part);
      if (end > part.reported_end) report_sent(flow, &part, end);
    }
  }
}

// How far this lane is with its part, of which the peer may have lost pieces that others send now.
uint64_t Sender::sent_until(FlowRef flow, const Part& part) const {
  const uint64_t part_end = part.offset + part.length;
  const std::map<uint64_t, Placed>& placed = objects_[part.object].placed;
  uint64_t end = part.offset;
  for (auto at = placed.lower_bound(part.offset); at != placed.end() && at->first < part_end; ++at) {
    const bool sent = at->second.flow == flow && at->second.sent_end > at->first;
    if (sent) end = std::min(at->second.sent_end, part_end);
  }
  return end;
}

bool Sender::has_work(FlowRef flow, const board::FlowState& state) const {
  const auto lane = lanes_.find(flow);
  if (lane == lanes_.end()) return false;
  return !lane->second.parts.empty() || lane->second.repair_until_ns > now_ns_ ||
         state.opened_extents.load(std::memory_order_relaxed) >
             state.extents_done.load(std::memory_order_relaxed);
}

std::optional<Sender::UnknownRun> Sender::take_unknown() {
  if (options_.obeys_wants) return take_unread();
  std::optional<UnknownRun> taken;
  while (!unknown_.empty()) {
    UnknownRun& run = unknown_.front();
    const ExtentId next = run.first;
    Object& object = objects_[run.object];
    if (object.withdrawn) {
      if (taken) break;
      object.unknown = ExtentMap(object.layout);
      const ObjectId withdrawn = run.object;
      std::erase_if(unknown_, [&](const UnknownRun& each) { return each.object == withdrawn; });
      continue;
    }
    const bool wanted = !object.ledger.map().is_set(next);
    if (taken && (!wanted || run.object != taken->object || next != taken->end ||
                  ExtentLedger::block_of(next) != ExtentLedger::block_of(taken->first)))
      break;
    object.unknown.clear(next);
    if (wanted && !taken) taken = {.object = run.object, .first = next, .end = next};
    if (wanted) ++taken->end;
    if (++run.first == run.end) unknown_.pop_front();
  }
  return taken;
}

void Sender::reread(ObjectId object, ExtentId first, const std::vector<uint64_t>& crcs) {
  for (const uint64_t crc : crcs) add_crc(object, first++, crc);
}

}  // namespace sluice::recovery
