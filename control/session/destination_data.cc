// The receiving end while data comes: extents, losses, what is needed again.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "control/session/destination.h"
#include "dataplane/crc/crc.h"

namespace sluice::control {
namespace {

constexpr uint64_t kPlanNs = 20'000'000;  // how often NEED is thought about

}  // namespace

void Destination::on_event(const board::Event& event, uint32_t /*lane*/) {
  if (event.object >= objects_.size()) return;
  switch (event.kind) {
    case board::EventKind::kExtentWritten:
      return extent_written(event);
    case board::EventKind::kExtentFailed:
      return extent_failed(event);
    case board::EventKind::kMissing:
    case board::EventKind::kMissingEnd:
      return missing(event);
    default:
      return;
  }
}

void Destination::fold(Object& object, uint64_t extent, uint64_t crc) {
  const wire::CrcKind kind = session_.agreement().crc_kind;
  if (kind == wire::CrcKind::kNone) return;
  const uint64_t end = object.written.extent_offset(extent) + object.written.extent_length(extent);
  object.digest ^= crc::shift(kind, crc, object.meta.size() - end);
}

void Destination::extent_written(const board::Event& event) {
  Object& object = objects_[event.object];
  uint64_t extent = 0;
  if (!object.written.is_extent(event.offset, event.length, &extent) || !object.written.set(extent)) return;
  fold(object, extent, event.digest);
  object.planner.progress(now_ns_);
  bytes_written_ += event.length;
  if (object.file) {
    if (object.unsynced.empty()) object.unsynced_since_ns = now_ns_;
    object.unsynced.emplace(extent, event.digest);
    object.unsynced_bytes += event.length;
    unsynced_bytes_ += event.length;
  }
  if (object.written.complete()) finish_if_complete(event.object);
}

void Destination::extent_failed(const board::Event& event) {
  const Object& object = objects_[event.object];
  const int error = static_cast<int>(event.value);
  if (error == ENOSPC || error == EDQUOT) {
    return session_.fail(
        {ErrorCode::kNoSpace,
         fmt::format("{}: the file system became full: free space and send again", object.final_path)});
  }
  session_.fail({ErrorCode::kStorage, fmt::format("{}: writing at byte {} failed: {}: check the disk",
                                                  object.final_path, event.offset, std::strerror(error))});
}

void Destination::on_tick(uint64_t now_ns) {
  now_ns_ = now_ns;
  detect_losses(now_ns);
  if (now_ns - planned_ns_ < kPlanNs) return;
  planned_ns_ = now_ns;
  plan_needs(now_ns);
  start_due_syncs(now_ns);
}

void Destination::detect_losses(uint64_t now_ns) {
  for (uint32_t lane = 0; lane < detectors_.size(); ++lane) {
    board::FlowSlot& flow = session_.flow(lane);
    // The highest first: every bit below it was set before it was published.
    const recovery::WindowView window(flow.window, board::kWindowBits,
                                      flow.state.highest_data_end.load(std::memory_order_acquire));
    const recovery::LossDetector::Seen seen{
        .probe_end = flow.state.probe_end.load(std::memory_order_acquire),
        .late_chunks = flow.state.late_chunks.load(std::memory_order_acquire)};
    gaps_.clear();
    detectors_[lane].step(window, seen, now_ns, flow.gaps.room(), &gaps_);
    for (const board::Gap& gap : gaps_) flow.gaps.push(gap);
    flow.control.settled_below.store(detectors_[lane].settled_below(), std::memory_order_release);
  }
}

void Destination::plan_needs(uint64_t now_ns) {
  for (const uint32_t index : active_) {
    Object& object = objects_[index];
    if (object.written.complete()) continue;
    const std::vector<recovery::Query> queries = object.planner.due(object.written, now_ns);
    if (queries.empty()) continue;
    object.need.clear();
    object.queries = static_cast<uint32_t>(queries.size());
    ++object.query_tag;
    for (const recovery::Query& query : queries) {
      session_.command(board::CommandKind::kQueryMissing, query.lane, index, query.range, object.query_tag);
    }
  }
}

void Destination::missing(const board::Event& event) {
  Object& object = objects_[event.object];
  if (event.tag != object.query_tag || object.queries == 0) return;  // of a round that was given up
  if (event.kind == board::EventKind::kMissing) {
    if (object.need.size() < recovery::NeedPlanner::kRangesMax)
      object.need.push_back({event.offset, event.length});
    return;
  }
  if (--object.queries != 0 || object.need.empty()) return;
  send_need(event.object, object.need);
  object.need.clear();
}

void Destination::send_need(uint32_t index, const std::vector<recovery::Range>& ranges) {
  peer::PeerMessage message;
  peer::Need* need = message.mutable_need();
  need->set_object(index);
  uint64_t bytes = 0;
  for (const recovery::Range& range : ranges) {
    peer::ByteRange* added = need->add_ranges();
    added->set_offset(range.offset);
    added->set_length(range.length);
    bytes += range.length;
  }
  spdlog::debug("{}: {} needs {} bytes in {} range(s) again", session_.log_name(),
                objects_[index].meta.path(), bytes, ranges.size());
  session_.send(message);
}

}  // namespace sluice::control
