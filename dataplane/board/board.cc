// SPDX-License-Identifier: Apache-2.0
#include "dataplane/board/board.h"

#include "dataplane/board/layout.h"

namespace sluice::board {

// ---- layout ----------------------------------------------------------------------------------

// A daemon of another build may be at the other end. What changes one of these numbers changes kVersion.
static_assert(SLUICE_BYTES(FlowConfig, 112) && SLUICE_AT(FlowConfig, flow_id, 0) &&
              SLUICE_AT(FlowConfig, rate_bps, 8) && SLUICE_AT(FlowConfig, rate_bps_max, 16) &&
              SLUICE_AT(FlowConfig, partition_bytes, 24) && SLUICE_AT(FlowConfig, session, 32) &&
              SLUICE_AT(FlowConfig, chunk_bytes, 36) && SLUICE_AT(FlowConfig, extent_bytes, 40) &&
              SLUICE_AT(FlowConfig, credit_extents, 44) && SLUICE_AT(FlowConfig, status_interval_ns, 48) &&
              SLUICE_AT(FlowConfig, local_port, 52) && SLUICE_AT(FlowConfig, peer_port, 54) &&
              SLUICE_AT(FlowConfig, local_ip, 56) && SLUICE_AT(FlowConfig, peer_ip, 72) &&
              SLUICE_AT(FlowConfig, direction, 88) && SLUICE_AT(FlowConfig, crc_kind, 89) &&
              SLUICE_AT(FlowConfig, udp_checksum, 90) && SLUICE_AT(FlowConfig, expected_loss_percent, 91) &&
              SLUICE_AT(FlowConfig, reach, 92) && SLUICE_AT(FlowConfig, log_level, 93) &&
              SLUICE_AT(FlowConfig, peer_queue_datagrams, 94) && SLUICE_AT(FlowConfig, tag, 96) &&
              SLUICE_AT(FlowConfig, codes, 100) && SLUICE_AT(FlowConfig, choice, 101) &&
              SLUICE_AT(FlowConfig, echo_bytes, 104) && SLUICE_AT(FlowConfig, echoes, 108));
static_assert(SLUICE_BYTES(SenderChoice, 2) && SLUICE_AT(SenderChoice, parity, 0) &&
              SLUICE_AT(SenderChoice, compress, 1));
static_assert(SLUICE_BYTES(FlowControl, 40) && SLUICE_AT(FlowControl, rate_bps, 0) &&
              SLUICE_AT(FlowControl, settled_below, 8) && SLUICE_AT(FlowControl, credit_extents, 16) &&
              SLUICE_AT(FlowControl, log_level, 24) && SLUICE_AT(FlowControl, rate_ramps, 32));
static_assert(SLUICE_BYTES(FlowState, 536) && SLUICE_AT(FlowState, chunks, 0) &&
              SLUICE_AT(FlowState, bytes, 8) && SLUICE_AT(FlowState, retransmitted_chunks, 16) &&
              SLUICE_AT(FlowState, repaired_chunks, 24) && SLUICE_AT(FlowState, duplicate_chunks, 32) &&
              SLUICE_AT(FlowState, late_chunks, 40) && SLUICE_AT(FlowState, crc_errors, 48) &&
              SLUICE_AT(FlowState, no_buffer_drops, 56) && SLUICE_AT(FlowState, bytes_done, 64) &&
              SLUICE_AT(FlowState, extents_done, 72) && SLUICE_AT(FlowState, credit_extents, 80) &&
              SLUICE_AT(FlowState, opened_extents, 88) && SLUICE_AT(FlowState, gaps_reported, 96) &&
              SLUICE_AT(FlowState, probes, 104) && SLUICE_AT(FlowState, statuses, 112) &&
              SLUICE_AT(FlowState, highest_data_end, 120) && SLUICE_AT(FlowState, probe_end, 128) &&
              SLUICE_AT(FlowState, datagrams, 136) && SLUICE_AT(FlowState, network_lost, 144) &&
              SLUICE_AT(FlowState, wanted_extents, 152) && SLUICE_AT(FlowState, lateness_ns, 160) &&
              SLUICE_AT(FlowState, rtt_ns, 168) && SLUICE_AT(FlowState, rtt_min_ns, 176) &&
              SLUICE_AT(FlowState, last_peer_ns, 184) && SLUICE_AT(FlowState, blocked_credit_ns, 192) &&
              SLUICE_AT(FlowState, blocked_source_ns, 200) && SLUICE_AT(FlowState, blocked_memory_ns, 208) &&
              SLUICE_AT(FlowState, blocked_pacing_ns, 216) && SLUICE_AT(FlowState, peer_received_end, 224) &&
              SLUICE_AT(FlowState, peer_bytes_received, 232) && SLUICE_AT(FlowState, delay_min_ns, 240) &&
              SLUICE_AT(FlowState, delay_max_ns, 248) && SLUICE_AT(FlowState, peer_datagrams, 256) &&
              SLUICE_AT(FlowState, peer_no_room, 264) && SLUICE_AT(FlowState, peer_crc_errors, 272) &&
              SLUICE_AT(FlowState, peer_advice_bps, 280) && SLUICE_AT(FlowState, unreachable_since_ns, 288) &&
              SLUICE_AT(FlowState, next_hop, 296) && SLUICE_AT(FlowState, padded_probes, 312) &&
              SLUICE_AT(FlowState, padded_came, 320) && SLUICE_AT(FlowState, log_dropped, 448) &&
              SLUICE_AT(FlowState, parity, 456) && SLUICE_AT(FlowState, decoded_chunks, 464) &&
              SLUICE_AT(FlowState, echoes, 472) && SLUICE_AT(FlowState, echoes_came, 480) &&
              SLUICE_AT(FlowState, echoes_wrong, 488) && SLUICE_AT(FlowState, echo_bytes_wrong, 496) &&
              SLUICE_AT(FlowState, echo_copies, 504) && SLUICE_AT(FlowState, echoes_over, 512) &&
              SLUICE_AT(FlowState, compressed_bytes, 520) &&
              SLUICE_AT(FlowState, compressed_wire_bytes, 528));
static_assert(SLUICE_BYTES(Gap, 16) && SLUICE_AT(Gap, first, 0) && SLUICE_AT(Gap, count, 8));
static_assert(SLUICE_BYTES(FlowSlot, 295936) && SLUICE_AT(FlowSlot, config, 0) &&
              SLUICE_AT(FlowSlot, control, 128) && SLUICE_AT(FlowSlot, state, 192) &&
              SLUICE_AT(FlowSlot, gaps, 768) && SLUICE_AT(FlowSlot, window, 66432) &&
              SLUICE_AT(FlowSlot, log, 197504));
static_assert(SLUICE_BYTES(LogEvent, 48) && SLUICE_AT(LogEvent, time_ns, 0) &&
              SLUICE_AT(LogEvent, tx_seq, 8) && SLUICE_AT(LogEvent, offset, 16) &&
              SLUICE_AT(LogEvent, length, 24) && SLUICE_AT(LogEvent, value, 32) &&
              SLUICE_AT(LogEvent, object, 40) && SLUICE_AT(LogEvent, kind, 44));
static_assert(SLUICE_BYTES(Command, 32) && SLUICE_AT(Command, kind, 0) && SLUICE_AT(Command, flow, 4) &&
              SLUICE_AT(Command, object, 8) && SLUICE_AT(Command, tag, 12) &&
              SLUICE_AT(Command, offset, 16) && SLUICE_AT(Command, length, 24));
static_assert(SLUICE_BYTES(ExtentSums, 48) && SLUICE_AT(ExtentSums, blake3, 0) &&
              SLUICE_AT(ExtentSums, crc64, 32) && SLUICE_AT(ExtentSums, crc32c, 40) &&
              SLUICE_AT(ExtentSums, adler32, 44));
static_assert(SLUICE_BYTES(Event, 96) && SLUICE_AT(Event, kind, 0) && SLUICE_AT(Event, flow, 4) &&
              SLUICE_AT(Event, object, 8) && SLUICE_AT(Event, tag, 12) && SLUICE_AT(Event, offset, 16) &&
              SLUICE_AT(Event, length, 24) && SLUICE_AT(Event, digest, 32) && SLUICE_AT(Event, value, 40) &&
              SLUICE_AT(Event, sums, 48));
static_assert(SLUICE_BYTES(WorkerSlot, 1606464) && SLUICE_AT(WorkerSlot, counters, 0) &&
              SLUICE_AT(WorkerSlot, commands, 576) && SLUICE_AT(WorkerSlot, events, 33472));
static_assert(SLUICE_BYTES(PortInfo, 544) && SLUICE_AT(PortInfo, device, 0) && SLUICE_AT(PortInfo, ip4, 64) &&
              SLUICE_AT(PortInfo, ip6, 80) && SLUICE_AT(PortInfo, frame_bytes_max, 96) &&
              SLUICE_AT(PortInfo, chunk_bytes_max_ip4, 100) &&
              SLUICE_AT(PortInfo, chunk_bytes_max_ip6, 104) && SLUICE_AT(PortInfo, workers, 108) &&
              SLUICE_AT(PortInfo, extent_bytes_max, 112) && SLUICE_AT(PortInfo, rx_extents, 116) &&
              SLUICE_AT(PortInfo, tx_extents, 120) && SLUICE_AT(PortInfo, udp_port_base, 124) &&
              SLUICE_AT(PortInfo, udp_checksum_offload, 126) && SLUICE_AT(PortInfo, hugepages, 127) &&
              SLUICE_AT(PortInfo, rate_bps_max, 128) && SLUICE_AT(PortInfo, queue_datagrams, 136) &&
              SLUICE_AT(PortInfo, codes, 140) && SLUICE_AT(PortInfo, abilities, 144) &&
              SLUICE_AT(PortInfo, fallback_for, 336) && SLUICE_AT(PortInfo, fallback_reason, 400) &&
              SLUICE_AT(PortInfo, fallback_unix_ns, 528) && SLUICE_AT(PortInfo, falls, 536) &&
              SLUICE_AT(PortInfo, sums, 540));
static_assert(SLUICE_BYTES(Board, 63584000) && SLUICE_AT(Board, magic, 0) && SLUICE_AT(Board, version, 8) &&
              SLUICE_AT(Board, board_bytes, 12) && SLUICE_AT(Board, generation, 16) &&
              SLUICE_AT(Board, port, 24) && SLUICE_AT(Board, crc_variant, 568) &&
              SLUICE_AT(Board, dataplane_alive_ns, 640) && SLUICE_AT(Board, sandbox, 648) &&
              SLUICE_AT(Board, refused_calls, 656) && SLUICE_AT(Board, link, 664) &&
              SLUICE_AT(Board, control_alive_ns, 704) && SLUICE_AT(Board, workers, 768) &&
              SLUICE_AT(Board, flows, 25704192));
static_assert(sizeof(SpscRing<Gap, kGapSlots>) == 65664);
static_assert(sizeof(SpscRing<Command, kCommandSlots>) == 32896);
static_assert(sizeof(SpscRing<Event, kEventSlots>) == 1572992);
static_assert(sizeof(SpscRing<LogEvent, kLogSlots>) == 98432);
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(std::atomic<uint64_t>) == 8);

// ---- counters --------------------------------------------------------------------------------

const CounterInfo* counter_table() {
  static constexpr CounterInfo kTable[] = {
#define SLUICE_COUNTER(name, unit, help) {#name, unit, help},
#include "dataplane/board/counters.def"
#undef SLUICE_COUNTER
  };
  static_assert(sizeof kTable / sizeof kTable[0] == kCounters);
  return kTable;
}

}  // namespace sluice::board
