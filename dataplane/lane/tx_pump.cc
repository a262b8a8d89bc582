// The hot part of sending: which chunk leaves next, and when.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>

#include "dataplane/base/check.h"
#include "dataplane/core/chunk_map.h"
#include "dataplane/core/safe_rate.h"
#include "dataplane/lane/tx_flow.h"

namespace sluice::lane {

bool TxSide::pump(uint64_t now_ns) {
  drain();
  on_pace_ = false;
  if (flows_.empty()) return false;
  bool busy = compress_next(now_ns);
  const auto count = static_cast<uint32_t>(flows_.size());
  for (uint32_t i = 0; i < count; ++i) {
    Flow& flow = *flows_[(first_flow_ + i) % count];
    if (!flow.closing) busy |= pump_flow(flow, now_ns);
  }
  first_flow_ = (first_flow_ + 1) % count;
  settle_closed();
  return busy;
}

// A device that sends by its own clock is given frames early: so far that a turn of the loop may be late, not
// so far that what is sent at once (statuses, probes) waits behind them.
uint64_t TxSide::ahead_ns() const { return resources_.datagrams.sends_at_times() ? kSendAheadNs : 0; }

bool TxSide::pump_flow(Flow& flow, uint64_t now_ns) {
  read_ahead(flow, now_ns);
  const uint64_t idle_ns = now_ns - flow.pacing.last_pump_ns;
  flow.pacing.last_pump_ns = now_ns;
  look_at_echoes(flow, now_ns);
  if (!flow.channel.ready(now_ns, flow.slot.state)) return false;
  const uint64_t control_ns = resources_.board.control_alive_ns.load(std::memory_order_relaxed);
  const uint64_t rate_bps =
      safe_rate_bps(flow.slot.control.rate_bps.load(std::memory_order_relaxed),
                    now_ns - std::min(now_ns, flow.peer.last_heard_ns), now_ns - std::min(now_ns, control_ns),
                    flow.peer.round_trip.smoothed_ns());
  flow.pacing.pacer.set_rate(rate_bps);
  flow.log.rate(rate_bps);
  bool busy = false;
  // Where datagrams leave in batches, one that is due takes those along that soon will be; and the next batch
  // begins where this one ends, even if the worker comes late by two.
  const uint64_t batch_ns = resources_.datagrams.batch_ns();
  const uint64_t horizon_ns = now_ns + ahead_ns() + batch_ns;
  for (uint32_t n = 0; n < net::kBurst; ++n) {
    if (!flow.pacing.pacer.ready(n == 0 ? horizon_ns - batch_ns : horizon_ns)) {
      add(flow.slot.state.blocked_pacing_ns, n == 0 ? idle_ns : 0);
      on_pace_ = true;
      break;
    }
    const uint64_t leaves_ns =
        std::max(now_ns - 2 * batch_ns, std::min(flow.pacing.pacer.next_ns(), horizon_ns));
    const Sent sent = Work::Order::send(*this, flow, leaves_ns);
    if (sent == Sent::kNothing) {
      if (n == 0) count_blocked(flow, idle_ns);
      break;
    }
    if (sent == Sent::kNoRoom) break;
    busy = true;
  }
  if (busy) {
    flow.pacing.last_send_ns = now_ns;
    flow.probes.after_data(flow.peer.round_trip.smoothed_ns());
  } else if (now_ns >= probe_due_ns(flow, now_ns)) {
    send_probe(flow, now_ns);
  }
  return busy;
}

// Counts what held the flow up: the disk, credit, or a buffer to read into.
void TxSide::count_blocked(Flow& flow, uint64_t ns) const {
  board::FlowState& state = flow.slot.state;
  if (!flow.first_pass.unsent.empty()) {
    const Extent& front = extents_[flow.first_pass.unsent.front()];
    if (front.form == TxForm::kCompressing) return;
    const bool reading = front.state == State::kReading;
    add(reading ? state.blocked_source_ns : state.blocked_credit_ns, ns);
  } else if (!flow.first_pass.partitions.empty()) {
    add(state.blocked_memory_ns, ns);
  }
}

// When a probe is due that is sent if nothing else is; never: UINT64_MAX.
uint64_t TxSide::probe_due_ns(const Flow& flow, uint64_t now_ns) {
  const uint64_t soon_ns = flow.pacing.last_send_ns + flow.probes.interval_ns;
  if (flow.extents_held > 0 && flow.tx_seq > 0) return soon_ns;
  if (flow.config.reach != board::Reach::kWeOpen) return UINT64_MAX;
  // The peer answers whom it knows, and as long as it idles without being asked.
  const bool heard = flow.slot.state.statuses.load(std::memory_order_relaxed) > 0 &&
                     now_ns - flow.peer.last_heard_ns < kPeerKnowsNs;
  return heard ? flow.pacing.last_send_ns + kKeepOpenNs : soon_ns;
}

uint64_t TxSide::send_time_ns(const Flow& flow, uint64_t leaves_ns) const {
  return std::clamp(leaves_ns, flow.pacing.last_pump_ns, flow.pacing.last_pump_ns + ahead_ns());
}

bool TxSide::send_chunk(Flow& flow, const Extent& e, uint32_t at, uint32_t bytes, uint8_t flags,
                        uint64_t leaves_ns, uint64_t* digest) {
  CHECK(at + bytes <= e.wire_bytes, "a chunk lies within its extent: no other memory is ever sent");
  const uint8_t form = e.form == TxForm::kCompressed ? uint8_t{wire::kFlagCompressed} : uint8_t{0};
  const wire::Header header{.type = wire::Type::kData,
                            .flags = static_cast<uint8_t>(flags | form),
                            .flow_id = flow.config.flow_id,
                            .tx_seq = flow.tx_seq,
                            .send_time_ns = send_time_ns(flow, leaves_ns),
                            .offset = e.offset + at,
                            .object = e.object->id,
                            .length = bytes,
                            .done_seen = flow.peer.done.seen(),
                            .credit_wanted = flow.credit.wish.extents(),
                            .statuses_heard = flow.peer.statuses_heard};
  if (!flow.channel.send(header, {e.buffer->data + at, bytes}, e.buffer, leaves_ns, digest)) return false;
  flow.retransmissions.sent_ring.put(flow.tx_seq,
                                     {.offset = header.offset, .object = header.object, .length = bytes});
  if (flags == 0) {
    flow.log.packet(board::LogKind::kSent, header);
  } else {
    flow.log.event(
        {.tx_seq = header.tx_seq,
         .offset = header.offset,
         .length = bytes,
         .object = header.object,
         .kind = flags == wire::kFlagRepair ? board::LogKind::kRepair : board::LogKind::kRetransmission});
  }
  ++flow.tx_seq;
  flow.pacing.pacer.sent(leaves_ns, flow.channel.wire_bytes(bytes));
  return true;
}

// The peer holds nothing of this extent, which travels compressed: it may not be able to restore it. So it is
// read once more, and sent as it is.
bool TxSide::is_sent_plain(const Flow& flow, const Repair& asked, uint32_t slot) const {
  const Extent& e = extents_[slot];
  if (flow.repairs.slot != ExtentTable::kNone && extents_[flow.repairs.slot].key == e.key) return true;
  return e.form == TxForm::kCompressed && asked.offset == e.offset && asked.length >= e.length;
}

Sent TxSide::send_repair(Flow& flow, uint64_t now_ns) {
  const auto release = [&] {
    if (flow.repairs.slot != ExtentTable::kNone) retire(flow.repairs.slot);
    flow.repairs.slot = ExtentTable::kNone;
  };
  while (!flow.repairs.asked.empty()) {
    Repair& r = flow.repairs.asked.front();
    Object* object = resources_.objects.find(flow.config.session, r.object);
    if (object == nullptr || r.length == 0 || r.offset + r.length > object->size) {
      if (object == nullptr || r.length != 0) resources_.count(Counter::bad_commands);
      flow.repairs.asked.pop();
      continue;
    }
    const ExtentKey key{object->session, object->id, r.offset / object->extent_bytes};
    uint32_t slot = table_.find(key);
    const bool held = slot != ExtentTable::kNone && extents_[slot].flow == &flow;
    const bool plain = held && is_sent_plain(flow, r, slot);
    // What is asked for of it from now on is asked for as plain chunks, whose numbers are not those of the
    // others. The peer lists what a repair opens there, and takes credit for that.
    if (plain && extents_[slot].state == State::kHeld && extents_[slot].form == TxForm::kCompressed)
      give_credit_back(flow, slot);
    if (!held || plain) {
      if (flow.repairs.slot != ExtentTable::kNone && !(extents_[flow.repairs.slot].key == key)) release();
      if (flow.repairs.slot == ExtentTable::kNone &&
          (!resources_.has_event_room() ||
           !start_read(flow, *object, key.number, true, &flow.repairs.slot))) {
        return Sent::kNothing;
      }
      slot = flow.repairs.slot;
    }
    const Extent& e = extents_[slot];
    if (e.state == State::kReading) return Sent::kNothing;
    const uint32_t chunk_bytes = flow.config.chunk_bytes;
    const uint32_t at = static_cast<uint32_t>(r.offset - e.offset) / chunk_bytes * chunk_bytes;
    // The peer may ask for bytes whose first pass is still to come, because an earlier life of this session
    // sent them and its buffers are full of what waits for them. After a failed read there are none to send.
    uint32_t bytes = e.wire_bytes - std::min(at, e.wire_bytes);
    const bool sent = at < e.wire_bytes;
    uint64_t next = e.offset + object->extent_length(key.number);
    if (sent) {
      bytes = std::min(chunk_length(e.wire_bytes, chunk_bytes, at / chunk_bytes), bytes);
      uint64_t ignored = 0;
      if (!send_chunk(flow, e, at, bytes, wire::kFlagRepair, now_ns, &ignored)) return Sent::kNoRoom;
      add(flow.slot.state.repaired_chunks, 1);
      if (at + bytes < e.wire_bytes) next = e.offset + at + bytes;
    }
    const uint64_t end = r.offset + r.length;
    r.offset = std::min(next, end);
    r.length = end - r.offset;
    if (r.length == 0) flow.repairs.asked.pop();
    if (flow.repairs.asked.empty()) release();
    if (sent) return Sent::kYes;
  }
  release();
  return Sent::kNothing;
}

// Drops extents in front that could not be read and are not wanted any more: others wait behind them.
void TxSide::skip_unreadable(Flow& flow) {
  while (!flow.first_pass.unsent.empty()) {
    const uint32_t slot = flow.first_pass.unsent.front();
    const Extent& e = extents_[slot];
    if (e.state != State::kReady || e.length != 0 || !e.never_listed) return;
    flow.first_pass.unsent.pop();
    if (e.ends_partition) tell_partition_sent(flow, e.object->id, e.partition_offset, e.partition_length);
    retire(slot);
  }
}

Sent TxSide::send_new(Flow& flow, uint64_t now_ns) {
  skip_unreadable(flow);
  if (!flow.has_unsent()) return Sent::kNothing;
  const uint32_t slot = flow.first_pass.unsent.front();
  Extent& e = extents_[slot];
  if (e.state != State::kReady || e.length == 0 || holds_back(flow, e)) return Sent::kNothing;
  if (e.sent == 0) {
    if (flow.credit.opened >= flow.credit.limit) return Sent::kNothing;
    ++flow.credit.opened;
    CHECK(flow.credit.opened <= flow.credit.limit, "no extent is opened without credit");
    set(flow.slot.state.opened_extents, flow.credit.opened);
  }
  const uint32_t bytes =
      chunk_length(e.wire_bytes, flow.config.chunk_bytes, e.sent / flow.config.chunk_bytes);
  uint64_t digest = 0;
  if (!send_chunk(flow, e, e.sent, bytes, 0, now_ns, &digest)) {
    if (e.sent == 0) --flow.credit.opened;
    return Sent::kNoRoom;
  }
  if (e.sent == 0) flow.first_pass.read_ahead.began(now_ns);
  if (e.form == TxForm::kPlain) e.crc = flow.digest.append(e.crc, digest, bytes);
  e.sent += bytes;
  add(flow.slot.state.chunks, 1);
  add(flow.slot.state.bytes, bytes);
  if (e.sent == e.wire_bytes) finish_first_pass(flow, slot);
  return Sent::kYes;
}

void TxSide::finish_first_pass(Flow& flow, uint32_t slot) {
  Extent& e = extents_[slot];
  flow.first_pass.unsent.pop();
  change(&e.state, State::kHeld);
  flow.repeats.insert(slot);
  if (e.buffer == &e.mapped &&
      e.object->mapping->damaged()) {  // the file was cut off, and zeros were sent instead
    resources_.count(Counter::disk_errors);
    return resources_.emit({.kind = board::EventKind::kExtentFailed,
                            .flow = flow.index,
                            .object = e.object->id,
                            .offset = e.offset,
                            .length = e.length,
                            .value = ENODATA});
  }
  if (e.form == TxForm::kCompressed) {
    add(flow.slot.state.compressed_bytes, e.length);
    add(flow.slot.state.compressed_wire_bytes, e.wire_bytes);
  }
  resources_.emit({.kind = board::EventKind::kExtentSent,
                   .flow = flow.index,
                   .object = e.object->id,
                   .offset = e.offset,
                   .length = e.length,
                   .digest = e.crc});
  if (e.ends_partition) tell_partition_sent(flow, e.object->id, e.partition_offset, e.partition_length);
  if (e.listed_early) {
    e.listed_early = false;
    complete(flow, {e.object->id, e.key.number});
  } else if (e.never_listed) {
    give_credit_back(flow, slot);
  } else if (flow.config.codes != 0) {
    begin_parity(flow, slot);
  }
}

// tx_seq is the next one to be used: everything below it has left (docs/WIRE.md, "Probe"). No two probes are
// under one number of their own.
wire::Header TxSide::probe_header(const Flow& flow, uint64_t send_time_ns, uint32_t padding_bytes) {
  return {.type = wire::Type::kProbe,
          .flow_id = flow.config.flow_id,
          .tx_seq = flow.tx_seq,
          .send_time_ns = send_time_ns,
          .offset = flow.probes.seq,
          .length = padding_bytes,
          .done_seen = flow.peer.done.seen(),
          .credit_wanted = flow.credit.wish.extents(),
          .statuses_heard = flow.peer.statuses_heard};
}

void TxSide::send_probe(Flow& flow, uint64_t now_ns) {
  uint64_t ignored = 0;
  if (!flow.channel.send(probe_header(flow, now_ns, 0), {}, nullptr, 0, &ignored)) return;
  ++flow.probes.seq;
  flow.pacing.last_send_ns = now_ns;
  flow.probes.back_off();
  add(flow.slot.state.probes, 1);
}

Sent TxSide::send_padded(Flow& flow, uint64_t leaves_ns) {
  if (flow.probes.padded.empty()) return Sent::kNothing;
  const uint32_t bytes = flow.probes.padded.front();
  const wire::Header header = probe_header(flow, send_time_ns(flow, leaves_ns), bytes);
  uint64_t ignored = 0;
  if (!flow.channel.send(header, {pattern_->data, bytes}, pattern_, leaves_ns, &ignored))
    return Sent::kNoRoom;
  ++flow.probes.seq;
  flow.probes.padded.pop();
  flow.pacing.pacer.sent(leaves_ns, flow.channel.wire_bytes(bytes));
  add(flow.slot.state.padded_probes, 1);
  return Sent::kYes;
}

uint64_t TxSide::next_due_ns(uint64_t now_ns) const {
  uint64_t due = UINT64_MAX;
  for (const auto& flow : flows_) {
    const bool waiting = Work::Order::waits(*flow);
    const uint64_t next_ns =
        flow->pacing.pacer.next_ns() - std::min(flow->pacing.pacer.next_ns(), ahead_ns());
    if (waiting && next_ns > now_ns) due = std::min(due, next_ns);
    // A probe that was due and did not leave waits for something else, like the device.
    const uint64_t probe_ns = probe_due_ns(*flow, now_ns);
    if (probe_ns > now_ns) due = std::min(due, probe_ns);
    if (flow->echoes.awaited()) due = std::min(due, flow->echoes.waits_until_ns());
  }
  return due;
}

}  // namespace sluice::lane
