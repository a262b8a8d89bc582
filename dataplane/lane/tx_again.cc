// What is sent again: because it was reported lost, or, on a channel that loses most, before it can be.
//
// Hot. See tx_side.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "dataplane/core/chunk_map.h"
#include "dataplane/lane/tx_flow.h"

namespace sluice::lane {

Sent TxSide::send_retransmission(Flow& flow, uint64_t now_ns) {
  Retransmissions& queue = flow.retransmissions;
  while (!queue.lost.empty()) {
    const SentChunk chunk = queue.lost.front();
    const uint64_t number = chunk.offset / flow.config.extent_bytes;
    const uint32_t slot = table_.find({flow.config.session, chunk.object, number});
    // It is not held any more: the peer completed the extent, or it was sent as a repair, of which the peer
    // asks again by NEED.
    if (slot == ExtentTable::kNone || extents_[slot].flow != &flow) {
      queue.pop();
      continue;
    }
    const Extent& e = extents_[slot];
    const auto at = static_cast<uint32_t>(chunk.offset - e.offset);
    // The report is of an earlier life of this extent. The first pass of this one is still to come, so its
    // bytes may not even be read; or the object is a shorter one by now.
    if (at + chunk.length > e.sent) {
      queue.pop();
      continue;
    }
    // Its former life was divided otherwise.
    if (chunk.length != chunk_length(e.wire_bytes, flow.config.chunk_bytes, at / flow.config.chunk_bytes)) {
      queue.pop();
      continue;
    }
    // A copy of it came after all.
    if (flow.repetition().called_for() && !e.holes.has(at / flow.config.chunk_bytes)) {
      queue.pop();
      continue;
    }
    uint64_t ignored = 0;
    const uint64_t tx_seq = flow.tx_seq;
    if (!send_chunk(flow, e, at, chunk.length, wire::kFlagRetransmission, now_ns, &ignored)) {
      return Sent::kNoRoom;
    }
    queue.sent(tx_seq);
    if (queue.copies_sent >= flow.repetition().copies(chunk.tries)) queue.pop();
    add(flow.slot.state.retransmitted_chunks, 1);
    return Sent::kYes;
  }
  return Sent::kNothing;
}

// The extent whose turn it is, at its next hole. Those that miss least come first: few datagrams end them,
// and free memory for others. nullptr: each was repeated as often as makes sense.
TxSide::Extent* TxSide::find_repeat(Flow& flow) {
  const board::FlowConfig& config = flow.config;
  const uint32_t passes_max = flow.repetition().passes(chunk_count(config.extent_bytes, config.chunk_bytes));
  for (int walk = 0; walk < 2; ++walk) {
    uint32_t least_cost = UINT32_MAX;
    for (uint32_t n = 0; n < flow.repeats.held.size(); ++n) {
      if (flow.repeats.next >= flow.repeats.held.size()) flow.repeats.next = 0;
      Extent& e = extents_[flow.repeats.held.at(flow.repeats.next)];
      if (e.repeat_cost() <= flow.repeats.cost_max_chunks && e.passes < passes_max && e.holes.count() > 0) {
        e.repeat_at = e.holes.next(e.repeat_at);
        if (e.repeat_at < e.holes.chunks()) return &e;
        e.repeat_at = 0;
        ++e.passes;
      }
      if (e.passes < passes_max && e.holes.count() > 0) least_cost = std::min(least_cost, e.repeat_cost());
      ++flow.repeats.next;
    }
    if (least_cost == UINT32_MAX) break;
    flow.repeats.cost_max_chunks = least_cost;
  }
  flow.repeats.all_repeated = true;
  return nullptr;
}

// While nothing else can be sent, where most is lost: what the peer may still miss, and again. No report is
// answered for these: the transmission before still stands for the chunk.
Sent TxSide::send_repeat(Flow& flow, uint64_t now_ns) {
  if (!flow.has_repeats()) return Sent::kNothing;
  if (!flow.first_pass.unsent.empty() && extents_[flow.first_pass.unsent.front()].state == State::kReading)
    return Sent::kNothing;
  Extent* const e = find_repeat(flow);
  if (e == nullptr) return Sent::kNothing;
  const uint32_t chunk_bytes = flow.config.chunk_bytes;
  const uint64_t tx_seq = flow.tx_seq;
  uint64_t ignored = 0;
  if (!send_chunk(flow, *e, e->repeat_at * chunk_bytes,
                  chunk_length(e->wire_bytes, chunk_bytes, e->repeat_at), wire::kFlagRetransmission, now_ns,
                  &ignored)) {
    return Sent::kNoRoom;
  }
  (void)flow.retransmissions.sent_ring.take(tx_seq);
  add(flow.slot.state.retransmitted_chunks, 1);
  ++e->repeat_at;
  return Sent::kYes;
}

}  // namespace sluice::lane
