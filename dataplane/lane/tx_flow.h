// State of one sending flow; internal to tx_side*.cc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/lane/tx_side.h"

namespace sluice::lane {

// Transmissions that a report may still name: 44 ms of 8 KiB chunks at 100 Gbit/s. Credit does not bound
// their number, since complete extents make room while one with a hole waits. NEED covers what is older.
inline constexpr uint32_t kSentRemembered = 1U << 16;
inline constexpr uint32_t kRetransmissionsQueued = 1U << 13;
inline constexpr uint32_t kPartitionsQueued = 16;
inline constexpr uint32_t kRepairsQueued = 1024;
inline constexpr uint64_t kProbeIntervalNsMin = 1'000'000;
inline constexpr uint64_t kSendAheadNs = 50'000;
inline constexpr uint64_t kProbeIntervalNsMax = 1'000'000'000;

struct TxSide::Flow {
  Flow(uint32_t slot_index, const board::FlowConfig& c, board::FlowSlot& s, FlowChannel&& open_channel,
       uint32_t extents)
      : index(slot_index),
        config(c),
        slot(s),
        channel(std::move(open_channel)),
        digest(channel.seal().data_kind(), c.chunk_bytes),
        sent_ring(kSentRemembered),
        partitions(kPartitionsQueued),
        unsent(extents),
        retransmissions(kRetransmissionsQueued),
        repairs(kRepairsQueued) {}

  const uint32_t index;
  const board::FlowConfig config;
  board::FlowSlot& slot;
  FlowChannel channel;
  storage::ExtentDigest digest;
  Pacer pacer;
  SentRing sent_ring;
  Fifo<Partition> partitions;
  Fifo<uint32_t> unsent;  // extents whose first pass has not ended, in order
  Fifo<SentChunk> retransmissions;
  Fifo<Repair> repairs;
  uint32_t repair_slot = ExtentTable::kNone;  // the extent that was read for the repair in front
  uint32_t extents_held = 0;                  // in any state but kFree
  bool closing = false;
  bool repair_turn = false;  // a repair goes before a retransmission
  uint64_t tx_seq = 0;       // of the next datagram with data
  uint64_t opened = 0;       // extents opened, never above credit but by what the peer lists
  uint64_t credit = 0;
  uint32_t done_seen = 0;
  uint64_t rtt_ns = 0;  // 0: not known
  uint64_t last_peer_ns = 0;
  uint64_t last_send_ns = 0;
  uint64_t probe_interval_ns = kProbeIntervalNsMin;
  uint64_t last_pump_ns = 0;
};

}  // namespace sluice::lane
