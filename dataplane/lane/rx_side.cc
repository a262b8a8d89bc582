// The hot part of receiving: one datagram, from header to its place, and an extent that is complete. The rest
// is in rx_control.cc.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/rx_side.h"

#include <algorithm>
#include <cstring>

#include "dataplane/base/check.h"
#include "dataplane/core/moved_peer.h"
#include "dataplane/lane/rx_flow.h"

namespace sluice::lane {

RxSide::Flow* RxSide::match(const net::RxDatagram& datagram, const wire::Header& header, uint64_t now_ns) {
  const auto slot = static_cast<uint32_t>(header.flow_id & 0xFFFF);  // we named the flow so
  if (slot >= flows_.size() || flows_[slot] == nullptr) return nullptr;
  Flow& flow = *flows_[slot];
  if (flow.config.flow_id != header.flow_id || flow.closing) return nullptr;
  if (!flow.channel.is_way_of(datagram) && !follow(flow, datagram, header, now_ns)) return nullptr;
  return &flow;
}

// It came from another address than the peer's. True: the peer is there now.
bool RxSide::follow(Flow& flow, const net::RxDatagram& datagram, const wire::Header& h, uint64_t now_ns) {
  if (flow.config.reach != board::Reach::kPeerOpens) return false;
  const KnownSender known{.send_time_ns = flow.sender.send_time_ns,
                          .arrival_ns = flow.sender.arrival_ns,
                          .statuses_heard = flow.sender.statuses_heard,
                          .statuses_sent = flow.status.seq,
                          .done_known = flow.done_log.known(),
                          .done_end = flow.done_log.end()};
  const SaidOfSender said{
      .send_time_ns = h.send_time_ns, .statuses_heard = h.statuses_heard, .done_seen = h.done_seen};
  if (!flow.channel.may_be_moved(datagram, now_ns) || !is_same_sender(known, said, now_ns) ||
      flow.is_copy(h) || !flow.channel.seal().open(h, datagram.payload, nullptr).good()) {
    resources_.count(Counter::rx_false_address);
    return false;
  }
  resources_.count(Counter::peer_addresses);
  flow.channel.move_to(datagram, now_ns);
  flow.status.send_at_once();
  return true;
}

// What any valid datagram of the flow tells of its path.
void RxSide::note_arrival(Flow& flow, const wire::Header& header, bool overtaken, uint64_t now_ns) {
  set(flow.slot.state.last_peer_ns, now_ns);
  flow.sender.send_time_ns = header.send_time_ns;
  flow.sender.arrival_ns = now_ns;
  flow.sender.delays.add(static_cast<int64_t>(now_ns - header.send_time_ns), overtaken);
}

// And what data and probes tell of their sender.
void RxSide::note_peer(Flow& flow, const wire::Header& header, bool overtaken, uint64_t now_ns) {
  note_arrival(flow, header, overtaken, now_ns);
  flow.sender.statuses_heard = header.statuses_heard;
  flow.sender.credit_wanted_extents = header.credit_wanted;
  const uint64_t known = flow.done_log.known();
  if (!flow.done_log.echoed(header.done_seen)) return resources_.count(Counter::rx_false_done_seen);
  if (flow.done_log.known() > known) flow.channel.confirm(now_ns);  // it has had a status of ours
}

// Nothing else of the flow moves by it.
void RxSide::count_unopened(Flow& flow, const wire::Header& h, seal::Outcome outcome) {
  if (outcome == seal::Outcome::kBadEpoch) return resources_.count(Counter::rx_drop_bad_key_epoch);
  if (h.type == wire::Type::kData) add(flow.slot.state.crc_errors, 1);
  resources_.count(flow.channel.seal().enciphers(h.type) ? Counter::rx_drop_forged : Counter::rx_drop_crc);
}

// Data below the window, not enciphered. If nothing else comes, a false datagram moved the window, and it
// goes back. A stranger who replays old data does no harm, since the bytes are there already.
void RxSide::on_old_data(Flow& flow, const net::RxDatagram& datagram, const wire::Header& h,
                         uint64_t now_ns) {
  const seal::Opened opened = flow.channel.seal().open(h, datagram.payload, nullptr);
  if (!opened.good()) return count_unopened(flow, h, opened.outcome());
  flow.channel.heard(now_ns);
  if (h.tx_seq >= flow.arrivals.window.end()) return resources_.count(Counter::rx_drop_far_tx_seq);
  resources_.count(Counter::rx_drop_old_tx_seq);
  if (!flow.arrivals.is_window_wrong(flow.slot.state.chunks.load(std::memory_order_relaxed))) return;
  resources_.count(Counter::rx_window_restarts);
  flow.arrivals.restart(h.tx_seq);
  flow.slot.state.probe_end.store(flow.arrivals.probe_end, std::memory_order_release);
  flow.slot.state.highest_data_end.store(flow.arrivals.window.end(), std::memory_order_release);
}

// Its number will not be taken for lost.
void RxSide::mark_received(Flow& flow, const wire::Header& header, SeqWindow::Novelty novelty) {
  if (novelty != SeqWindow::Novelty::kNew) return;
  if (header.tx_seq < flow.slot.control.settled_below.load(std::memory_order_relaxed)) {
    add(flow.slot.state.late_chunks, 1);
  }
  flow.arrivals.window.mark(header.tx_seq);
  flow.slot.state.highest_data_end.store(flow.arrivals.window.end(), std::memory_order_release);
}

void RxSide::on_data(const net::RxDatagram& datagram, const wire::Header& h, uint64_t now_ns) {
  Flow* const flow = match(datagram, h, now_ns);
  if (flow == nullptr) return resources_.count(Counter::rx_drop_unknown_flow);
  if ((h.flags & wire::kFlagCompressed) != 0 && flow->config.choice.compress == board::Compress::kOff)
    return resources_.count(Counter::rx_drop_bad_type);
  const auto novelty = flow->arrivals.window.check(h.tx_seq);
  if (flow->is_copy(h)) {
    return resources_.count(novelty == SeqWindow::Novelty::kSeen ? Counter::rx_drop_replayed
                                                                 : Counter::rx_drop_old_tx_seq);
  }
  if (novelty == SeqWindow::Novelty::kTooOld) return on_old_data(*flow, datagram, h, now_ns);

  const ChunkPlace place = place_of(*flow, h);
  const seal::Opened opened = flow->channel.seal().open(h, datagram.payload, empty_place(*flow, place, h));
  if (!opened.good()) return count_unopened(*flow, h, opened.outcome());
  flow->channel.heard(now_ns);
  if (!flow->arrivals.believes(h.tx_seq + 1, h.send_time_ns)) {
    return resources_.count(Counter::rx_drop_far_tx_seq);
  }
  if (novelty == SeqWindow::Novelty::kNew) flow->arrivals.came(h.tx_seq);

  Object* const object = wanted_object(*flow, h.object);
  if (object == nullptr) {
    // Its file may be done. The number is recorded, since the sender would repeat a loss for ever.
    mark_received(*flow, h, novelty);
    return resources_.count(Counter::rx_drop_unknown_object);
  }
  std::optional<wire::CompressedHead> compressed;
  if (!takes_form(h, opened, &compressed) || !is_chunk_of(*object, *flow, place, h, compressed))
    return resources_.count(Counter::rx_drop_out_of_range);

  Extent* extent = nullptr;
  // A stranger may have used the number before: only the bytes that are here count.
  if (!object->has_written(place.number)) {
    extent = extent_for(*flow, *object, place, (h.flags & wire::kFlagRepair) != 0, compressed);
    if (extent == nullptr) {
      add(flow->slot.state.no_buffer_drops, 1);
      return resources_.count(Counter::rx_drop_no_buffer);
    }
    // Control gave two flows of a session different chunks: the extent's map knows only those of the first.
    if (!divides_alike(*extent, *flow)) return resources_.count(Counter::rx_drop_out_of_range);
    if (!has_form(*flow, *extent, h, compressed)) extent = nullptr;
  }
  resources_.count(Counter::rx_chunks);
  const bool overtaken = h.tx_seq < flow->arrivals.window.end();
  mark_received(*flow, h, novelty);
  note_peer(*flow, h, overtaken, now_ns);
  if (extent == nullptr || extent->map.has(place.chunk)) return add(flow->slot.state.duplicate_chunks, 1);
  store_chunk(*flow, *extent, place, h, opened);
  if (extent->map.complete()) return complete(*extent);
  look_at_chunk(*extent, place.chunk);
}

RxSide::ChunkPlace RxSide::place_of(const Flow& flow, const wire::Header& h) const {
  const uint32_t extent_bytes = flow.config.extent_bytes;
  const uint32_t chunk_bytes = flow.config.chunk_bytes;
  const uint64_t number = h.offset / extent_bytes;
  const auto at = static_cast<uint32_t>(h.offset % extent_bytes);
  return {.number = number,
          .at = at,
          .chunk = at / chunk_bytes,
          .begins_chunk = at % chunk_bytes == 0,
          .slot = table_.find({flow.config.session, h.object, number})};
}

// The chunk's bytes in the buffer of its open extent, if none have come for them. The header is not
// authenticated yet: good bytes overwrite false ones later. Never in a file in memory, which may hold the
// bytes already, from another worker or an earlier run.
uint8_t* RxSide::empty_place(const Flow& flow, const ChunkPlace& place, const wire::Header& h) {
  if (place.slot == ExtentTable::kNone) return nullptr;
  const Extent& e = extents_[place.slot];
  const bool compressed = (h.flags & wire::kFlagCompressed) != 0;
  if (e.state != RxExtentState::kFilling || e.data == nullptr || !divides_alike(e, flow) ||
      compressed != e.compressed.has_value() || (e.object->mapping != nullptr && !compressed) ||
      !place.begins_chunk || place.at >= e.wire_bytes ||
      h.length != chunk_length(e.wire_bytes, flow.config.chunk_bytes, place.chunk) ||
      e.map.has(place.chunk)) {
    return nullptr;
  }
  return e.data + place.at;
}

// nullptr: nobody wants data of it from this flow. Data without a check go nowhere but into null:.
Object* RxSide::wanted_object(Flow& flow, uint32_t id) const {
  Object* const object = resources_.objects.find(flow.config.session, id);
  if (object == nullptr || !object->is(board::kObjectWrite)) return nullptr;
  const bool checked = wire::checks(flow.channel.seal().data_kind());
  return checked || object->is(board::kObjectDiscard) ? object : nullptr;
}

// The header names exactly one chunk of the object, as the flow divides it.
bool RxSide::is_chunk_of(const Object& object, const Flow& flow, const ChunkPlace& place,
                         const wire::Header& h, const std::optional<wire::CompressedHead>& compressed) {
  const board::FlowConfig& config = flow.config;
  if (object.extent_bytes != config.extent_bytes || h.offset >= object.size || !place.begins_chunk ||
      h.length == 0)
    return false;
  uint32_t bytes = object.extent_length(place.number);
  if (compressed) {
    if (compressed->wire_bytes >= bytes || place.at >= compressed->wire_bytes ||
        !wire::are_chunks(compressed->wire_bytes, config.chunk_bytes))
      return false;
    bytes = compressed->wire_bytes;
  }
  return h.length == chunk_length(bytes, config.chunk_bytes, place.chunk);
}

// Authentic bytes that were missing.
void RxSide::store_chunk(Flow& flow, Extent& e, const ChunkPlace& place, const wire::Header& h,
                         const seal::Opened& opened) {
  CHECK(place.at + h.length <= e.wire_bytes,
        "a chunk lies within its extent: nothing else is ever written to");
  if (!opened.placed() && e.data != nullptr) opened.place(e.data + place.at);
  e.chunk_crcs[place.chunk] = opened.digest();
  e.map.set(place.chunk);
  add(flow.slot.state.chunks, 1);
  add(flow.slot.state.bytes, h.length);
  flow.log.packet(board::LogKind::kReceived, h);
  flow.status.send_within(flow.config.status_interval_ns);
}

// An extent's map and digest are of the chunks of the flow that opened it.
bool RxSide::divides_alike(const Extent& e, const Flow& flow) {
  return e.flow == &flow || (e.flow->config.chunk_bytes == flow.config.chunk_bytes &&
                             e.flow->channel.seal().data_kind() == flow.channel.seal().data_kind());
}

// The extent that takes this chunk, opened if it is not. nullptr: there is no room for it.
RxSide::Extent* RxSide::extent_for(Flow& flow, Object& object, const ChunkPlace& place, bool repair,
                                   const std::optional<wire::CompressedHead>& compressed) {
  // An extent that no disk writes is complete with its last chunk, and control must hear of that.
  const bool told_now = object.mapping != nullptr || object.is(board::kObjectDiscard);
  if (told_now && !resources_.has_event_room()) return nullptr;
  if (place.slot != ExtentTable::kNone) return &extents_[place.slot];
  if (flow.done_log.unknown() + flow.open.size() >= flow.done_log.kept()) return nullptr;
  const uint32_t index = pool_.take(repair);
  if (index == storage::ExtentPool::kNone) {
    starved_ = true;
    return nullptr;
  }
  Extent& e = extents_[index];
  e.key = {object.session, object.id, place.number};
  table_.insert(e.key, index);
  change(&e.state, RxExtentState::kFilling);
  e.flow = &flow;
  e.object = &object;
  e.length = object.extent_length(place.number);
  e.summed = 0;
  e.sums = {};
  begin_form(e, compressed);
  object.extents_in_use.fetch_add(1, std::memory_order_relaxed);
  flow.open.insert(index);
  return &e;
}

void RxSide::choose_place(Extent& e) {
  const Object& object = *e.object;
  e.data = nullptr;
  e.write_error = 0;
  if (e.compressed || (object.mapping == nullptr && !object.is(board::kObjectDiscard))) {
    e.data = resources_.datagrams.buffers()[slot_of(e)].data;
    return;
  }
  if (object.is(board::kObjectDiscard)) return;
  const uint64_t offset = e.key.number * object.extent_bytes;
  e.write_error = object.mapping->populate(offset, e.length);
  if (e.write_error == 0) e.data = object.mapping->data() + offset;
}

// Every chunk is there.
void RxSide::complete(Extent& e) {
  if (e.compressed) return begin_restoring(slot_of(e) - first_);
  e.crc = e.flow->digest.fold(e.chunk_crcs.data(), e.length);
  there(e);
}

// Its bytes are there, and summed: write, once and whole.
void RxSide::store(Extent& e) {
  if (e.object->is(board::kObjectDiscard)) return finished(e);
  seal::FlowSeal::publish();
  if (e.object->mapping != nullptr) {
    if (e.write_error == 0 && e.object->mapping->damaged()) e.write_error = EIO;
    return written(e, e.write_error);
  }
  const bool direct = e.object->is(board::kObjectDirect);
  if (direct && e.length % storage::kDirectAlignment != 0) {
    // These bytes lie behind the end of the file. They are cut off when it is finished, and until then they
    // must not show what the buffer held before.
    std::memset(e.data + e.length, 0, storage::kDirectAlignment - e.length % storage::kDirectAlignment);
  }
  leave_steps(e);
  change(&e.state, RxExtentState::kWriting);
  ++writing_;
  resources_.disk.start(slot_of(e), {.fd = e.object->fd.get(),
                                     .data = e.data,
                                     .offset = e.object->base + e.key.number * e.object->extent_bytes,
                                     .length = e.length,
                                     .write = true,
                                     .direct = direct});
}

void RxSide::finished(Extent& e) {
  Flow& flow = *e.flow;
  e.object->set_written(e.key.number);
  flow.done_log.push({e.object->id, e.key.number});
  ++flow.credit.released;
  add(flow.slot.state.bytes_done, e.length);
  add(flow.slot.state.extents_done, 1);
  flow.log.bytes(board::LogKind::kCompletion, e.object->id, e.key.number * e.object->extent_bytes, e.length);
  resources_.emit({.kind = board::EventKind::kExtentWritten,
                   .flow = flow.index,
                   .object = e.object->id,
                   .tag = e.summed,
                   .offset = e.key.number * e.object->extent_bytes,
                   .length = e.length,
                   .digest = e.crc,
                   .sums = e.sums});
  // A sender may be waiting for credit, so it is told of a quarter of its window at once.
  if (flow.grant_credit() - flow.credit.told >= std::max(1U, flow.credit_window() / 4))
    flow.status.send_at_once();
  release(e);
}

void RxSide::on_written(uint32_t slot, int error) {
  Extent& e = extents_[slot - first_];
  CHECK(e.state == RxExtentState::kWriting && writing_ > 0, "a disk ends what was begun on it, once");
  --writing_;
  if (error == 0) drain_.written(e.length);
  written(e, error);
}

void RxSide::written(Extent& e, int error) {
  resources_.count(Counter::disk_writes);
  if (error == 0 && !e.flow->closing) return finished(e);
  if (error != 0) {
    resources_.count(Counter::disk_errors);
    e.flow->log.event({.offset = e.key.number * e.object->extent_bytes,
                       .length = e.length,
                       .value = static_cast<uint64_t>(error),
                       .object = e.object->id,
                       .kind = board::LogKind::kFailure});
    resources_.emit({.kind = board::EventKind::kExtentFailed,
                     .flow = e.flow->index,
                     .object = e.object->id,
                     .offset = e.key.number * e.object->extent_bytes,
                     .length = e.length,
                     .value = static_cast<uint64_t>(error)});
  }
  release(e);
}

void RxSide::release(Extent& e) {
  Flow& flow = *e.flow;
  table_.erase(e.key);
  if (e.object->mapping != nullptr) {
    e.object->mapping->forget(e.key.number * e.object->extent_bytes, e.length);
  }
  e.object->extents_in_use.fetch_sub(1, std::memory_order_release);
  leave_steps(e);
  change(&e.state, RxExtentState::kFree);
  e.flow = nullptr;
  e.object = nullptr;
  const uint32_t index = slot_of(e) - first_;
  parity_.drop(index);
  e.compressed.reset();
  flow.open.erase(index);
  pool_.give_back(index);
  if (flow.closing) settle_closed(flow.index);
}

void RxSide::on_probe(const net::RxDatagram& datagram, const wire::Header& h, uint64_t now_ns) {
  Flow* const flow = match(datagram, h, now_ns);
  if (flow == nullptr) return resources_.count(Counter::rx_drop_unknown_flow);
  if (h.length > wire::kChunkBytesMax) return resources_.count(Counter::rx_drop_bad_status);
  if (flow->is_copy(h)) return resources_.count(Counter::rx_drop_replayed);
  const seal::Opened opened = flow->channel.seal().open(h, datagram.payload, nullptr);
  if (!opened.good()) return count_unopened(*flow, h, opened.outcome());
  flow->arrivals.probe_window.mark(h.offset);
  flow->channel.heard(now_ns);
  resources_.count(Counter::rx_probes);
  if (h.length > 0) {
    flow->padded.came(h.length, now_ns);
    add(flow->slot.state.padded_probes, 1);
  }
  add(flow->slot.state.probes, 1);
  note_peer(*flow, h, false, now_ns);
  if (h.tx_seq <= SeqWindow::kSeqEnd && flow->arrivals.believes(h.tx_seq, h.send_time_ns)) {
    flow->arrivals.probe_end = std::max(flow->arrivals.probe_end, h.tx_seq);
    flow->slot.state.probe_end.store(flow->arrivals.probe_end, std::memory_order_release);
  } else {
    resources_.count(Counter::rx_far_probes);
  }
  flow->status.send_at_once();  // a probe is answered at once
}

}  // namespace sluice::lane
