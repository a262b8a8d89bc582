// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/receiver.h"

#include <algorithm>

namespace sluice::recovery {
namespace {

constexpr uint64_t kPlanNs = 20'000'000;  // how often NEED and syncs are thought about

}  // namespace

Receiver::Receiver(const Indexed<ObjectId, Layout>& objects, const Options& options) : options_(options) {
  for (const Layout& layout : objects) {
    Object object;
    object.layout = layout;
    object.written = ExtentMap(layout);
    object.ledger = ExtentLedger(layout);
    active_.push_back(objects_.push_back(std::move(object)));
  }
}

void Receiver::restored() {
  for (Object& object : objects_) {
    object.written = object.ledger.map();
    object.digest = object.ledger.digest();
    bytes_written_ += object.written.set_bytes();
  }
}

void Receiver::start_attempt(uint64_t now_ns) {
  now_ns_ = now_ns;
  adoption_.reset();
  for (Object& object : objects_) {
    object.planner = NeedPlanner();
    object.finishing = false;
    object.queries = 0;
    object.need.clear();
  }
}

void Receiver::fold(Object& object, ExtentId extent, uint64_t crc) const {
  const uint64_t end = object.written.range_of(extent).end();
  object.digest ^= crc::shift(object.layout.crc_kind, crc, object.layout.size_bytes - end);
}

void Receiver::on_event(const board::Event& event) {
  const ObjectId id(event.object);
  if (!objects_.contains(id)) return;
  const bool answer = event.kind == board::EventKind::kMissing || event.kind == board::EventKind::kMissingEnd;
  // Also of an object that became done meanwhile: each answer is waited for.
  if (answer && adoption_ && event.tag == kAdoptTag) return adopt_answer(id, event);
  if (objects_[id].done) return;
  if (event.kind == board::EventKind::kExtentWritten) return extent_written(id, event);
  if (answer) missing(id, event);
}

void Receiver::extent_written(ObjectId id, const board::Event& event) {
  Object& object = objects_[id];
  const std::optional<ExtentId> extent =
      object.written.extent_of({.offset = event.offset, .length = event.length});
  if (!extent || !object.written.set(*extent)) return;
  fold(object, *extent, event.digest);
  object.planner.progress(now_ns_);
  bytes_written_ += event.length;
  if (object.unsynced.empty()) object.unsynced_since_ns = now_ns_;
  object.unsynced.emplace(*extent, event.digest);
  object.unsynced_bytes += event.length;
  unsynced_bytes_ += event.length;
  check_complete(id);
}

bool Receiver::partition_sent(ObjectId id, LaneId lane, Range range) {
  if (!objects_.contains(id)) return false;
  Object& object = objects_[id];
  return object.done || object.planner.sent(object.written, lane, range, now_ns_);
}

bool Receiver::file_digest(ObjectId id, uint64_t size, uint64_t digest) {
  if (!objects_.contains(id) || size != objects_[id].layout.size_bytes) return false;
  objects_[id].source_digest = digest;
  check_complete(id);
  return true;
}

// Complete, equal, and durable or small enough: its name is all that it lacks.
void Receiver::check_complete(ObjectId id) {
  Object& object = objects_[id];
  if (object.done || object.finishing || !object.written.complete() || !object.source_digest) return;
  if (object.digest != *object.source_digest) {
    out_.differ.push_back(id);
    return;
  }
  const bool small = object.ledger.map().set_extents() == 0 && !object.sync_under_way &&
                     object.layout.size_bytes <= kDirectCommitBytes;
  if (!small && !object.ledger.complete()) {
    if (!object.sync_under_way) out_.syncs.push_back(id);
    return;
  }
  object.finishing = true;
  out_.finished.push_back(id);
}

void Receiver::tick(uint64_t now_ns) {
  now_ns_ = now_ns;
  if (now_ns - planned_ns_ < kPlanNs) return;
  planned_ns_ = now_ns;
  for (const ObjectId id : active_) {
    if (!adoption_) plan_need(id);
    plan_sync(id);
  }
}

void Receiver::plan_need(ObjectId id) {
  Object& object = objects_[id];
  if (object.written.complete()) return;
  const std::vector<Query> queries = object.planner.due(object.written, now_ns_);
  if (queries.empty()) return;
  object.need.clear();
  object.asked = queries;
  object.queries = static_cast<uint32_t>(queries.size());
  object.query_tag = object.query_tag % (kAdoptTag - 1) + 1;
  for (const Query& query : queries) {
    out_.commands.push_back({.kind = board::CommandKind::kQueryMissing,
                             .lane = query.lane,
                             .object = id,
                             .range = query.range,
                             .tag = object.query_tag});
  }
}

void Receiver::missing(ObjectId id, const board::Event& event) {
  Object& object = objects_[id];
  if (event.tag != object.query_tag || object.queries == 0) return;  // of a round that was given up
  if (event.kind == board::EventKind::kMissing) {
    const Range range = object.written.cut({.offset = event.offset, .length = event.length});
    if (range.length == 0 || object.need.size() == NeedPlanner::kRangesMax) return;
    const auto query = std::ranges::find_if(object.asked, [&](const Query& each) {
      return range.offset < each.range.end() && each.range.offset < range.end();
    });
    if (query == object.asked.end()) return;
    object.need.push_back({.lane = query->lane, .range = range});
    return;
  }
  if (--object.queries == 0) say_need(id, std::exchange(object.need, {}));
}

void Receiver::say_need(ObjectId id, const std::vector<Query>& pieces) {
  std::map<LaneId, std::vector<Range>> by_lane;
  for (const Query& piece : pieces) by_lane[piece.lane].push_back(piece.range);
  for (auto& [lane, ranges] : by_lane) {
    out_.needs.push_back({.object = id, .lane = lane, .ranges = std::move(ranges)});
  }
}

void Receiver::plan_sync(ObjectId id) {
  Object& object = objects_[id];
  if (object.unsynced.empty() || object.finishing || object.sync_under_way) return;
  if (object.written.complete() && object.source_digest) return check_complete(id);
  if (unsynced_bytes_ < options_.sync_lag_bytes &&
      now_ns_ - object.unsynced_since_ns < options_.sync_lag_ns) {
    return;
  }
  out_.syncs.push_back(id);
}

size_t Receiver::begin_sync(ObjectId id) {
  Object& object = objects_[id];
  if (object.sync_under_way || object.finishing || object.done || object.unsynced.empty()) return 0;
  object.sync_under_way = true;
  object.syncing = std::exchange(object.unsynced, {});
  return object.syncing.size();
}

std::vector<Block> Receiver::synced(ObjectId id) {
  Object& object = objects_[id];
  for (const auto& [extent, crc] : object.syncing) object.ledger.add(extent, crc);
  std::vector<Block> blocks = object.ledger.take_changed();
  object.journalling.clear();
  for (const Block& block : blocks) object.journalling.push_back(block.id);
  return blocks;
}

void Receiver::not_journalled(ObjectId id) {
  Object& object = objects_[id];
  for (const BlockId block : object.journalling) object.ledger.mark_changed(block);
  object.unsynced.merge(object.syncing);
  object.syncing.clear();
  object.sync_under_way = false;
}

std::vector<Range> Receiver::durable(ObjectId id) {
  Object& object = objects_[id];
  std::vector<ExtentId> extents;
  for (const auto& [extent, crc] : std::exchange(object.syncing, {})) {
    extents.push_back(extent);
    const uint64_t bytes = object.written.range_of(extent).length;
    object.unsynced_bytes -= bytes;
    unsynced_bytes_ -= bytes;
  }
  object.sync_under_way = false;
  check_complete(id);
  return join_extents(object.written, std::move(extents));
}

bool Receiver::sync_failed(ObjectId id) {
  Object& object = objects_[id];
  // Also what was written while it ran: the error may be that of any write before its end.
  object.syncing.merge(object.unsynced);
  object.unsynced.clear();
  std::vector<ExtentId> extents;
  for (const auto& [extent, crc] : std::exchange(object.syncing, {})) {
    if (object.ledger.map().is_set(extent)) {  // synced before; only the journal does not know it yet
      object.unsynced.emplace(extent, crc);
      continue;
    }
    extents.push_back(extent);
    const uint64_t bytes = object.written.range_of(extent).length;
    object.unsynced_bytes -= bytes;
    unsynced_bytes_ -= bytes;
    bytes_written_ -= bytes;
    fold(object, extent, crc);
    object.written.clear(extent);
  }
  object.sync_under_way = false;
  forget(id, std::move(extents));
  return !std::exchange(object.sync_failed, true);
}

// The worker takes these extents anew, and the source is asked for them.
void Receiver::forget(ObjectId id, std::vector<ExtentId> extents) {
  if (extents.empty()) return;
  Object& object = objects_[id];
  std::vector<Query> pieces;
  for (const Range& range : join_extents(object.written, std::move(extents))) {
    const LaneId lane = object.planner.lane_of(range.offset);
    out_.commands.push_back(
        {.kind = board::CommandKind::kForgetExtents, .lane = lane, .object = id, .range = range});
    // If the bytes of this need are lost, the planner asks for them again.
    object.planner.sent(object.written, lane, range, now_ns_);
    pieces.push_back({.lane = lane, .range = range});
  }
  say_need(id, pieces);
}

void Receiver::begin_anew(ObjectId id) {
  Object& object = objects_[id];
  bytes_written_ -= object.written.set_bytes();
  unsynced_bytes_ -= object.unsynced_bytes;
  Object fresh;
  fresh.layout = object.layout;
  fresh.written = ExtentMap(object.layout);
  fresh.ledger = ExtentLedger(object.layout);
  object = std::move(fresh);
}

void Receiver::set_done(ObjectId id, uint64_t digest) {
  Object& object = objects_[id];
  if (object.done) return;
  object.digest = digest;
  object.done = true;
  object.finishing = false;
  bytes_written_ += object.layout.size_bytes - object.written.set_bytes();  // a row of the journal says so
  unsynced_bytes_ -= std::exchange(object.unsynced_bytes, 0);
  object.unsynced.clear();
  ++done_;
  std::erase(active_, id);
}

std::vector<Range> Receiver::held(ObjectId id) const {
  const ExtentMap& written = objects_[id].written;
  const uint64_t size = written.size_bytes();
  std::vector<Range> held;
  uint64_t from = 0;
  while (from < size) {
    const std::vector<Range> hole = written.missing({.offset = from, .length = size - from}, 1);
    const uint64_t end = hole.empty() ? size : hole.front().offset;
    if (end > from) held.push_back({.offset = from, .length = end - from});
    from = hole.empty() ? end : hole.front().end();
  }
  return held;
}

// ---- continuing the flows of another control ---------------------------------------------------

void Receiver::adopt(uint32_t lanes, const std::vector<ObjectId>& open_objects, uint64_t now_ns) {
  start_attempt(now_ns);
  adoption_ = Adoption{};
  adoption_->lanes = lanes;
  for (const ObjectId id : open_objects) {
    if (objects_[id].done) continue;
    // Bits are what is missing, as far as it was answered.
    adoption_->objects[id].missing = ExtentMap(objects_[id].layout);
    adopt_query(id, 0);
  }
  if (adoption_->answers == 0) adoption_.reset();
}

void Receiver::adopt_query(ObjectId id, uint64_t from) {
  Adoption::Found& found = adoption_->objects[id];
  found.runs = 0;
  found.end = from;
  ++adoption_->answers;
  const uint64_t bytes = objects_[id].layout.size_bytes - from;
  // An extent that is being written will be told of: it must not be taken for one that was told already.
  out_.commands.push_back({.kind = board::CommandKind::kQueryUnwritten,
                           .object = id,
                           .range = {.offset = from, .length = bytes},
                           .tag = kAdoptTag});
}

void Receiver::adopt_answer(ObjectId id, const board::Event& event) {
  const auto at = adoption_->objects.find(id);
  if (at == adoption_->objects.end() || adoption_->answers == 0) return;
  Adoption::Found& found = at->second;
  const Layout& layout = objects_[id].layout;
  if (event.kind == board::EventKind::kMissing) {
    const Range range = found.missing.cut({.offset = event.offset, .length = event.length});
    if (adoption_->round != Adoption::Round::kMissing || range.length == 0) return;
    ++found.runs;
    const ExtentId last = found.missing.extent_at(range.end() - 1);
    for (ExtentId extent = found.missing.extent_at(range.offset); extent <= last; ++extent) {
      found.missing.set(extent);
    }
    found.end = std::max(found.end, range.end());
    return;
  }
  --adoption_->answers;
  if (adoption_->round == Adoption::Round::kMissing) {
    // An answer is cut when it has too many runs: there may be more behind its last extent.
    const uint64_t next = (found.end + layout.extent_bytes - 1) / layout.extent_bytes * layout.extent_bytes;
    if (found.runs >= kAnswerRuns && next < layout.size_bytes) adopt_query(id, next);
  }
  if (adoption_->answers != 0) return;
  if (adoption_->round == Adoption::Round::kMissing) {
    adoption_->round = Adoption::Round::kEvents;
    return adopt_barrier(id);
  }
  if (adoption_->round == Adoption::Round::kEvents && adopt_forget()) {
    adoption_->round = Adoption::Round::kForgotten;
    return adopt_barrier(id);
  }
  adopted();
}

// The source was told of bytes that were written and not durable, maybe in an attempt before this one, and
// does not send them again by itself. Whatever stays missing will be asked for.
void Receiver::adopted() {
  for (const auto& [id, found] : adoption_->objects) {
    Object& object = objects_[id];
    if (!object.done) object.planner.sent_unknown(now_ns_);
  }
  adoption_.reset();
}

void Receiver::adopt_barrier(ObjectId id) {
  for (LaneId lane; lane < LaneId(adoption_->lanes); ++lane) {
    ++adoption_->answers;
    out_.commands.push_back(
        {.kind = board::CommandKind::kQueryMissing, .lane = lane, .object = id, .tag = kAdoptTag});
  }
}

// Written by the worker, told to a control that is gone, and not in the journal: its CRC is lost.
bool Receiver::adopt_forget() {
  bool forgot = false;
  for (const auto& [id, found] : adoption_->objects) {
    if (objects_[id].done) continue;
    std::vector<ExtentId> unknown;
    for (ExtentId extent; extent < found.missing.end_id(); ++extent) {
      if (!found.missing.is_set(extent) && !objects_[id].written.is_set(extent)) unknown.push_back(extent);
    }
    forgot |= !unknown.empty();
    forget(id, std::move(unknown));
  }
  return forgot;
}

}  // namespace sluice::recovery
