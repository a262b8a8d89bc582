// The sending end's dealings with its lanes: partitions out, first passes in, repairs, the rate.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "control/session/source.h"
#include "dataplane/crc/crc.h"

namespace sluice::control {
namespace {

constexpr size_t kPartsQueuedMin = 2;
constexpr size_t kPartsQueuedMax = 12;              // a worker takes 16
constexpr uint64_t kQueuedNs = 5'000'000;           // what a lane sends in this time is queued, at least
constexpr uint64_t kStuckNs = 200'000'000;          // then what left so far is reported
constexpr uint64_t kRepairShareNs = 1'000'000'000;  // a lane with a repair counts as busy for so long
constexpr size_t kRepairBacklogMax = 65536;
constexpr uint64_t kIdleLaneShare = 100;  // an idle lane keeps 1/100 of the rate, for probes

}  // namespace

bool Source::wants(const LaneWork& work) const {
  if (work.parts.size() < kPartsQueuedMin) return true;
  const uint64_t lane_rate_bps = session_.agreement().rate_bps / lanes_.size();
  const uint64_t enough = std::max(part_bytes_, lane_rate_bps / 8 * kQueuedNs / 1'000'000'000);
  return work.parts.size() < kPartsQueuedMax && work.bytes < enough;
}

std::optional<Source::Part> Source::next_part() {
  while (cursor_ < objects_.size()) {
    Object& object = objects_[cursor_];
    if (object.next_offset == object.item.size) {
      ++cursor_;
      session_.changed().notify();  // the next object may be opened
      continue;
    }
    if (!object.open) return std::nullopt;
    Part part{.object = cursor_, .offset = object.next_offset};
    part.length = std::min(part_bytes_, object.item.size - part.offset);
    part.sent_end = part.reported_end = part.offset;
    object.next_offset += part.length;
    return part;
  }
  return std::nullopt;
}

void Source::give(uint32_t lane, const Part& part) {
  objects_[part.object].placed[part.offset] = {part.offset + part.length, lane};
  if (lanes_[lane].parts.empty()) lanes_[lane].moved_ns = now_ns_;
  lanes_[lane].parts.push_back(part);
  lanes_[lane].bytes += part.length;
  session_.command(board::CommandKind::kPartition, lane, part.object, {part.offset, part.length});
}

void Source::feed() {
  if (!rate_ || session_.failed()) return;
  for (bool gave = true; gave;) {
    gave = false;
    for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
      if (!wants(lanes_[lane])) continue;
      const std::optional<Part> part = next_part();
      if (!part) return;
      give(lane, *part);
      gave = true;
    }
  }
}

void Source::on_event(const board::Event& event, uint32_t lane) {
  if (event.object >= objects_.size()) return;
  if (event.kind == board::EventKind::kExtentSent) return extent_sent(event, lane);
  if (event.kind == board::EventKind::kPartitionSent) return partition_sent(event, lane);
  if (event.kind == board::EventKind::kExtentFailed) return extent_failed(event);
}

void Source::extent_sent(const board::Event& event, uint32_t lane) {
  Object& object = objects_[event.object];
  uint64_t extent = 0;
  if (!object.sent.is_extent(event.offset, event.length, &extent) || !object.sent.set(extent)) return;
  const wire::CrcKind kind = session_.agreement().crc_kind;
  if (kind != wire::CrcKind::kNone) {
    object.digest ^= crc::shift(kind, event.digest, object.item.size - event.offset - event.length);
  }
  LaneWork& work = lanes_[lane];
  work.moved_ns = now_ns_;
  for (Part& part : work.parts) {
    if (part.object == event.object && part.sent_end == event.offset) part.sent_end += event.length;
  }
  send_digest_if_complete(event.object);
}

void Source::send_digest_if_complete(uint32_t index) {
  Object& object = objects_[index];
  if (!object.sent.complete() || object.digest_sent) return;
  if (object.item.file) {
    const Status unchanged = exports::Exports::check_unchanged(*object.item.file);
    if (!unchanged) return session_.fail(unchanged.error());
  }
  object.digest_sent = true;
  peer::PeerMessage message;
  message.mutable_file_digest()->set_object(index);
  message.mutable_file_digest()->set_size(object.item.size);
  message.mutable_file_digest()->set_digest(object.digest);
  session_.send(message);
}

void Source::partition_sent(const board::Event& event, uint32_t lane) {
  LaneWork& work = lanes_[lane];
  const auto part = std::find_if(work.parts.begin(), work.parts.end(), [&](const Part& candidate) {
    return candidate.object == event.object && candidate.offset == event.offset;
  });
  if (part == work.parts.end()) return;
  report_sent(lane, *part, part->offset + part->length);
  work.bytes -= part->length;
  work.parts.erase(part);
  feed();
}

void Source::report_sent(uint32_t lane, const Part& part, uint64_t end) {
  peer::PeerMessage message;
  peer::PartitionSent* sent = message.mutable_partition_sent();
  sent->set_object(part.object);
  sent->mutable_range()->set_offset(part.offset);
  sent->mutable_range()->set_length(end - part.offset);
  sent->set_lane(lane);
  session_.send(message);
}

// A lane that stands still may hold all its credit in extents with holes: the peer can ask for them only
// when it knows that they were sent.
void Source::report_stuck(uint64_t now_ns) {
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (now_ns - lanes_[lane].moved_ns < kStuckNs) continue;
    for (Part& part : lanes_[lane].parts) {
      if (part.sent_end == part.reported_end) continue;
      report_sent(lane, part, part.sent_end);
      part.reported_end = part.sent_end;
    }
  }
}

void Source::extent_failed(const board::Event& event) {
  const Object& object = objects_[event.object];
  if (object.item.file) {
    const Status unchanged = exports::Exports::check_unchanged(*object.item.file);
    if (!unchanged) return session_.fail(unchanged.error());
  }
  session_.fail({ErrorCode::kStorage,
                 fmt::format("{}: reading at byte {} failed: {}: check the disk", object.item.shown,
                             event.offset, std::strerror(static_cast<int>(event.value)))});
}

// Bytes go again on the lane that carried them: its worker at the peer holds the rest of their extents.
void Source::repair(const peer::Need& need) {
  if (need.object() >= objects_.size() || need.ranges_size() > 4096) return;
  Object& object = objects_[need.object()];
  if (object.done || session_.context()->board->backlog() > kRepairBacklogMax) return;
  for (const peer::ByteRange& range : need.ranges()) {
    if (range.offset() >= object.item.size || range.length() > object.item.size - range.offset()) continue;
    uint64_t at = range.offset();
    const uint64_t end = at + range.length();
    while (at < end) {
      auto placed = object.placed.upper_bound(at);
      if (placed == object.placed.begin()) break;
      --placed;
      if (at >= placed->second.end) break;  // not given to any lane yet: it will be sent in its turn
      const uint64_t piece_end = std::min(end, placed->second.end);
      session_.command(board::CommandKind::kRepair, placed->second.lane, need.object(), {at, piece_end - at});
      lanes_[placed->second.lane].repair_until_ns = now_ns_ + kRepairShareNs;
      at = piece_end;
    }
  }
}

// Something to send, or sent and not yet complete at the peer: it may have to go again.
bool Source::has_work(uint32_t lane, uint64_t now_ns) const {
  const board::FlowState& state = session_.flow(lane).state;
  return !lanes_[lane].parts.empty() || lanes_[lane].repair_until_ns > now_ns ||
         state.opened_extents.load(std::memory_order_relaxed) >
             state.extents_done.load(std::memory_order_relaxed);
}

void Source::control_rate(uint64_t now_ns) {
  FlowFigures figures;
  uint64_t busy = 0;
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    figures.add(session_.flow(lane).state);
    lanes_[lane].busy = has_work(lane, now_ns);
    busy += lanes_[lane].busy ? 1 : 0;
  }
  const rate::FixedRate::State before = rate_->state();
  const uint32_t cuts = rate_->cuts();
  const uint64_t rate_bps = rate_->step({.sent = figures.chunks + figures.retransmitted_chunks,
                                         .lost = figures.gaps,
                                         .last_peer_ns = figures.last_peer_ns,
                                         .rtt_ns = figures.rtt_ns},
                                        now_ns);
  if (rate_->cuts() != cuts) {
    spdlog::warn("{}: loss stays above 2 %, rate lowered to {:.2f} Gbit/s", session_.log_name(),
                 static_cast<double>(rate_bps) * 1e-9);
  }
  const bool silent = rate_->state() >= rate::FixedRate::State::kCrawl;
  if (silent && before != rate_->state()) {
    spdlog::warn("{}: no status from the peer, rate {} bit/s until it is heard", session_.log_name(),
                 rate_bps);
  }
  // Lanes with work share the rate; the others keep a little, and all of it together is never more.
  const uint64_t idle_bps = busy == 0 ? rate_bps / lanes_.size() : rate_bps / kIdleLaneShare;
  const uint64_t busy_bps = busy == 0 ? 0 : (rate_bps - idle_bps * (lanes_.size() - busy)) / busy;
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    session_.flow(lane).control.rate_bps.store(lanes_[lane].busy ? busy_bps : idle_bps,
                                               std::memory_order_release);
  }
}

void Source::on_tick(uint64_t now_ns) {
  now_ns_ = now_ns;
  control_rate(now_ns);
  report_stuck(now_ns);
}

}  // namespace sluice::control
