// Receiving, but for the chunks themselves: commands of control, and the status datagrams.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <utility>

#include "dataplane/core/hot.h"
#include "dataplane/lane/rx_flow.h"

namespace sluice::lane {
namespace {

constexpr uint64_t kStarvedLookNs = 200'000;
constexpr uint64_t kUnsaidSooner = 4;

}  // namespace

RxSide::RxSide(WorkerResources& resources, uint32_t first, uint32_t extents)
    : resources_(resources),
      first_(first),
      pool_(0, extents, std::min(kRepairReserve, extents / 4)),
      extents_(extents),
      table_(extents),
      flows_(board::kFlowsMax),
      restorable_(extents),
      summable_(extents),
      parity_(extents),
      decodable_(4 * extents) {
  const uint32_t chunks_max = resources.port_info.extent_bytes_max / wire::kChunkBytesMin;
  for (auto& e : extents_) e.chunk_crcs.resize(chunks_max);
  active_.reserve(board::kFlowsMax);
}

RxSide::~RxSide() = default;

int RxSide::open(uint32_t flow_slot, const board::FlowConfig& config, const FlowSecret& secret,
                 uint64_t now_ns) {
  if (flows_[flow_slot] != nullptr) return EEXIST;
  if ((config.flow_id & 0xFFFF) != flow_slot || config.credit_extents == 0) return EINVAL;
  if (!prepare_codes(config)) return EOPNOTSUPP;
  prepare_restoring(config);
  FlowChannel channel;
  const int error = channel.open(resources_, config, secret);
  if (error != 0) return error;
  flows_[flow_slot] = std::make_unique<Flow>(resources_, flow_slot, config, resources_.board.flows[flow_slot],
                                             std::move(channel), static_cast<uint32_t>(extents_.size()));
  flows_[flow_slot]->log.event(
      {.value = flows_[flow_slot]->credit_window(), .kind = board::LogKind::kOpened});
  flows_[flow_slot]->status.next_ns = now_ns;
  active_.push_back(flow_slot);
  return 0;
}

bool RxSide::close(uint32_t flow_slot, uint32_t tag) {
  Flow* const flow = flows_[flow_slot].get();
  if (flow == nullptr) return false;
  const bool meant = flow->config.tag == tag;
  if (flow->closing) return meant;
  for (uint32_t i = flow->open.size(); i > 0; --i) {
    Extent& e = extents_[flow->open.at(i - 1)];
    if (e.state != RxExtentState::kWriting) release(e);
  }
  flow->closing = true;  // only now: the last release would end the flow within this loop
  settle_closed(flow_slot);
  return meant;
}

void RxSide::settle_closed(uint32_t flow_slot) {
  if (!flows_[flow_slot]->open.empty()) return;
  const ColdScope cold;
  flows_[flow_slot]->log.event({.kind = board::LogKind::kClosed});
  resources_.emit(
      {.kind = board::EventKind::kFlowClosed, .flow = flow_slot, .tag = flows_[flow_slot]->config.tag});
  flows_[flow_slot].reset();
  std::erase(active_, flow_slot);
}

// Answers with runs of missing bytes: a whole extent that was never begun, or the holes of a begun one.
void RxSide::query_missing(const board::Command& c) {
  uint64_t missing = 0;
  uint32_t events = 0;
  board::Event run{.kind = board::EventKind::kMissing, .flow = c.flow, .object = c.object, .tag = c.tag};
  Flow* const flow = flows_[c.flow].get();
  const auto flush = [&] {
    if (run.length > 0) {
      resources_.emit(run);
      if (flow != nullptr && c.kind == board::CommandKind::kQueryMissing)
        flow->log.bytes(board::LogKind::kNeed, c.object, run.offset, run.length);
      ++events;
    }
    run.length = 0;
  };
  const auto report = [&](uint64_t offset, uint64_t length) {
    missing += length;
    if (run.length > 0 && run.offset + run.length == offset) {
      run.length += length;
      return;
    }
    flush();
    run.offset = offset;
    run.length = length;
  };
  Object* const object = flow == nullptr ? nullptr : resources_.objects.find(flow->config.session, c.object);
  if (object != nullptr && object->is(board::kObjectWrite) && c.offset < object->size) {
    const uint64_t end = c.length > object->size - c.offset ? object->size : c.offset + c.length;
    for (uint64_t n = c.offset / object->extent_bytes;
         n * object->extent_bytes < end && events < board::kMissingRunsMax; ++n) {
      if (object->has_written(n)) continue;
      const uint32_t index = table_.find({object->session, object->id, n});
      const uint64_t base = n * object->extent_bytes;
      if (index == ExtentTable::kNone) {
        report(base, object->extent_length(n));
        continue;
      }
      const Extent& e = extents_[index];
      const bool whole = e.state != RxExtentState::kFilling;
      if (whole && c.kind == board::CommandKind::kQueryUnwritten) {
        report(base, e.length);
        continue;
      }
      const uint32_t chunk_bytes = e.flow->config.chunk_bytes;
      uint32_t run_end = 0;
      for (uint32_t i = e.map.next_missing(0, &run_end);
           i < e.map.chunks() && events < board::kMissingRunsMax; i = e.map.next_missing(run_end, &run_end)) {
        const uint64_t begin = static_cast<uint64_t>(i) * chunk_bytes;
        report(base + begin,
               std::min<uint64_t>(static_cast<uint64_t>(run_end) * chunk_bytes, e.wire_bytes) - begin);
      }
    }
  }
  flush();
  resources_.emit({.kind = board::EventKind::kMissingEnd,
                   .flow = c.flow,
                   .object = c.object,
                   .tag = c.tag,
                   .offset = c.offset,
                   .length = missing});
}

void RxSide::forget(const board::Command& c) {
  Flow* const flow = flows_[c.flow].get();
  Object* const object = flow == nullptr ? nullptr : resources_.objects.find(flow->config.session, c.object);
  if (object == nullptr || !object->is(board::kObjectWrite) || c.offset >= object->size) {
    return resources_.count(Counter::bad_commands);
  }
  const uint64_t end = c.length > object->size - c.offset ? object->size : c.offset + c.length;
  for (uint64_t n = c.offset / object->extent_bytes; n * object->extent_bytes < end; ++n)
    object->clear_written(n);
}

// Chunks of the object that still come count as duplicates. Control may be closing it: that waits for the
// parts that are held here.
void RxSide::give_up(const board::Command& c) {
  uint64_t writing_bytes = 0;
  if (Flow* const flow = flows_[c.flow].get(); flow != nullptr) {
    Object* const object = resources_.objects.find(flow->config.session, c.object);
    if (object != nullptr && object->is(board::kObjectWrite)) object->set_all_written();
    for (uint32_t i = flow->open.size(); i > 0; --i) {
      Extent& e = extents_[flow->open.at(i - 1)];
      if (e.object->id != c.object) continue;
      if (e.state != RxExtentState::kWriting) {
        release(e);
      } else {
        writing_bytes += e.length;
      }
    }
  }
  resources_.emit({.kind = board::EventKind::kGivenUp,
                   .flow = c.flow,
                   .object = c.object,
                   .tag = c.tag,
                   .length = writing_bytes});
}

// A part of an extent came here, and the whole of it, as a repair, to another worker: the rest never comes.
void RxSide::release_written_elsewhere() {
  for (Extent& e : extents_) {
    if (e.state == RxExtentState::kFilling && e.object->has_written(e.key.number)) release(e);
  }
}

bool RxSide::pump(uint64_t now_ns) {
  bool busy = false;
  if (starved_ && now_ns - starved_ns_ >= kStarvedLookNs) {  // it looks at every extent
    starved_ = false;
    starved_ns_ = now_ns;
    release_written_elsewhere();
  }
  sample_disk(now_ns);
  busy |= sum_next();
  busy |= decode_next();
  busy |= restore_next();
  for (const uint32_t index : active_) {
    Flow& flow = *flows_[index];
    if (flow.closing) continue;
    take_gaps(flow);
    if (now_ns < flow.status.next_ns) continue;
    if (!flow.channel.ready(now_ns, flow.slot.state)) {
      // Once its first datagram has come, it is answered at once.
      if (!flow.channel.knows_peer()) flow.status.next_ns = now_ns + kIdleStatusNs;
      continue;
    }
    send_status(flow, now_ns);
    busy = true;
  }
  return busy;
}

// The credit that is granted is what the disk may be behind: as it is used up, senders are asked for less.
void RxSide::sample_disk(uint64_t now_ns) {
  if (writing_ == 0) return drain_.idle();
  uint32_t granted = 0;
  for (const uint32_t index : active_) granted += flows_[index]->credit_window();
  const uint32_t used = static_cast<uint32_t>(extents_.size()) - pool_.free();
  drain_.sample({.all = granted, .free = granted - std::min(granted, used), .writing = writing_}, now_ns);
}

void RxSide::take_gaps(Flow& flow) {
  board::Gap gap;
  for (uint32_t n = 0; n < board::kGapSlots && !flow.gaps.full() && flow.slot.gaps.pop(&gap); ++n) {
    // The peer would refuse a status with an empty run or one out of order, and miss its credit as well.
    const wire::GapRun last = flow.gaps.empty() ? wire::GapRun() : flow.gaps.at(flow.gaps.size() - 1).run;
    if (gap.count == 0 || gap.first + gap.count < gap.first || gap.first < last.first + last.count) {
      resources_.count(Counter::bad_commands);
      continue;
    }
    add(flow.slot.state.gaps_reported, gap.count);
    flow.log.event({.tx_seq = gap.first, .value = gap.count, .kind = board::LogKind::kGap});
    flow.gaps.must_push({.run = {gap.first, gap.count}});
    flow.status.send_at_once();
  }
}

// Sums up the datagrams since the last status.
void RxSide::look_at_path(Flow& flow, uint64_t now_ns) {
  SenderState& sender = flow.sender;
  if (!sender.delays.empty()) sender.lateness.arrived(sender.delays.min_ns, false, now_ns);
  if (sender.delays.overtaken_max_ns != INT64_MIN)
    sender.lateness.arrived(sender.delays.overtaken_max_ns, true, now_ns);
  sender.delays.overtaken_max_ns = INT64_MIN;
  flow.status.loss.heard(sender.statuses_heard);
  set(flow.slot.state.datagrams, flow.arrivals.datagrams);
  set(flow.slot.state.wanted_extents, sender.credit_wanted_extents);
  set(flow.slot.state.lateness_ns, sender.lateness.latest_ns());
}

void RxSide::send_status(Flow& flow, uint64_t now_ns) {
  look_at_path(flow, now_ns);
  wire::Status status;
  status.echo_send_time_ns = flow.sender.send_time_ns;
  status.echo_hold_ns = flow.sender.send_time_ns == 0 ? 0 : now_ns - flow.sender.arrival_ns;
  status.received_end = flow.arrivals.received_end();
  status.datagrams_received = flow.arrivals.datagrams;
  status.no_room = flow.slot.state.no_buffer_drops.load(std::memory_order_relaxed);
  // A forger could make losses look like damage: under a cipher a wrong datagram counts as one that did not
  // come.
  if (!flow.channel.seal().enciphers(wire::Type::kData))
    status.crc_errors = flow.slot.state.crc_errors.load(std::memory_order_relaxed);
  status.credit_extents = flow.grant_credit();
  status.bytes_received = flow.slot.state.bytes.load(std::memory_order_relaxed);
  status.advice_bps = drain_.advice_bps() / std::max<uint64_t>(1, active_.size());
  const DelaySample& delays = flow.sender.delays;
  if (!delays.empty()) {
    status.delay_min_ns = delays.min_ns;
    status.delay_max_ns = delays.max_ns;
  }
  flow.done_log.list(&status);
  status.gap_count = std::min(flow.gaps.size(), wire::kStatusGapsMax);
  for (uint32_t i = 0; i < status.gap_count; ++i) status.gaps[i] = flow.gaps.at(i).run;

  for (const wire::PaddedSize& size : flow.padded.told(now_ns)) status.padded[status.padded_count++] = size;

  uint8_t payload[wire::kStatusBytesMax];
  // A status without all the sizes that came would tell of sizes that did not.
  const size_t room = status.padded_count > 0 ? sizeof payload : flow.status.loss.payload_bytes_max();
  if (flow.repetition().called_for()) list_holes(flow, room, &status);
  const wire::StatusWritten written = wire::encode_status(status, {payload, room});
  const wire::Header header{.type = wire::Type::kStatus,
                            .flow_id = flow.config.flow_id,
                            .tx_seq = flow.status.seq,
                            .send_time_ns = now_ns,
                            .length = static_cast<uint32_t>(written.bytes)};
  uint64_t ignored = 0;
  if (!flow.channel.send(header, {payload, written.bytes}, nullptr, 0, &ignored)) return;
  if (flow.log.report_is_due(written.gaps > 0))
    flow.log.event({.tx_seq = status.received_end,
                    .length = written.gaps,
                    .value = status.credit_extents,
                    .kind = board::LogKind::kReport});
  ++flow.status.seq;
  flow.status.loss.sent(written.bytes);
  flow.done_log.listed(status, written.runs);
  for (uint32_t i = 0; i < written.gaps; ++i) ++flow.gaps.at(i).said;
  while (!flow.gaps.empty() && flow.gaps.front().said >= flow.status.loss.gap_repeats()) flow.gaps.pop();
  flow.status.holes_next +=
      written.holes;  // some are passed over when others end meanwhile, until the next turn
  add(flow.slot.state.statuses, 1);
  set(flow.slot.state.credit_extents, status.credit_extents);
  flow.credit.told = status.credit_extents;
  flow.sender.delays.clear();
  const uint64_t missing = missing_of(status.received_end, status.datagrams_received, status.crc_errors);
  set(flow.slot.state.network_lost, flow.loss.update(missing, status.received_end, now_ns));
  flow.status.next_ns = next_status_after(flow, now_ns);
}

// Lists what extents of the flow miss, in turn: as much as could fit. encode_status() takes what does.
void RxSide::list_holes(const Flow& flow, size_t room, wire::Status* status) const {
  const auto runs_max = static_cast<uint32_t>(std::min<size_t>(room / 2, wire::kStatusHoleRunsMax));
  uint32_t runs = 0;
  for (uint32_t n = 0; n < flow.open.size() && status->holes_count < wire::kStatusHolesMax; ++n) {
    const Extent& e = extents_[flow.open.at((flow.status.holes_next + n) % flow.open.size())];
    if (e.state != RxExtentState::kFilling) continue;
    wire::ExtentHoles& holes = status->holes[status->holes_count++];
    holes = {.object = e.object->id, .told = e.map.chunks(), .number = e.key.number};
    uint32_t end = 0;
    for (uint32_t first = e.map.next_missing(0, &end); first < e.map.chunks();
         first = e.map.next_missing(end, &end)) {
      if (runs == runs_max) {
        holes.told = first;
        return;
      }
      status->hole_runs[runs++] = {.first = first, .count = end - first};
      ++holes.run_count;
    }
  }
}

// Gaps and lists that are to be said again follow after the usual interval; lists after ever longer ones
// while the sender is silent, since it echoes nothing then. Gaps that did not fit into this status follow
// sooner.
uint64_t RxSide::next_status_after(Flow& flow, uint64_t now_ns) {
  const uint64_t usual_ns = std::min<uint64_t>(flow.config.status_interval_ns, kIdleStatusNs);
  const bool heard = flow.sender.arrival_ns > flow.status.last_ns;
  flow.status.repeat_interval_ns =
      heard ? usual_ns : std::min(2 * flow.status.repeat_interval_ns, kIdleStatusNs);
  flow.status.last_ns = now_ns;
  if (!flow.gaps.empty()) {
    const bool unsaid = flow.gaps.at(flow.gaps.size() - 1).said == 0;
    return now_ns + (unsaid ? usual_ns / kUnsaidSooner : usual_ns);
  }
  return now_ns + (flow.done_log.unknown() > 0 ? flow.status.repeat_interval_ns : kIdleStatusNs);
}

uint64_t RxSide::next_due_ns() const {
  uint64_t due = UINT64_MAX;
  for (const uint32_t index : active_) due = std::min(due, flows_[index]->status.next_ns);
  return due;
}

}  // namespace sluice::lane
