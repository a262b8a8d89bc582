// What is sent again: because it was reported lost, or, on a channel that loses most, before it can be.
//
// Hot. See tx_side.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "dataplane/core/chunk_map.h"
#include "dataplane/lane/tx_flow.h"

namespace sluice::lane {

TxSide::Sent TxSide::send_retransmission(Flow& flow, uint64_t now_ns) {
  const auto next = [&] {
    flow.retransmissions.pop();
    flow.copies_sent = 0;
  };
  while (!flow.retransmissions.empty()) {
    const SentChunk chunk = flow.retransmissions.front();
    const uint64_t number = chunk.offset / flow.config.extent_bytes;
    const uint32_t slot = table_.find({flow.config.session, chunk.object, number});
    // It is not held any more: the peer completed the extent, or it was sent as a repair, of which the peer
    // asks again by NEED.
    if (slot == ExtentTable::kNone || extents_[slot].flow != &flow) {
      next();
      continue;
    }
    const Extent& e = extents_[slot];
    const auto at = static_cast<uint32_t>(chunk.offset - e.offset);
    // The report is of an earlier life of this extent. The first pass of this one is still to come, so its
    // bytes may not even be read; or the object is a shorter one by now.
    if (at + chunk.length > e.sent) {
      next();
      continue;
    }
    // A copy of it came after all.
    if (!e.holes.has(at / flow.config.chunk_bytes)) {
      next();
      continue;
    }
    uint64_t ignored = 0;
    const uint64_t tx_seq = flow.tx_seq;
    if (!send_chunk(flow, e, at, chunk.length, wire::kFlagRetransmission, now_ns, &ignored)) {
      return Sent::kNoRoom;
    }
    SentChunk again = chunk;
    ++again.tries;
    flow.sent_ring.put(tx_seq, again);
    if (flow.copies_sent == 0) {
      flow.first_copy = tx_seq;
    } else {
      flow.sent_ring.copies(tx_seq, flow.first_copy);
    }
    if (++flow.copies_sent >= flow.repetition().copies(chunk.tries)) next();
    add(flow.slot.state.retransmitted_chunks, 1);
    return Sent::kYes;
  }
  return Sent::kNothing;
}

bool TxSide::may_repeat(const Flow& flow, const Extent& e, uint32_t passes_max) {
  return e.flow == &flow && e.state == State::kHeld && !e.repair && e.passes < passes_max &&
         e.holes.count() > 0 && e.holes.count() * (e.passes + 1U) <= flow.repeat_cost;
}

// The extent whose turn it is, with its next hole in flow.repeat_at. Those that miss least come first: few
// datagrams end them, and free memory for others.
TxSide::Extent* TxSide::find_repeat(Flow& flow, uint32_t passes_max) {
  for (;;) {
    Extent& e = extents_[flow.repeat_slot];
    if (may_repeat(flow, e, passes_max)) {
      flow.repeat_at = e.holes.next(flow.repeat_at);
      if (flow.repeat_at < e.holes.chunks()) return &e;
      ++e.passes;
    }
    flow.repeat_at = 0;
    if (++flow.repeat_slot < extents_.size()) continue;
    flow.repeat_slot = 0;
    if (std::exchange(flow.repeated, false)) continue;
    if (flow.repeat_cost >= Repetition::kCostMax) return nullptr;
    flow.repeat_cost = std::max(1U, 2 * flow.repeat_cost);
  }
}

// While nothing else can be sent, where most is lost: what the peer may still miss, and again. No report is
// answered for these: the transmission before still stands for the chunk.
TxSide::Sent TxSide::send_repeat(Flow& flow, uint64_t now_ns) {
  if (!repeats(flow)) return Sent::kNothing;
  if (!flow.unsent.empty() && extents_[flow.unsent.front()].state == State::kReading) return Sent::kNothing;
  const board::FlowConfig& config = flow.config;
  const uint32_t passes = flow.repetition().passes(chunk_count(config.extent_bytes, config.chunk_bytes));
  Extent* const e = find_repeat(flow, passes);
  if (e == nullptr) return Sent::kNothing;
  const uint64_t tx_seq = flow.tx_seq;
  uint64_t ignored = 0;
  if (!send_chunk(flow, *e, flow.repeat_at * config.chunk_bytes,
                  chunk_length(e->length, config.chunk_bytes, flow.repeat_at), wire::kFlagRetransmission,
                  now_ns, &ignored)) {
    return Sent::kNoRoom;
  }
  (void)flow.sent_ring.take(tx_seq);
  add(flow.slot.state.retransmitted_chunks, 1);
  ++flow.repeat_at;
  flow.repeated = true;
  return Sent::kYes;
}

}  // namespace sluice::lane
