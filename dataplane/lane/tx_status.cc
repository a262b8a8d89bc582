// What the peer tells a sender: statuses, and through control what it has already.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "dataplane/base/check.h"
#include "dataplane/lane/tx_flow.h"

namespace sluice::lane {

TxSide::Flow* TxSide::match(const net::RxDatagram& datagram, uint64_t flow_id) const {
  for (const auto& flow : flows_) {
    if (flow->config.flow_id == flow_id && flow->channel.is_way_of(datagram)) return flow.get();
  }
  return nullptr;
}

void TxSide::on_status(const net::RxDatagram& datagram, const wire::Header& header, uint64_t now_ns) {
  Flow* const flow = match(datagram, header.flow_id);
  if (flow == nullptr) return resources_.count(Counter::rx_drop_unknown_flow);
  const seal::Opened opened = flow->channel.seal().open(header, datagram.payload, nullptr);
  if (!opened.good()) return resources_.count(Counter::rx_drop_crc);
  uint8_t payload[wire::kStatusBytesMax];
  wire::Status status;
  if (opened.payload_bytes() > sizeof payload) return resources_.count(Counter::rx_drop_bad_status);
  opened.place(payload);
  if (!wire::decode_status({payload, opened.payload_bytes()}, &status)) {
    return resources_.count(Counter::rx_drop_bad_status);
  }
  resources_.count(Counter::rx_statuses);
  if (!flow->closing) take_status(*flow, status, now_ns);
}

void TxSide::take_status(Flow& flow, const wire::Status& status, uint64_t now_ns) {
  flow.last_peer_ns = now_ns;
  set(flow.slot.state.last_peer_ns, now_ns);
  add(flow.slot.state.statuses, 1);
  if (status.credit_extents > flow.credit) flow.credit = status.credit_extents;
  set(flow.slot.state.credit_extents, flow.credit);
  if (status.echo_send_time_ns != 0 && now_ns > status.echo_send_time_ns + status.echo_hold_ns) {
    const uint64_t rtt = now_ns - status.echo_send_time_ns - status.echo_hold_ns;
    flow.rtt_ns = flow.rtt_ns == 0 ? rtt : flow.rtt_ns - flow.rtt_ns / 8 + rtt / 8;
    set(flow.slot.state.rtt_ns, flow.rtt_ns);
    const uint64_t lowest = flow.slot.state.rtt_min_ns.load(std::memory_order_relaxed);
    if (lowest == 0 || rtt < lowest) set(flow.slot.state.rtt_min_ns, rtt);
  }
  take_path(flow, status);
  for (uint32_t i = 0; i < status.done_count; ++i) {
    // Earlier ones were handled with an earlier status. Numbers wrap around (RFC 1982).
    if (status.done_first + i != flow.done_seen) continue;
    ++flow.done_seen;
    complete(flow, status.done[i]);
  }
  for (uint32_t i = 0; i < status.gap_count; ++i) {
    const wire::GapRun& gap = status.gaps[i];
    const uint64_t end = std::min(gap.first + gap.count, flow.tx_seq);
    const uint64_t oldest = flow.tx_seq - std::min<uint64_t>(flow.tx_seq, flow.sent_ring.capacity());
    for (uint64_t seq = std::max(gap.first, oldest); seq < end && !flow.retransmissions.full(); ++seq) {
      const SentChunk chunk = flow.sent_ring.take(seq);
      if (chunk.length == 0) continue;
      add(flow.slot.state.gaps_reported, 1);
      flow.retransmissions.must_push(chunk);
    }
  }
}

// For the rate's law, in control. A status that was overtaken says nothing new.
void TxSide::take_path(Flow& flow, const wire::Status& status) {
  board::FlowState& state = flow.slot.state;
  if (status.received_end < state.peer_received_end.load(std::memory_order_relaxed)) return;
  set(state.peer_received_end, std::min(status.received_end, flow.tx_seq));
  set(state.peer_bytes_received, status.bytes_received);
  state.delay_min_ns.store(status.delay_min_ns, std::memory_order_relaxed);
  state.delay_max_ns.store(status.delay_max_ns, std::memory_order_relaxed);
}

// Credit counts what the peer lists: an extent that it lists and that is not held here was opened there by a
// repair, which took no credit; one that is held and that it will never list gives its credit back.
void TxSide::complete(Flow& flow, const wire::DoneExtent& done) {
  const uint32_t slot = table_.find({flow.config.session, done.object, done.number});
  if (slot == ExtentTable::kNone || extents_[slot].flow != &flow || extents_[slot].listed_early) {
    ++flow.opened;
    set(flow.slot.state.opened_extents, flow.opened);
    add(flow.slot.state.extents_done, 1);
    return;
  }
  if (extents_[slot].state != State::kHeld) {  // the end of its first pass comes back here
    extents_[slot].listed_early = true;
    return;
  }
  add(flow.slot.state.bytes_done, extents_[slot].length);
  add(flow.slot.state.extents_done, 1);
  flow.probe_interval_ns = kProbeIntervalNsMin;
  retire(slot);
}

bool TxSide::peer_has(const board::Command& c) {
  Flow* const flow = find(c.flow);
  if (flow == nullptr || flow->closing) return false;
  for (uint32_t i = 0; i < extents_.size(); ++i) {
    Extent& e = extents_[i];
    if (e.flow != flow || e.repair || e.state == State::kFree || e.state == State::kDraining) continue;
    if (e.object->id != c.object || e.offset < c.offset || e.offset - c.offset >= c.length ||
        e.length > c.length - (e.offset - c.offset)) {
      continue;
    }
    e.never_listed = true;
    if (e.state == State::kHeld) give_credit_back(*flow, i);
  }
  for (uint32_t i = 0; i < flow->partitions.size(); ++i) {
    Partition& p = flow->partitions.at(i);
    const uint64_t before = p.read;
    const auto has_next = [&] {
      const uint64_t at = p.offset + p.read;
      const uint64_t bytes = std::min<uint64_t>(flow->config.extent_bytes, p.length - p.read);
      return p.object == c.object && at >= c.offset && at - c.offset < c.length &&
             bytes <= c.length - (at - c.offset);
    };
    while (p.read < p.length && has_next()) {
      p.read += std::min<uint64_t>(flow->config.extent_bytes, p.length - p.read);
    }
    if (p.read == p.length && p.read != before) end_partition(*flow, p);
  }
  return true;
}

// Nothing more of it is to be read: its last extent under way ends it, or it ends now.
void TxSide::end_partition(Flow& flow, const Partition& p) {
  for (uint32_t i = flow.unsent.size(); i > 0; --i) {
    Extent& e = extents_[flow.unsent.at(i - 1)];
    if (e.object->id != p.object || e.offset < p.offset || e.offset >= p.offset + p.length) continue;
    e.ends_partition = true;
    e.partition_offset = p.offset;
    e.partition_length = p.length;
    return;
  }
  resources_.emit({.kind = board::EventKind::kPartitionSent,
                   .flow = flow.index,
                   .object = p.object,
                   .offset = p.offset,
                   .length = p.length});
}

void TxSide::give_credit_back(Flow& flow, uint32_t slot) {
  CHECK(flow.opened > 0, "an extent that is held was opened");
  --flow.opened;
  set(flow.slot.state.opened_extents, flow.opened);
  retire(slot);
}

}  // namespace sluice::lane
