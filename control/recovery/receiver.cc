// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/receiver.h"

#include <algorithm>

namespace sluice::recovery {
namespace {

constexpr uint64_t kPaceNs = 100'000'000;  // How fast bytes come is measured over so long.
constexpr uint64_t kPlanNs = 20'000'000;   // NEED and syncs are thought about so often.

}  // namespace

Receiver::Receiver(const Indexed<ObjectId, Layout>& objects, uint32_t lanes, const Options& options)
    : options_(options) {
  for (const Layout& layout : objects) add(layout);
  add_leg(LegId(), lanes);
}

void Receiver::add(const Layout& layout) {
  Object object;
  object.layout = layout;
  object.written = ExtentMap(layout);
  object.ledger = ExtentLedger(layout);
  unfinished_.push_back(objects_.push_back(std::move(object)));
}

void Receiver::sum(ObjectId id, sums::Mask wanted) {
  Object& object = objects_[id];
  object.sums = sums::Tree(
      {.size_bytes = object.layout.size_bytes, .extent_bytes = object.layout.extent_bytes}, wanted);
}

void Receiver::finish_restore() {
  for (Object& object : objects_) {
    object.written = object.ledger.map();
    object.digest = object.ledger.digest();
    bytes_written_ += object.written.set_bytes();
  }
}

void Receiver::start_attempt(LegId leg, uint32_t lanes, uint64_t now_ns) {
  adoption_.reset();
  flows_.clear();
  add_leg(leg, lanes);
  now_ns_ = now_ns;
  flows_ended_ = false;
  actions_ = {};  // of an attempt that is over
  for (Object& object : objects_) {
    object.planner = NeedPlanner();
    object.fence = {};
    object.finishing = false;
    object.unanswered = 0;
    object.found_missing.clear();
  }
}

void Receiver::add_leg(LegId leg, uint32_t lanes) {
  CHECK(!adoption_, "a leg joins when all is known of those that go on");
  for (LaneId lane; lane < LaneId(lanes); ++lane) flows_.push_back({.leg = leg, .lane = lane});
}

void Receiver::drop_leg(LegId leg) {
  const auto of_leg = [leg](const auto& each) { return each.flow.leg == leg; };
  if (std::erase_if(flows_, [leg](FlowRef flow) { return flow.leg == leg; }) == 0) return;
  std::erase_if(actions_.commands, of_leg);
  std::erase_if(actions_.needs, of_leg);
  for (const ObjectId id : unfinished_) {
    Object& object = objects_[id];
    object.planner.drop(leg);
    // Nobody knows which of the answers that are still to come would have been its own.
    if (object.fence.awaited == 0) continue;
    object.fence = {};
    finish_if_complete(id);
  }
}

bool Receiver::has(FlowRef flow) const { return std::ranges::find(flows_, flow) != flows_.end(); }

Receiver::Actions Receiver::take_actions() {
  check_invariants();
  return std::exchange(actions_, {});
}

void Receiver::order(const LaneCommand& command) {
  if (flows_.empty()) return;  // Without flows there is no worker to tell.
  CHECK(has(command.flow), "a command goes to a flow of this attempt");
  DCHECK(command.range.end() <= objects_[command.object].layout.size_bytes, "its range lies in the object");
  actions_.commands.push_back(command);
}

uint64_t Receiver::shifted(const Object& object, ExtentId extent, uint64_t crc) {
  const uint64_t behind = object.layout.size_bytes - object.written.range_of(extent).end();
  return crc::shift(object.layout.crc_kind, crc, behind);
}

void Receiver::on_event(const board::Event& event) {
  const ObjectId id(event.object);
  if (!objects_.contains(id)) return;
  const bool answer = event.kind == board::EventKind::kMissing || event.kind == board::EventKind::kMissingEnd;
  // The adoption awaits each answer, also that about an object which became done meanwhile.
  if (answer && adoption_ && event.tag == kAdoptTag) return adoption_answered(id, event);
  if (objects_[id].done) return;
  if (event.kind == board::EventKind::kExtentWritten) return extent_written(id, event);
  if (event.kind == board::EventKind::kGivenUp) return given_up(id, event);
  if (answer) query_answered(id, event);
}

void Receiver::extent_written(ObjectId id, const board::Event& event) {
  Object& object = objects_[id];
  const std::optional<ExtentId> extent =
      object.written.extent_of({.offset = event.offset, .length = event.length});
  if (!extent || !object.written.set(*extent)) return;
  object.digest ^= shifted(object, *extent, event.digest);
  const sums::Mask wanted = object.sums.wanted();
  if (wanted != 0 && (event.tag & wanted) == wanted)
    object.sums.add({.subtree = {.first = extent->value()}, .sums = event.sums});
  object.planner.note_progress(now_ns_);
  bytes_written_ += event.length;
  if (object.unsynced.empty()) object.unsynced_since_ns = now_ns_;
  object.unsynced.emplace(*extent, event.digest);
  object.unsynced_bytes += event.length;
  unsynced_bytes_ += event.length;
  finish_if_complete(id);
}

bool Receiver::partition_sent(ObjectId id, FlowRef flow, Range range) {
  if (!objects_.contains(id) || !has(flow)) return false;
  Object& object = objects_[id];
  return object.done || object.planner.note_sent(object.written, flow, range, now_ns_);
}

bool Receiver::file_digest(ObjectId id, const FileDigest& file) {
  if (!objects_.contains(id) || file.size_bytes != objects_[id].layout.size_bytes) return false;
  objects_[id].source_digest = file.digest;
  finish_if_complete(id);
  return true;
}

// What is complete, equal to the source's, and durable or small enough lacks nothing but its name.
void Receiver::finish_if_complete(ObjectId id) {
  Object& object = objects_[id];
  if (object.done || object.finishing || !object.written.complete() || !object.source_digest) return;
  if (object.digest != *object.source_digest) {
    actions_.differ.push_back(id);
    return;
  }
  // What was synced is journalled and reported first; then this is asked again.
  if (object.sync_under_way) return;
  const bool small = object.ledger.map().set_extents() == 0 && object.layout.size_bytes <= kDirectCommitBytes;
  if (!small && !object.ledger.complete()) {
    actions_.syncs.push_back(id);
    return;
  }
  if (next_unread(object)) return;  // This is asked again when the last of them was read.
  if (!fenced(id)) return;
  object.finishing = true;
  actions_.finished.push_back(id);
}

void Receiver::finish_later(ObjectId id) {
  objects_[id].finishing = false;
  objects_[id].source_digest.reset();
}

void Receiver::arrived(uint64_t bytes, uint64_t now_ns) {
  if (bytes == 0) return;
  arrivals_.last_ns = now_ns;
  pace_bytes_ += bytes;
  const uint64_t passed_ns = now_ns - std::min(now_ns, pace_since_ns_);
  if (passed_ns < kPaceNs) return;
  const double bytes_per_s = static_cast<double>(pace_bytes_) * 1e9 / static_cast<double>(passed_ns);
  arrivals_.best_bytes_per_s = std::max(arrivals_.best_bytes_per_s, static_cast<uint64_t>(bytes_per_s));
  pace_since_ns_ = now_ns;
  pace_bytes_ = 0;
}

void Receiver::tick(uint64_t now_ns) {
  now_ns_ = now_ns;
  if (now_ns - planned_ns_ < kPlanNs) return;
  planned_ns_ = now_ns;
  for (const ObjectId id : unfinished_) {
    if (!adoption_) plan_need(id);
    plan_sync(id);
    const Fence& fence = objects_[id].fence;
    if (fence.writing && fence.awaited == 0) finish_if_complete(id);
  }
}

void Receiver::plan_need(ObjectId id) {
  Object& object = objects_[id];
  if (object.written.complete()) return;
  std::vector<Query> queries = object.planner.take_due(object.written, now_ns_, arrivals_);
  if (queries.empty()) return;
  for (Query& query : queries) query.flow = or_first(query.flow);
  object.found_missing.clear();
  object.asked = queries;
  object.unanswered = static_cast<uint32_t>(queries.size());
  // Tags go round, past 0 (no round has begun) and kAdoptTag.
  object.query_tag = object.query_tag % (kAdoptTag - 1) + 1;
  for (const Query& query : queries) {
    order({.kind = board::CommandKind::kQueryMissing,
           .flow = query.flow,
           .object = id,
           .range = query.range,
           .tag = object.query_tag});
  }
}

void Receiver::query_answered(ObjectId id, const board::Event& event) {
  Object& object = objects_[id];
  // An answer may belong to a round that was given up.
  if (event.tag != object.query_tag || object.unanswered == 0) return;
  if (event.kind == board::EventKind::kMissing) {
    const Range range = object.written.cut({.offset = event.offset, .length = event.length});
    if (range.length == 0 || object.found_missing.size() == NeedPlanner::kRangesMax) return;
    const auto query = std::ranges::find_if(object.asked, [&](const Query& each) {
      return range.offset < each.range.end() && each.range.offset < range.end();
    });
    if (query == object.asked.end()) return;  // Nobody asked for that.
    object.found_missing.push_back({.flow = or_first(query->flow), .range = range});
    return;
  }
  if (--object.unanswered == 0) add_needs(id, std::exchange(object.found_missing, {}));
}

void Receiver::add_needs(ObjectId id, const std::vector<Query>& pieces) {
  std::map<FlowRef, std::vector<Range>> by_flow;
  for (const Query& piece : pieces) by_flow[piece.flow].push_back(piece.range);
  for (auto& [flow, ranges] : by_flow) {
    actions_.needs.push_back({.object = id, .flow = flow, .ranges = std::move(ranges)});
  }
}

void Receiver::plan_sync(ObjectId id) {
  Object& object = objects_[id];
  if (object.unsynced.empty() || object.finishing || object.sync_under_way) return;
  if (object.written.complete() && object.source_digest) return finish_if_complete(id);
  if (unsynced_bytes_ < options_.sync_lag_bytes &&
      now_ns_ - object.unsynced_since_ns < options_.sync_lag_ns) {
    return;
  }
  actions_.syncs.push_back(id);
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

}  // namespace sluice::recovery
