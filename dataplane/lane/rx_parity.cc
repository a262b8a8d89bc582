// Repair symbols of erasure codes, where they arrive: kept until as many are here as chunks of their block
// are missing, then used in their place.
//
// What a decoder made is written nowhere before the digest of its block was found right. See rx_side.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "dataplane/coding/block_digest.h"
#include "dataplane/coding/block_layout.h"
#include "dataplane/lane/coder.h"
#include "dataplane/lane/rx_flow.h"

namespace sluice::lane {
namespace {

using coding::BlockLayout;

// The layout of an extent's blocks. K is that of whole extents, also where this is a shorter one.
BlockLayout layout_of(const board::FlowConfig& config, uint32_t chunks, coding::Scheme scheme) {
  return {chunks, coding::source_symbols(scheme, shape_of(config))};
}

coding::Scheme scheme_of(const wire::Header& h) {
  return (h.flags & wire::kFlagRaptorQ) != 0 ? coding::Scheme::kRaptorQ : coding::Scheme::kReedSolomon;
}

bool is_of_compressed(const wire::Header& h) { return (h.flags & wire::kFlagOfCompressed) != 0; }

}  // namespace

bool RxSide::prepare_codes(const board::FlowConfig& config) {
  if (config.codes == 0) return true;
  if (!resources_.coder.prepare(config.codes, config.extent_bytes, config.chunk_bytes)) return false;
  const uint32_t symbol_bytes = coding::symbol_bytes(config.extent_bytes, config.chunk_bytes);
  const uint64_t bytes = uint64_t{kParityShareOfExtents} * extents_.size() * config.extent_bytes / 100;
  uint32_t blocks = 0;
  for (const coding::Scheme scheme : {coding::Scheme::kReedSolomon, coding::Scheme::kRaptorQ})
    if ((config.codes & code_bit(scheme)) != 0)
      blocks = std::max(
          blocks, layout_of(config, chunk_count(config.extent_bytes, config.chunk_bytes), scheme).blocks());
  // A datagram names its block by one byte.
  parity_.make_room(std::max<uint64_t>(bytes, uint64_t{2} * Coder::kRepairMax * symbol_bytes),
                    {.symbol_bytes = symbol_bytes, .blocks = std::min(blocks, 256U)});
  return true;
}

// The steps of on_data, as far as they concern a repair symbol.
void RxSide::on_parity(const net::RxDatagram& datagram, const wire::Header& h, uint64_t now_ns) {
  Flow* const flow = match(datagram, h, now_ns);
  if (flow == nullptr) return resources_.count(Counter::rx_drop_unknown_flow);
  if ((flow->config.codes & code_bit(scheme_of(h))) == 0 ||
      (is_of_compressed(h) && flow->config.choice.compress == board::Compress::kOff))
    return resources_.count(Counter::rx_drop_bad_type);
  const auto novelty = flow->arrivals.window.check(h.tx_seq);
  if (novelty != SeqWindow::Novelty::kNew) {
    return resources_.count(novelty == SeqWindow::Novelty::kSeen ? Counter::rx_drop_replayed
                                                                 : Counter::rx_drop_old_tx_seq);
  }
  const seal::Opened opened = flow->channel.seal().open(h, datagram.payload, nullptr);
  if (!opened.good()) return count_unopened(*flow, h, opened.outcome());
  flow->channel.heard(now_ns);
  if (!flow->arrivals.believes(h.tx_seq + 1, h.send_time_ns))
    return resources_.count(Counter::rx_drop_far_tx_seq);
  flow->arrivals.came(h.tx_seq);
  Object* const object = wanted_object(*flow, h.object);
  if (object == nullptr) {
    mark_received(*flow, h, novelty);
    return resources_.count(Counter::rx_drop_unknown_object);
  }
  const uint64_t number = h.offset / flow->config.extent_bytes;
  if (!is_parity_of(*object, *flow, h)) return resources_.count(Counter::rx_drop_out_of_range);
  const bool overtaken = h.tx_seq < flow->arrivals.window.end();
  if (!object->has_written(number)) {
    const Counter drop = keep_parity(*flow, *object, h, opened);
    if (drop != Counter::kCount) return resources_.count(drop);
  }
  resources_.count(Counter::rx_parity);
  mark_received(*flow, h, novelty);
  note_arrival(*flow, h, overtaken, now_ns);
  add(flow->slot.state.parity, 1);
}

// The header names a block of the object as the flow divides it, and the payload is one of its symbols. Of a
// compressed extent only its chunks tell how it is divided.
bool RxSide::is_parity_of(const Object& object, const Flow& flow, const wire::Header& h) const {
  const board::FlowConfig& config = flow.config;
  if (object.extent_bytes != config.extent_bytes || h.offset >= object.size ||
      h.offset % config.extent_bytes != 0)
    return false;
  const uint64_t number = h.offset / config.extent_bytes;
  uint32_t length = object.extent_length(number);
  if (is_of_compressed(h)) {
    const uint32_t slot = table_.find({config.session, h.object, number});
    if (slot == ExtentTable::kNone || !extents_[slot].compressed) return h.length <= config.chunk_bytes;
    length = extents_[slot].wire_bytes;
  }
  return h.length == coding::symbol_bytes(length, config.chunk_bytes) &&
         h.block < layout_of(config, chunk_count(length, config.chunk_bytes), scheme_of(h)).blocks();
}

// kCount: it is kept, or not needed.
board::Counter RxSide::keep_parity(Flow& flow, Object& object, const wire::Header& h,
                                   const seal::Opened& opened) {
  const ExtentKey key{flow.config.session, h.object, h.offset / flow.config.extent_bytes};
  const ChunkPlace place{.number = key.number, .slot = table_.find(key)};
  const bool too_early = is_of_compressed(h) && place.slot == ExtentTable::kNone;
  Extent* const e = too_early ? nullptr : extent_for(flow, object, place, false, std::nullopt);
  if (e == nullptr) {
    add(flow.slot.state.no_buffer_drops, 1);
    return Counter::rx_drop_no_buffer;
  }
  if (!divides_alike(*e, flow)) return Counter::rx_drop_out_of_range;
  if (e->compressed.has_value() != is_of_compressed(h)) return Counter::kCount;
  if (e->state != RxExtentState::kFilling || e->data == nullptr) return Counter::kCount;
  const uint32_t extent = slot_of(*e) - first_;
  switch (parity_.look(extent, h)) {
    case ParityStore::Kept::kYes:
      opened.place(parity_.keep(extent, h));
      look_at_block(*e, h.block);
      return Counter::kCount;
    case ParityStore::Kept::kHadIt:
      return Counter::kCount;
    case ParityStore::Kept::kContradiction:
      resources_.count(Counter::rx_false_parity);
      return Counter::kCount;
    case ParityStore::Kept::kNoRoom:
      add(flow.slot.state.no_buffer_drops, 1);
      return Counter::rx_drop_no_buffer;
  }
  return Counter::kCount;
}

// A chunk or a repair symbol of this block has come. If nothing more is needed, its decoder has its turn
// soon.
void RxSide::look_at_block(Extent& e, uint32_t block) {
  const uint32_t extent = slot_of(e) - first_;
  const ParityStore::Block here = parity_.find(extent, block);
  if (here.symbols == 0) return;
  const BlockLayout layout = layout_of(e.flow->config, e.map.chunks(), here.scheme);
  uint32_t missing = 0;
  for (uint32_t i = 0; i < layout.chunks_of(block); ++i)
    missing += e.map.has(layout.chunk_at(block, i)) ? 0 : 1;
  if (missing == 0) return parity_.drop(extent, block);
  if (missing <= std::min(here.symbols, Coder::kRepairMax))
    (void)decodable_.push({.extent = extent, .block = block});
}

void RxSide::look_at_chunk(Extent& e, uint32_t chunk) {
  const uint32_t extent = slot_of(e) - first_;
  if (!parity_.has_any(extent)) return;
  for (const coding::Scheme scheme : {coding::Scheme::kReedSolomon, coding::Scheme::kRaptorQ}) {
    const uint32_t block = layout_of(e.flow->config, e.map.chunks(), scheme).block_of(chunk);
    const ParityStore::Block here = parity_.find(extent, block);
    if (here.symbols > 0 && here.scheme == scheme) look_at_block(e, block);
  }
}

// One block a turn. True when there was one. An extent that it completes may have to be told to control at
// once.
bool RxSide::decode_next() {
  if (!resources_.has_event_room()) return false;
  while (!decodable_.empty()) {
    const Decodable next = decodable_.front();
    Extent& e = extents_[next.extent];
    if (e.state != RxExtentState::kFilling || !parity_.has_any(next.extent)) {
      decodable_.pop();
      continue;
    }
    if (!resources_.coder.take_turn(resources_.turn_ns)) return true;
    decodable_.pop();
    decode_block(e, next.block);
    return true;
  }
  return false;
}

void RxSide::decode_block(Extent& e, uint32_t block) {
  Flow& flow = *e.flow;
  const uint32_t extent = slot_of(e) - first_;
  std::array<coding::RepairSymbol, Coder::kRepairMax> repair;
  const ParityStore::Block here = parity_.find(extent, block, repair);
  const coding::BlockCode* const code = resources_.coder.find(here.scheme, shape_of(flow.config));
  if (here.symbols == 0 || code == nullptr) return;
  const BlockLayout layout = layout_of(flow.config, e.map.chunks(), here.scheme);
  const uint32_t chunk_bytes = flow.config.chunk_bytes;
  const uint32_t symbol_bytes = coding::symbol_bytes(e.wire_bytes, chunk_bytes);
  std::array<uint8_t*, Coder::kBlockMax> source;
  std::array<uint32_t, Coder::kRepairMax> missing;
  uint32_t lost = 0;
  uint32_t last_bytes = chunk_bytes;
  const uint32_t count = layout.chunks_of(block);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t chunk = layout.chunk_at(block, i);
    last_bytes = chunk_length(e.wire_bytes, chunk_bytes, chunk);
    source[i] = e.data + size_t{chunk} * chunk_bytes;
    if (!e.map.has(chunk)) {
      if (lost == missing.size()) return;  // NEED brings what is beyond
      source[i] = resources_.coder.decoded(lost);
      missing[lost++] = i;
    } else if (last_bytes < symbol_bytes) {
      source[i] = resources_.coder.padded({source[i], last_bytes}, symbol_bytes);
    }
  }
  if (lost == 0) return parity_.drop(extent, block);
  const coding::Coded coded =
      code->decode({.source = {source.data(), count},
                    .symbol_bytes = symbol_bytes,
                    .missing = {missing.data(), lost},
                    .repair = {repair.data(), std::min<size_t>(here.symbols, repair.size())}},
                   resources_.coder.arena());
  if (coded == coding::Coded::kNeedsMore) return;
  std::array<const uint8_t*, Coder::kBlockMax> symbols;
  std::copy_n(source.begin(), count, symbols.begin());
  const bool right = coded == coding::Coded::kYes &&
                     coding::block_digest({symbols.data(), count}, chunk_bytes, last_bytes) == here.digest;
  parity_.drop(extent, block);
  if (!right) return resources_.count(Counter::rx_false_parity);  // what is missing comes by NEED, plain
  for (uint32_t i = 0; i < lost; ++i) {
    const uint32_t chunk = layout.chunk_at(block, missing[i]);
    const uint32_t bytes = chunk_length(e.wire_bytes, chunk_bytes, chunk);
    std::copy_n(source[missing[i]], bytes, e.data + size_t{chunk} * chunk_bytes);
    e.chunk_crcs[chunk] = crc::compute(flow.channel.seal().data_kind(), 0, source[missing[i]], bytes);
    e.map.set(chunk);
    add(flow.slot.state.chunks, 1);
    add(flow.slot.state.bytes, bytes);
    add(flow.slot.state.decoded_chunks, 1);
  }
  flow.status.send_within(flow.config.status_interval_ns);
  if (e.map.complete()) complete(e);
}

}  // namespace sluice::lane
