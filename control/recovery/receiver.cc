// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/receiver.h"

#include <algorithm>

namespace sluice::recovery {
namespace {

constexpr uint64_t kPlanNs = 20'000'000;  // how often NEED and syncs are thought about

}  // namespace

Receiver::Receiver(std::vector<Layout> objects, const Options& options) : options_(options) {
  for (const Layout& layout : objects) {
    Object object;
    object.layout = layout;
    object.written = ExtentMap(layout.size_bytes, layout.extent_bytes);
    object.ledger = ExtentLedger(layout);
    active_.push_back(static_cast<uint32_t>(objects_.size()));
    objects_.push_back(std::move(object));
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

void Receiver::fold(Object& object, uint64_t extent, uint64_t crc) const {
  const uint64_t end = object.written.extent_offset(extent) + object.written.extent_length(extent);
  object.digest ^= crc::shift(object.layout.crc_kind, crc, object.layout.size_bytes - end);
}

void Receiver::on_event(const board::Event& event) {
  if (event.object >= objects_.size()) return;
  const bool answer = event.kind == board::EventKind::kMissing || event.kind == board::EventKind::kMissingEnd;
  // Also of an object that became done meanwhile: each answer is waited for.
  if (answer && adoption_ && event.tag == kAdoptTag) return adopt_answer(event.object, event);
  if (objects_[event.object].done) return;
  if (event.kind == board::EventKind::kExtentWritten) return extent_written(event.object, event);
  if (answer) missing(event.object, event);
}

void Receiver::extent_written(uint32_t index, const board::Event& event) {
  Object& object = objects_[index];
  uint64_t extent = 0;
  if (!object.written.is_extent(event.offset, event.length, &extent) || !object.written.set(extent)) return;
  fold(object, extent, event.digest);
  object.planner.progress(now_ns_);
  bytes_written_ += event.length;
  if (object.unsynced.empty()) object.unsynced_since_ns = now_ns_;
  object.unsynced.emplace(extent, event.digest);
  object.unsynced_bytes += event.length;
  unsynced_bytes_ += event.length;
  check_complete(index);
}

bool Receiver::partition_sent(uint32_t index, uint32_t lane, Range range) {
  if (index >= objects_.size()) return false;
  Object& object = objects_[index];
  return object.done || object.planner.sent(object.written, lane, range, now_ns_);
}

bool Receiver::file_digest(uint32_t index, uint64_t size, uint64_t digest) {
  if (index >= objects_.size() || size != objects_[index].layout.size_bytes) return false;
  objects_[index].source_digest = digest;
  check_complete(index);
  return true;
}

// Complete, equal, and durable or small enough: its name is all that it lacks.
void Receiver::check_complete(uint32_t index) {
  Object& object = objects_[index];
  if (object.done || object.finishing || !object.written.complete() || !object.source_digest) return;
  if (object.digest != *object.source_digest) {
    out_.differ.push_back(index);
    return;
  }
  const bool small = object.ledger.map().set_extents() == 0 && !object.sync_under_way &&
                     object.layout.size_bytes <= kDirectCommitBytes;
  if (!small && !object.ledger.complete()) {
    if (!object.sync_under_way) out_.syncs.push_back(index);
    return;
  }
  object.finishing = true;
  out_.finished.push_back(index);
}

void Receiver::tick(uint64_t now_ns) {
  now_ns_ = now_ns;
  if (now_ns - planned_ns_ < kPlanNs) return;
  planned_ns_ = now_ns;
  for (const uint32_t index : active_) {
    if (!adoption_) plan_need(index);
    plan_sync(index);
  }
}

void Receiver::plan_need(uint32_t index) {
  Object& object = objects_[index];
  if (object.written.complete()) return;
  const std::vector<Query> queries = object.planner.due(object.written, now_ns_);
  if (queries.empty()) return;
  object.need.clear();
  object.asked = queries;
  object.queries = static_cast<uint32_t>(queries.size());
  object.query_tag = object.query_tag % (kAdoptTag - 1) + 1;
  for (const Query& query : queries) {
    out_.commands.push_back(
        {board::CommandKind::kQueryMissing, query.lane, index, query.range, object.query_tag});
  }
}

void Receiver::missing(uint32_t index, const board::Event& event) {
  Object& object = objects_[index];
  if (event.tag != object.query_tag || object.queries == 0) return;  // of a round that was given up
  if (event.kind == board::EventKind::kMissing) {
    const uint64_t size = object.layout.size_bytes;
    if (event.length == 0 || event.offset >= size || object.need.size() == NeedPlanner::kRangesMax) return;
    const uint64_t length = std::min(event.length, size - event.offset);
    const auto query = std::ranges::find_if(object.asked, [&](const Query& each) {
      return event.offset < each.range.offset + each.range.length &&
             each.range.offset < event.offset + length;
    });
    if (query == object.asked.end()) return;
    object.need.push_back({query->lane, {event.offset, length}});
    return;
  }
  if (--object.queries == 0) say_need(index, std::exchange(object.need, {}));
}

void Receiver::say_need(uint32_t index, const std::vector<Query>& pieces) {
  std::map<uint32_t, std::vector<Range>> by_lane;
  for (const Query& piece : pieces) by_lane[piece.lane].push_back(piece.range);
  for (auto& [lane, ranges] : by_lane) out_.needs.push_back({index, lane, std::move(ranges)});
}

void Receiver::plan_sync(uint32_t index) {
  Object& object = objects_[index];
  if (object.unsynced.empty() || object.finishing || object.sync_under_way) return;
  if (object.written.complete() && object.source_digest) return check_complete(index);
  if (unsynced_bytes_ < options_.sync_lag_bytes &&
      now_ns_ - object.unsynced_since_ns < options_.sync_lag_ns) {
    return;
  }
  out_.syncs.push_back(index);
}

size_t Receiver::begin_sync(uint32_t index) {
  Object& object = objects_[index];
  if (object.sync_under_way || object.finishing || object.done || object.unsynced.empty()) return 0;
  object.sync_under_way = true;
  object.syncing = std::exchange(object.unsynced, {});
  return object.syncing.size();
}

std::vector<Block> Receiver::synced(uint32_t index) {
  Object& object = objects_[index];
  for (const auto& [extent, crc] : object.syncing) object.ledger.add(extent, crc);
  std::vector<Block> blocks = object.ledger.take_changed();
  object.journalling.clear();
  for (const Block& block : blocks) object.journalling.push_back(block.index);
  return blocks;
}

void Receiver::not_journalled(uint32_t index) {
  Object& object = objects_[index];
  for (const uint64_t block : object.journalling) object.ledger.mark_changed(block);
  object.unsynced.merge(object.syncing);
  object.syncing.clear();
  object.sync_under_way = false;
}

std::vector<Range> Receiver::durable(uint32_t index) {
  Object& object = objects_[index];
  std::vector<uint64_t> extents;
  for (const auto& [extent, crc] : std::exchange(object.syncing, {})) {
    extents.push_back(extent);
    const uint64_t bytes = object.written.extent_length(extent);
    object.unsynced_bytes -= bytes;
    unsynced_bytes_ -= bytes;
  }
  object.sync_under_way = false;
  check_complete(index);
  return join_extents(object.written, std::move(extents));
}

bool Receiver::sync_failed(uint32_t index) {
  Object& object = objects_[index];
  // Also what was written while it ran: the error may be that of any write before its end.
  object.syncing.merge(object.unsynced);
  object.unsynced.clear();
  std::vector<uint64_t> extents;
  for (const auto& [extent, crc] : std::exchange(object.syncing, {})) {
    if (object.ledger.map().is_set(extent)) {  // synced before; only the journal does not know it yet
      object.unsynced.emplace(extent, crc);
      continue;
    }
    extents.push_back(extent);
    const uint64_t bytes = object.written.extent_length(extent);
    object.unsynced_bytes -= bytes;
    unsynced_bytes_ -= bytes;
    bytes_written_ -= bytes;
    fold(object, extent, crc);
    object.written.clear(extent);
  }
  object.sync_under_way = false;
  forget(index, std::move(extents));
  return !std::exchange(object.sync_failed, true);
}

// The worker takes these extents anew, and the source is asked for them.
void Receiver::forget(uint32_t index, std::vector<uint64_t> extents) {
  if (extents.empty()) return;
  Object& object = objects_[index];
  std::vector<Query> pieces;
  for (const Range& range : join_extents(object.written, std::move(extents))) {
    const uint32_t lane = object.planner.lane_of(range.offset);
    out_.commands.push_back({board::CommandKind::kForgetExtents, lane, index, range, 0});
    // If the bytes of this need are lost, the planner asks for them again.
    object.planner.sent(object.written, lane, range, now_ns_);
    pieces.push_back({lane, range});
  }
  say_need(index, pieces);
}

void Receiver::begin_anew(uint32_t index) {
  Object& object = objects_[index];
  bytes_written_ -= object.written.set_bytes();
  unsynced_bytes_ -= object.unsynced_bytes;
  Object fresh;
  fresh.layout = object.layout;
  fresh.written = ExtentMap(object.layout.size_bytes, object.layout.extent_bytes);
  fresh.ledger = ExtentLedger(object.layout);
  object = std::move(fresh);
}

void Receiver::set_done(uint32_t index, uint64_t digest) {
  Object& object = objects_[index];
  if (object.done) return;
  object.digest = digest;
  object.done = true;
  object.finishing = false;
  bytes_written_ += object.layout.size_bytes - object.written.set_bytes();  // a row of the journal says so
  unsynced_bytes_ -= std::exchange(object.unsynced_bytes, 0);
  object.unsynced.clear();
  ++done_;
  std::erase(active_, index);
}

std::vector<Range> Receiver::held(uint32_t index) const {
  const ExtentMap& written = objects_[index].written;
  std::vector<Range> held;
  uint64_t from = 0;
  while (from < written.size_bytes()) {
    const std::vector<Range> hole = written.missing(from, written.size_bytes() - from, 1);
    const uint64_t end = hole.empty() ? written.size_bytes() : hole.front().offset;
    if (end > from) held.push_back({from, end - from});
    from = hole.empty() ? end : hole.front().offset + hole.front().length;
  }
  return held;
}

// ---- continuing the flows of another control ---------------------------------------------------

void Receiver::adopt(uint32_t lanes, const std::vector<uint32_t>& open_objects, uint64_t now_ns) {
  start_attempt(now_ns);
  adoption_ = Adoption{};
  adoption_->lanes = lanes;
  for (const uint32_t index : open_objects) {
    if (objects_[index].done) continue;
    const Layout& layout = objects_[index].layout;
    // Bits are what is missing, as far as it was answered.
    adoption_->objects[index].missing = ExtentMap(layout.size_bytes, layout.extent_bytes);
    adopt_query(index, 0);
  }
  if (adoption_->answers == 0) adoption_.reset();
}

void Receiver::adopt_query(uint32_t index, uint64_t from) {
  Adoption::Found& found = adoption_->objects[index];
  found.runs = 0;
  found.end = from;
  ++adoption_->answers;
  const uint64_t bytes = objects_[index].layout.size_bytes - from;
  // An extent that is being written will be told of: it must not be taken for one that was told already.
  out_.commands.push_back({board::CommandKind::kQueryUnwritten, 0, index, {from, bytes}, kAdoptTag});
}

void Receiver::adopt_answer(uint32_t index, const board::Event& event) {
  const auto at = adoption_->objects.find(index);
  if (at == adoption_->objects.end() || adoption_->answers == 0) return;
  Adoption::Found& found = at->second;
  const Layout& layout = objects_[index].layout;
  if (event.kind == board::EventKind::kMissing) {
    if (adoption_->round != Adoption::Round::kMissing || event.length == 0 ||
        event.offset >= layout.size_bytes)
      return;
    ++found.runs;
    const uint64_t end = event.offset + std::min(event.length, layout.size_bytes - event.offset);
    for (uint64_t extent = event.offset / layout.extent_bytes; extent * layout.extent_bytes < end; ++extent) {
      found.missing.set(extent);
    }
    found.end = std::max(found.end, end);
    return;
  }
  --adoption_->answers;
  if (adoption_->round == Adoption::Round::kMissing) {
    // An answer is cut when it has too many runs: there may be more behind its last extent.
    const uint64_t next = (found.end + layout.extent_bytes - 1) / layout.extent_bytes * layout.extent_bytes;
    if (found.runs >= kAnswerRuns && next < layout.size_bytes) adopt_query(index, next);
  }
  if (adoption_->answers != 0) return;
  if (adoption_->round == Adoption::Round::kMissing) {
    adoption_->round = Adoption::Round::kEvents;
    return adopt_barrier(index);
  }
  if (adoption_->round == Adoption::Round::kEvents && adopt_forget()) {
    adoption_->round = Adoption::Round::kForgotten;
    return adopt_barrier(index);
  }
  adopted();
}

// The source was told of bytes that were written and not durable, maybe in an attempt before this one, and
// does not send them again by itself. Whatever stays missing will be asked for.
void Receiver::adopted() {
  for (const auto& [index, found] : adoption_->objects) {
    Object& object = objects_[index];
    if (!object.done) object.planner.sent_unknown(now_ns_);
  }
  adoption_.reset();
}

void Receiver::adopt_barrier(uint32_t index) {
  for (uint32_t lane = 0; lane < adoption_->lanes; ++lane) {
    ++adoption_->answers;
    out_.commands.push_back({board::CommandKind::kQueryMissing, lane, index, {0, 0}, kAdoptTag});
  }
}

// Written by the worker, told to a control that is gone, and not in the journal: its CRC is lost.
bool Receiver::adopt_forget() {
  bool forgot = false;
  for (const auto& [index, found] : adoption_->objects) {
    if (objects_[index].done) continue;
    std::vector<uint64_t> unknown;
    for (uint64_t extent = 0; extent < found.missing.extents(); ++extent) {
      if (!found.missing.is_set(extent) && !objects_[index].written.is_set(extent)) unknown.push_back(extent);
    }
    forgot |= !unknown.empty();
    forget(index, std::move(unknown));
  }
  return forgot;
}

}  // namespace sluice::recovery
