// Repair symbols of erasure codes, where they are made: ahead of losses where that is worth it, and then one
// for each symbol that is reported lost.
//
// A block is over when as many symbols arrived as it has chunks. So a sender counts: of a block it sends one
// repair symbol more whenever more of its symbols were lost than repair symbols were sent. Each has a number
// of its own, so none is sent in vain because another one was late. Hot. See tx_side.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "dataplane/coding/block_digest.h"
#include "dataplane/coding/block_layout.h"
#include "dataplane/core/chunk_map.h"
#include "dataplane/lane/tx_flow.h"

namespace sluice::lane {
namespace {

using coding::BlockLayout;
using coding::Scheme;

// More than K symbols must arrive in one of 100 blocks of RaptorQ.
uint32_t spare_symbols(Scheme scheme) { return scheme == Scheme::kRaptorQ ? 1 : 0; }

}  // namespace

bool TxSide::prepare_codes(const board::FlowConfig& config) {
  return config.codes == 0 || resources_.coder.prepare(config.codes, config.extent_bytes, config.chunk_bytes);
}

coding::PathState TxSide::path_of(const Flow& flow, bool at_end) {
  const LossEstimate& loss = flow.parity.loss;
  const bool where_lost = flow.config.choice.parity == board::Parity::kWhereLost;
  const double expected = at_end ? loss.expected() : loss.expected_now();
  return {.rate_bps = flow.slot.control.rate_bps.load(std::memory_order_relaxed),
          .rtt_ns = flow.peer.round_trip.smoothed_ns(),
          .loss = std::max(flow.config.expected_loss_percent * 0.01, where_lost ? loss.counted() : expected),
          .loss_run_mean = flow.parity.run_mean};
}

coding::ParityChoice TxSide::choose_parity(const Flow& flow, const coding::PathState& path,
                                           bool at_end) const {
  const board::FlowConfig& config = flow.config;
  const uint64_t open = std::min<uint64_t>(
      extents_.size(),
      flow.credit.limit - std::min(flow.credit.limit, flow.credit.opened) + flow.repeats.held.size());
  const coding::WorkState work{.memory_bytes = open * config.extent_bytes,
                               .chunk_bytes = config.chunk_bytes,
                               .extent_bytes = config.extent_bytes};
  // An end that has symbols of one code gets more of the same.
  const uint8_t at_hand = at_end && flow.parity.ended_with > 0 ? flow.parity.end_code : config.codes;
  const coding::CodesAtHand codes{.reed_solomon = (at_hand & kCodeReedSolomon) != 0,
                                  .raptorq = (at_hand & kCodeRaptorQ) != 0};
  if (config.choice.parity == board::Parity::kWhereLost) return coding::parity_where_lost(path, work, codes);
  return at_end ? coding::choose_parity_at_end(path, work, codes) : coding::choose_parity(path, work, codes);
}

// The first pass of an extent is over.
void TxSide::begin_parity(Flow& flow, uint32_t slot) {
  flow.parity.ended_with = 0;
  flow.parity.end_is_new = true;
  const coding::ParityChoice choice = choose_parity(flow, path_of(flow, false), false);
  if (choice.use != coding::ParityUse::kNone) send_ahead(flow, slot, choice);
}

// Nothing else is to be sent: for what the peer may not have yet, as many repair symbols as are worth it, and
// more of them as soon as more is known to be lost.
Sent TxSide::send_parity_at_end(Flow& flow, uint64_t now_ns) {
  if (!flow.has_end()) return Sent::kNothing;
  flow.parity.end_is_new = false;
  const coding::PathState path = path_of(flow, true);
  const coding::ParityChoice choice = choose_parity(flow, path, true);
  if (choice.repair_symbols <= flow.parity.ended_with) return Sent::kNothing;
  const coding::BlockCode* const code = resources_.coder.find(choice.scheme, shape_of(flow.config));
  if (code == nullptr) return Sent::kNothing;
  const SlotList& held = flow.repeats.held;
  coding::EndState end{.wire_bytes = flow.channel.wire_bytes(flow.config.chunk_bytes)};
  for (uint32_t i = 0; i < held.size(); ++i) {
    const uint32_t chunks = extents_[held.at(i)].holes.chunks();
    end.open_chunks += chunks;
    end.parity_chunks += coding::parity_of_extent(BlockLayout(chunks, code->source_symbols()),
                                                  code->source_symbols(), choice.repair_symbols);
  }
  if (choice.use == coding::ParityUse::kAtEnd && !coding::pays_at_end(path, end)) return Sent::kNothing;
  flow.parity.ended_with = choice.repair_symbols;
  flow.parity.end_code = code_bit(choice.scheme);
  for (uint32_t i = 0; i < held.size(); ++i) send_ahead(flow, held.at(i), choice);
  return send_parity(flow, now_ns);
}

// So many repair symbols of each block, with those that were chosen before.
void TxSide::send_ahead(Flow& flow, uint32_t slot, const coding::ParityChoice& choice) {
  Extent& e = extents_[slot];
  const coding::BlockCode* const code = resources_.coder.find(choice.scheme, shape_of(flow.config));
  if (code == nullptr || (e.parity.coded && e.parity.scheme != choice.scheme)) return;
  if (choice.repair_symbols <= e.parity.ahead) return;
  const uint32_t k = code->source_symbols();
  const BlockLayout layout(e.holes.chunks(), k);
  if (layout.blocks() > ParityOfExtent::kBlocksMax) return;
  e.parity.coded = true;
  e.parity.scheme = choice.scheme;
  e.parity.blocks = static_cast<uint16_t>(layout.blocks());
  e.passes = Repetition::kPassesMax;  // nothing is repeated blindly
  for (uint32_t block = 0; block < layout.blocks(); ++block) {
    const uint32_t chunks = layout.chunks_of(block);
    want_parity(flow, slot, block,
                coding::parity_of_block(chunks, k, choice.repair_symbols) -
                    coding::parity_of_block(chunks, k, e.parity.ahead));
  }
  e.parity.ahead = static_cast<uint16_t>(choice.repair_symbols);
}

void TxSide::want_parity(Flow& flow, uint32_t slot, uint32_t block, uint32_t symbols) {
  ParityOfExtent& parity = extents_[slot].parity;
  const coding::BlockCode* const code = resources_.coder.find(parity.scheme, shape_of(flow.config));
  const uint32_t most = std::min<uint32_t>(code->repair_symbols_max(), UINT16_MAX);
  symbols = std::min<uint32_t>(symbols, most - parity.sent[block] - parity.wanted[block]);
  if (symbols == 0) return;
  parity.wanted[block] = static_cast<uint16_t>(parity.wanted[block] + symbols);
  parity.pending += symbols;
  if (parity.waiting) return;
  parity.waiting = true;
  flow.parity.waiting.insert(slot);
}

// Whether nothing else needs to be sent for what was lost: repair symbols of its block suffice, or one more
// does.
bool TxSide::is_made_good_by_parity(Flow& flow, const SentChunk& lost) {
  if (flow.config.codes == 0) return false;
  const uint64_t number = lost.offset / flow.config.extent_bytes;
  const uint32_t slot = table_.find({flow.config.session, lost.object, number});
  if (slot == ExtentTable::kNone || extents_[slot].flow != &flow || extents_[slot].state != State::kHeld ||
      !extents_[slot].parity.coded) {
    return lost.parity;
  }
  ParityOfExtent& parity = extents_[slot].parity;
  const auto chunk = static_cast<uint32_t>(lost.offset - extents_[slot].offset) / flow.config.chunk_bytes;
  const uint32_t block = lost.parity ? lost.length - 1 : chunk % parity.blocks;
  if (block >= parity.blocks) return lost.parity;  // of an earlier life of the extent
  ++parity.lost[block];
  const uint32_t coming = uint32_t{parity.sent[block]} + parity.wanted[block];
  const uint32_t needed = parity.lost[block] + spare_symbols(parity.scheme);
  if (needed <= coming) return true;
  want_parity(flow, slot, block, needed - coming);
  // A code that has no more symbols leaves it to the chunk itself.
  return lost.parity || uint32_t{parity.sent[block]} + parity.wanted[block] >= needed;
}

// False: it had no turn, or there is nothing to encode by.
bool TxSide::encode_block(const Flow& flow, uint32_t slot, uint32_t block) {
  const Extent& e = extents_[slot];
  const uint32_t chunk_bytes = flow.config.chunk_bytes;
  const coding::BlockCode* const code = resources_.coder.find(e.parity.scheme, shape_of(flow.config));
  if (code == nullptr || !resources_.coder.take_turn(resources_.turn_ns)) return false;
  const BlockLayout layout(e.holes.chunks(), code->source_symbols());
  const uint32_t symbol_bytes = coding::symbol_bytes(e.wire_bytes, chunk_bytes);
  const uint32_t count = layout.chunks_of(block);
  std::array<const uint8_t*, Coder::kBlockMax> source;
  uint32_t last_bytes = chunk_bytes;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t chunk = layout.chunk_at(block, i);
    last_bytes = chunk_length(e.wire_bytes, chunk_bytes, chunk);
    source[i] = e.buffer->data + size_t{chunk} * chunk_bytes;
    if (last_bytes < symbol_bytes) source[i] = resources_.coder.padded({source[i], last_bytes}, symbol_bytes);
  }
  const uint32_t symbols = std::min<uint32_t>(e.parity.wanted[block], Coder::kRepairMax);
  std::array<uint8_t*, Coder::kRepairMax> repair;
  for (uint32_t i = 0; i < symbols; ++i) repair[i] = resources_.coder.encoded(i);
  const coding::Coded coded = code->encode({.source = {source.data(), count},
                                            .symbol_bytes = symbol_bytes,
                                            .first_id = e.parity.sent[block],
                                            .repair = {repair.data(), symbols}},
                                           resources_.coder.arena());
  CHECK(coded == coding::Coded::kYes, "no more is wanted than the code has, and its memory was made for it");
  encoded_ = {.slot = slot,
              .block = block,
              .first_id = e.parity.sent[block],
              .symbols = symbols,
              .digest = coding::block_digest({source.data(), count}, chunk_bytes, last_bytes),
              .generation = resources_.coder.generation()};
  return true;
}

Sent TxSide::send_parity(Flow& flow, uint64_t now_ns) {
  if (flow.parity.waiting.empty()) return Sent::kNothing;
  const uint32_t slot = flow.parity.waiting.at(0);
  Extent& e = extents_[slot];
  ParityOfExtent& parity = e.parity;
  while (parity.wanted[parity.next] == 0)
    parity.next = static_cast<uint16_t>((parity.next + 1) % parity.blocks);
  const uint32_t block = parity.next;
  const bool encoded = encoded_.slot == slot && encoded_.block == block &&
                       encoded_.generation == resources_.coder.generation() &&
                       parity.sent[block] >= encoded_.first_id &&
                       parity.sent[block] - encoded_.first_id < encoded_.symbols;
  if (!encoded && !encode_block(flow, slot, block)) return Sent::kNothing;
  const uint32_t symbol_bytes = coding::symbol_bytes(e.wire_bytes, flow.config.chunk_bytes);
  const uint8_t form = e.form == TxForm::kCompressed ? uint8_t{wire::kFlagOfCompressed} : uint8_t{0};
  const uint8_t code = parity.scheme == Scheme::kRaptorQ ? uint8_t{wire::kFlagRaptorQ} : uint8_t{0};
  const uint16_t id = parity.sent[block];
  const wire::Header header{.type = wire::Type::kParity,
                            .flags = static_cast<uint8_t>(code | form),
                            .flow_id = flow.config.flow_id,
                            .tx_seq = flow.tx_seq,
                            .send_time_ns = send_time_ns(flow, now_ns),
                            .offset = e.offset,
                            .object = e.object->id,
                            .length = symbol_bytes,
                            .block = static_cast<uint8_t>(block),
                            .repair_id = id,
                            .block_digest = encoded_.digest};
  uint64_t ignored = 0;
  if (!flow.channel.send(header, {resources_.coder.encoded(id - encoded_.first_id), symbol_bytes}, nullptr,
                         now_ns, &ignored)) {
    return Sent::kNoRoom;
  }
  flow.retransmissions.sent_ring.put(
      flow.tx_seq, {.offset = e.offset, .object = header.object, .length = block + 1, .parity = true});
  ++flow.tx_seq;
  flow.pacing.pacer.sent(now_ns, flow.channel.wire_bytes(symbol_bytes));
  add(flow.slot.state.parity, 1);
  ++parity.sent[block];
  --parity.wanted[block];
  if (--parity.pending == 0) {
    parity.waiting = false;
    flow.parity.waiting.erase(slot);
  }
  return Sent::kYes;
}

}  // namespace sluice::lane
