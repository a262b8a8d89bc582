// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/figures.h"

#include <algorithm>

namespace sluice::metrics {
namespace {

uint64_t read(const std::atomic<uint64_t>& value) { return value.load(std::memory_order_acquire); }

}  // namespace

LaneFigures figures_of(uint32_t lane, const board::FlowSlot& flow) {
  const board::FlowState& state = flow.state;
  LaneFigures figures{.lane = lane,
                      .sends = flow.config.direction == board::Direction::kTx,
                      .payload_bytes = read(state.bytes),
                      .chunks = read(state.chunks),
                      .retransmitted_chunks = read(state.retransmitted_chunks),
                      .repaired_chunks = read(state.repaired_chunks),
                      .duplicate_chunks = read(state.duplicate_chunks),
                      .late_chunks = read(state.late_chunks),
                      .lost_datagrams = read(state.network_lost),
                      // A destination counts these itself, a source is told: a flow has only one of both.
                      .crc_errors = read(state.crc_errors) + read(state.peer_crc_errors),
                      .no_room = read(state.no_buffer_drops) + read(state.peer_no_room)};
  if (!figures.sends) return figures;
  figures.rate_bps = read(flow.control.rate_bps);
  figures.rtt_ns = read(state.rtt_ns);
  figures.rtt_min_ns = read(state.rtt_min_ns);
  const uint64_t granted = read(state.credit_extents);
  figures.credit_extents = granted - std::min(granted, read(state.opened_extents));
  figures.blocked = {.credit_ns = read(state.blocked_credit_ns),
                     .source_ns = read(state.blocked_source_ns),
                     .memory_ns = read(state.blocked_memory_ns),
                     .pacing_ns = read(state.blocked_pacing_ns)};
  return figures;
}

}  // namespace sluice::metrics
