// What the peer tells a sender: statuses, and through control what it has already.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "dataplane/base/check.h"
#include "dataplane/core/moved_peer.h"
#include "dataplane/lane/tx_flow.h"

namespace sluice::lane {

TxSide::Flow* TxSide::match(const net::RxDatagram& datagram, uint64_t flow_id, uint64_t now_ns) {
  for (const auto& flow : flows_) {
    if (flow->config.flow_id != flow_id) continue;
    if (flow->channel.is_way_of(datagram)) return flow.get();
    if (flow->config.reach != board::Reach::kPeerOpens || flow->closing) continue;
    if (flow->channel.may_be_moved(datagram, now_ns)) return flow.get();
    resources_.count(Counter::rx_false_address);
  }
  return nullptr;
}

void TxSide::on_status(const net::RxDatagram& datagram, const wire::Header& header, uint64_t now_ns) {
  Flow* const flow = match(datagram, header.flow_id, now_ns);
  if (flow == nullptr) return resources_.count(Counter::rx_drop_unknown_flow);
  uint8_t payload[wire::kStatusBytesMax];
  if (header.length > sizeof payload) return resources_.count(Counter::rx_drop_bad_status);
  if (!flow->peer.status_window.is_new(header.tx_seq)) return resources_.count(Counter::rx_drop_replayed);
  const seal::Opened opened = flow->channel.seal().open(header, datagram.payload, payload);
  if (!opened.good()) {
    return resources_.count(opened.outcome() == seal::Outcome::kBadEpoch ? Counter::rx_drop_bad_key_epoch
                                                                         : Counter::rx_drop_forged);
  }
  wire::Status status;
  if (!wire::decode_status({payload, header.length}, &status)) {
    return resources_.count(Counter::rx_drop_bad_status);
  }
  if (!flow->channel.is_way_of(datagram) && !follow(*flow, datagram, status, now_ns)) {
    return resources_.count(Counter::rx_drop_unknown_flow);
  }
  flow->peer.status_window.mark(header.tx_seq);
  flow->channel.heard(now_ns);
  resources_.count(Counter::rx_statuses);
  if (!flow->closing) take_status(*flow, header.tx_seq, status, now_ns);
}

// A right status came from another address than the peer's. True: the peer is there now.
bool TxSide::follow(Flow& flow, const net::RxDatagram& datagram, const wire::Status& status,
                    uint64_t now_ns) {
  const KnownReceiver known{.echo_ns = flow.peer.last_echo_ns,
                            .sent_ns = flow.pacing.last_send_ns,
                            .rtt_ns = flow.peer.round_trip.smoothed_ns()};
  const SaidOfReceiver said{.echo_ns = status.echo_send_time_ns, .hold_ns = status.echo_hold_ns};
  if (!is_same_receiver(known, said, now_ns)) {
    resources_.count(Counter::rx_false_address);
    return false;
  }
  resources_.count(Counter::peer_addresses);
  flow.channel.move_to(datagram, now_ns);
  return true;
}

// The peer said it, and may be wrong in each field. Nothing is taken from one that the peer's next
// status could not take back; what cannot be is counted and left alone (docs/WIRE.md 1.9).
void TxSide::take_status(Flow& flow, uint64_t status_seq, const wire::Status& status, uint64_t now_ns) {
  // The peer is back: what it missed meanwhile is to be told to it soon.
  if (now_ns - flow.peer.last_heard_ns > kSilenceNs) flow.probes.soon();
  flow.peer.last_heard_ns = now_ns;
  set(flow.slot.state.last_peer_ns, now_ns);
  add(flow.slot.state.statuses, 1);
  if (flow.log.report_is_due(status.gap_count > 0))
    flow.log.event({.tx_seq = status.received_end,
                    .length = status.gap_count,
                    .value = status.credit_extents,
                    .kind = board::LogKind::kReport});
  ++flow.peer.statuses_heard;
  if (!flow.peer.round_trip.echoed(status.echo_send_time_ns, status.echo_hold_ns, now_ns)) {
    resources_.count(Counter::rx_false_echo);
  } else if (status.echo_send_time_ns > flow.peer.last_echo_ns) {
    flow.peer.last_echo_ns = status.echo_send_time_ns;
    flow.channel.confirm(now_ns);
  }
  set(flow.slot.state.rtt_ns, flow.peer.round_trip.smoothed_ns());
  set(flow.slot.state.rtt_min_ns, flow.peer.round_trip.shortest_ns());
  const bool newest = flow.peer.status_order.newest(status_seq);
  if (newest) {
    take_levels(flow, status);
    note_losses(flow, status, now_ns);
    take_padded(flow, status);
    take_holes(flow, status, now_ns);
  } else {
    flow.probes.soon();  // whether the newest lied, the next ones tell
  }
  take_done(flow, status, newest);
  take_gaps(flow, status);
}

// The newest status holds, whether its levels are lower or higher than before.
void TxSide::take_levels(Flow& flow, const wire::Status& status) {
  board::FlowState& state = flow.slot.state;
  if (status.credit_extents > flow.credit.opened + kCreditAheadMax) {
    resources_.count(Counter::rx_false_credit);
  } else {
    flow.credit.limit = status.credit_extents;
    set(state.credit_extents, flow.credit.limit);
  }
  if (status.received_end > flow.tx_seq) resources_.count(Counter::rx_false_received_end);
  // For the rate's law, in control.
  set(state.peer_received_end, std::min(status.received_end, flow.tx_seq));
  set(state.peer_bytes_received, status.bytes_received);
  state.delay_min_ns.store(status.delay_min_ns, std::memory_order_relaxed);
  state.delay_max_ns.store(status.delay_max_ns, std::memory_order_relaxed);
}

// How many of the padded probes came, for control.
void TxSide::take_padded(Flow& flow, const wire::Status& status) {
  if (status.padded_count == 0) return;
  static_assert(board::kPaddedSizesMax == wire::kPaddedSizesMax);
  for (uint32_t i = 0; i < board::kPaddedSizesMax; ++i) {
    const wire::PaddedSize size = i < status.padded_count ? status.padded[i] : wire::PaddedSize();
    set(flow.slot.state.padded_came[i], uint64_t{size.bytes} << 32 | size.count);
  }
}

// What an extent lately was on the wire, where some travel compressed.
uint32_t TxSide::extent_on_wire(const Flow& flow) {
  const double bytes = flow.config.extent_bytes * flow.compression.share();
  return std::max(static_cast<uint32_t>(bytes), flow.config.chunk_bytes);
}

// What became of the datagrams: each cause has a number of its own.
void TxSide::note_losses(Flow& flow, const wire::Status& status, uint64_t now_ns) {
  board::FlowState& state = flow.slot.state;
  set(state.peer_datagrams, status.datagrams_received);
  set(state.peer_no_room, status.no_room);
  set(state.peer_crc_errors, status.crc_errors);
  set(state.peer_advice_bps, status.advice_bps);
  const uint64_t end = std::min(status.received_end, flow.tx_seq);
  set(state.network_lost,
      flow.peer.loss.update(missing_of(end, status.datagrams_received, status.crc_errors), now_ns));
  if (flow.config.codes != 0) {
    flow.parity.loss.update(end, state.network_lost.load(std::memory_order_relaxed));
    flow.parity.end_is_new = true;
  }
  flow.credit.wish.update({.rate_bps = flow.slot.control.rate_bps.load(std::memory_order_relaxed),
                           .rtt_ns = flow.peer.round_trip.smoothed_ns(),
                           .sent = flow.tx_seq,
                           .lost = state.network_lost.load(std::memory_order_relaxed),
                           .chunk_bytes = flow.config.chunk_bytes,
                           .extent_bytes = extent_on_wire(flow)},
                          now_ns);
  set(state.wanted_extents, flow.credit.wish.extents());
}

void TxSide::take_done(Flow& flow, const wire::Status& status, bool newest) {
  uint32_t number = status.done_first();
  for (uint32_t i = 0; i < status.run_count; ++i) {
    const wire::DoneRun& run = status.runs[i];
    for (uint32_t n = 0; n < run.count; ++n, ++number) {
      if (!take_done_entry(flow, number, {.object = run.object, .number = run.first + n})) {
        flow.probes.soon();
        return resources_.count(Counter::rx_false_done_lists);
      }
    }
  }
  if (!newest) return;
  const DoneTaken* wrong = flow.peer.done.beyond(status.done_end);
  if (wrong != nullptr) resources_.count(Counter::rx_false_done_lists);
  for (; wrong != nullptr; wrong = flow.peer.done.beyond(status.done_end)) take_back(flow, *wrong);
}

// False: it contradicts an earlier list.
bool TxSide::take_done_entry(Flow& flow, uint32_t number, const wire::DoneExtent& extent) {
  switch (flow.peer.done.look(number, extent)) {
    case DoneRecord::Answer::kOld:
      return true;
    case DoneRecord::Answer::kNext:
      if (const DoneTaken* const wrong = flow.peer.done.contradicted(number)) take_back(flow, *wrong);
      flow.peer.done.take(number, {extent, complete(flow, extent)});
      return true;
    case DoneRecord::Answer::kContradiction:
      return false;
  }
  return true;
}

void TxSide::take_gaps(Flow& flow, const wire::Status& status) {
  for (uint32_t i = 0; i < status.gap_count; ++i) {
    const wire::GapRun& gap = status.gaps[i];
    if (gap.first + gap.count > flow.tx_seq) resources_.count(Counter::rx_false_gaps);
    const uint64_t end = std::min(gap.first + gap.count, flow.tx_seq);
    const uint64_t oldest =
        flow.tx_seq - std::min<uint64_t>(flow.tx_seq, flow.retransmissions.sent_ring.capacity());
    uint64_t first = 0;
    uint64_t count = 0;  // that no status before named
    for (uint64_t seq = std::max(gap.first, oldest); seq < end && !flow.retransmissions.lost.full(); ++seq) {
      const SentChunk chunk = flow.retransmissions.sent_ring.take(seq);
      if (chunk.length == 0) continue;
      add(flow.slot.state.gaps_reported, 1);
      if (!is_made_good_by_parity(flow, chunk)) flow.retransmissions.lost.must_push(chunk);
      if (count++ == 0) first = seq;
    }
    if (count > 0) flow.parity.lost_in_a_row(count);
    if (count > 0) flow.log.event({.tx_seq = first, .value = count, .kind = board::LogKind::kGap});
  }
}

// Where little is lost no receiver tells of holes, and what a forged status told would never be taken back.
void TxSide::take_holes(Flow& flow, const wire::Status& status, uint64_t now_ns) {
  if (!flow.repetition().called_for()) return;
  const wire::ChunkRun* runs = status.hole_runs;
  for (uint32_t i = 0; i < status.holes_count; ++i) {
    const wire::ExtentHoles& told = status.holes[i];
    const std::span holes(runs, told.run_count);
    runs += told.run_count;
    const uint32_t slot = table_.find({flow.config.session, told.object, told.number});
    if (slot == ExtentTable::kNone || extents_[slot].flow != &flow) continue;
    Extent& e = extents_[slot];
    if (e.state != State::kHeld) continue;  // what did not leave yet is missing, of course
    e.holes.take(told.told, holes);
    if (e.parity.coded || now_ns - e.passes_since_ns < flow.peer.round_trip.smoothed_ns()) continue;
    e.passes = 0;
    e.passes_since_ns = now_ns;
    flow.repeats.renew(e.holes.count());
  }
}

// Credit counts what the peer lists: an extent that it lists and that is not held here was opened there by a
// repair, which took no credit; one that is held and that it will never list gives its credit back.
DoneEffect TxSide::complete(Flow& flow, const wire::DoneExtent& done) {
  const uint32_t slot = table_.find({flow.config.session, done.object, done.number});
  if (slot == ExtentTable::kNone || extents_[slot].flow != &flow || extents_[slot].listed_early) {
    ++flow.credit.opened;
    set(flow.slot.state.opened_extents, flow.credit.opened);
    add(flow.slot.state.extents_done, 1);
    return DoneEffect::kCounted;
  }
  if (extents_[slot].state != State::kHeld) {  // the end of its first pass comes back here
    extents_[slot].listed_early = true;
    return DoneEffect::kMarked;
  }
  const Extent& e = extents_[slot];
  add(flow.slot.state.bytes_done, e.length);
  flow.log.bytes(board::LogKind::kCompletion, e.object->id, e.offset, e.length);
  add(flow.slot.state.extents_done, 1);
  flow.probes.soon();
  retire(slot);
  return DoneEffect::kRetired;
}

// A list was false. An extent that was let go for it, and that the peer does not have, the peer asks for with
// NEED; once that is complete it is listed, and counted as opened then.
void TxSide::take_back(Flow& flow, const DoneTaken& wrong) {
  if (wrong.effect == DoneEffect::kMarked) {
    const uint32_t slot = table_.find({flow.config.session, wrong.extent.object, wrong.extent.number});
    if (slot != ExtentTable::kNone && extents_[slot].flow == &flow && extents_[slot].listed_early) {
      extents_[slot].listed_early = false;
      return;
    }
  }
  flow.credit.give_back();
  set(flow.slot.state.opened_extents, flow.credit.opened);
  const uint64_t extents = flow.slot.state.extents_done.load(std::memory_order_relaxed);
  set(flow.slot.state.extents_done, extents - std::min<uint64_t>(extents, 1));
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
  for (uint32_t i = 0; i < flow->first_pass.partitions.size(); ++i) {
    Partition& p = flow->first_pass.partitions.at(i);
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
  for (uint32_t i = flow.first_pass.unsent.size(); i > 0; --i) {
    Extent& e = extents_[flow.first_pass.unsent.at(i - 1)];
    if (e.object->id != p.object || e.offset < p.offset || e.offset >= p.offset + p.length) continue;
    e.ends_partition = true;
    e.partition_offset = p.offset;
    e.partition_length = p.length;
    return;
  }
  tell_partition_sent(flow, p.object, p.offset, p.length);
}

void TxSide::tell_partition_sent(const Flow& flow, uint32_t object, uint64_t offset, uint64_t length) {
  resources_.emit({.kind = board::EventKind::kPartitionSent,
                   .flow = flow.index,
                   .object = object,
                   .offset = offset,
                   .length = length});
}

void TxSide::give_credit_back(Flow& flow, uint32_t slot) {
  flow.credit.give_back();
  set(flow.slot.state.opened_extents, flow.credit.opened);
  retire(slot);
}

}  // namespace sluice::lane
