// State of one sending flow; internal to tx_*.cc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "dataplane/core/credit_wish.h"
#include "dataplane/core/done_lists.h"
#include "dataplane/core/loss_level.h"
#include "dataplane/core/padded_probes.h"
#include "dataplane/core/repetition.h"
#include "dataplane/core/replay_window.h"
#include "dataplane/core/round_trip.h"
#include "dataplane/core/slot_list.h"
#include "dataplane/core/status_order.h"
#include "dataplane/lane/flow_log.h"
#include "dataplane/lane/tx_side.h"

namespace sluice::lane {

// Transmissions that a report may still name: those of so long at the flow's highest rate, which is a long
// round trip and the time for reordering. Credit does not bound their number, since complete extents make
// room while one with a hole waits. NEED covers what is older.
inline constexpr uint64_t kSentRememberedNs = 600'000'000;
inline constexpr uint32_t kSentRememberedMin = 1U << 16;
inline constexpr uint32_t kSentRememberedMax = 1U << 20;
inline uint32_t sent_remembered(const board::FlowConfig& c) {
  const double chunks = static_cast<double>(c.rate_bps_max) * static_cast<double>(kSentRememberedNs) / 8e9 /
                        static_cast<double>(c.chunk_bytes);
  return static_cast<uint32_t>(std::clamp<double>(chunks, kSentRememberedMin, kSentRememberedMax));
}
// Of them may wait to be sent again.
inline constexpr uint32_t kRetransmittedShare = 8;
inline constexpr uint32_t kPartitionsQueued = 16;
inline constexpr uint32_t kRepairsQueued = 1024;
inline constexpr uint64_t kProbeIntervalNsMin = 1'000'000;
inline constexpr uint64_t kSendAheadNs = 50'000;
inline constexpr uint64_t kProbeIntervalNsMax = 1'000'000'000;
// A peer grants no more than this beyond what was opened (docs/WIRE.md 1.6).
inline constexpr uint64_t kCreditAheadMax = 1U << 20;
// After such a silence a peer is probed quickly again.
inline constexpr uint64_t kSilenceNs = 100'000'000;
// A sender behind a NAT or a firewall sends something so often, and these keep the way open; and soon again
// when no status has come for so long, which come each 10 ms else: the way may be another one now.
inline constexpr uint64_t kKeepOpenNs = 10'000'000'000;
inline constexpr uint64_t kPeerKnowsNs = 1'000'000'000;

struct TxSide::Flow {
  Flow(const WorkerResources& resources, uint32_t slot_index, const board::FlowConfig& c, board::FlowSlot& s,
       FlowChannel&& open_channel, uint32_t extents, uint64_t now_ns)
      : index(slot_index),
        config(c),
        slot(s),
        log(resources, s),
        channel(std::move(open_channel)),
        digest(channel.seal().data_kind(), c.chunk_bytes),
        sent_ring(sent_remembered(c)),
        partitions(kPartitionsQueued),
        unsent(extents),
        retransmissions(sent_ring.capacity() / kRetransmittedShare),
        held(extents),
        repairs(kRepairsQueued),
        done(std::max(kDoneKept, 2 * extents)),
        round_trip(now_ns),
        last_peer_ns(now_ns),
        last_pump_ns(now_ns) {}

  const uint32_t index;
  const board::FlowConfig config;
  board::FlowSlot& slot;
  FlowLog log;
  FlowChannel channel;
  storage::ExtentDigest digest;
  Pacer pacer;
  SentRing sent_ring;
  Fifo<Partition> partitions;
  Fifo<uint32_t> unsent;  // extents whose first pass has not ended, in order
  Fifo<SentChunk> retransmissions;
  uint32_t copies_sent = 0;  // of the one in front
  uint64_t first_copy = 0;   // its tx_seq
  SlotList held;             // extents in that state
  uint32_t held_next = 0;    // the one whose holes are sent while there is nothing else to send
  uint32_t repeat_cost = 0;  // chunks: extents whose next pass costs more have to wait
  bool all_repeated = false;
  Fifo<Repair> repairs;
  uint32_t repair_slot = ExtentTable::kNone;  // the extent that was read for the repair in front
  uint32_t extents_held = 0;                  // those that let_go was not called for
  bool closing = false;
  bool repair_turn = false;  // a repair goes before a retransmission
  uint64_t tx_seq = 0;       // of the next datagram with data
  uint64_t probe_seq = 0;    // of the next probe
  uint64_t opened = 0;       // extents opened, never above credit but by what the peer lists
  uint64_t credit = 0;       // as the newest status says
  DoneRecord done;
  RoundTrip round_trip;
  StatusOrder status_order;
  ReplayWindow status_window;
  uint32_t statuses_heard = 0;  // modulo 2^32, as it is echoed
  LossLevel loss;
  CreditWish wish;
  PaddedQueue padded;
  uint64_t last_echo_ns = 0;
  uint64_t last_peer_ns;
  uint64_t last_send_ns = 0;
  uint64_t probe_interval_ns = kProbeIntervalNsMin;
  uint64_t last_pump_ns;

  Repetition repetition() const {
    return Repetition(std::max(config.expected_loss_percent * 0.01, wish.loss()));
  }
};

}  // namespace sluice::lane
