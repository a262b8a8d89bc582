// State of one sending flow, and the kinds of work that it has; internal to tx_*.cc.
//
// Members that change together have a type of their own. Each type is for one worker's thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "dataplane/core/credit_wish.h"
#include "dataplane/core/done_lists.h"
#include "dataplane/core/echo_run.h"
#include "dataplane/core/loss_estimate.h"
#include "dataplane/core/loss_level.h"
#include "dataplane/core/padded_probes.h"
#include "dataplane/core/read_ahead.h"
#include "dataplane/core/repetition.h"
#include "dataplane/core/replay_window.h"
#include "dataplane/core/round_trip.h"
#include "dataplane/core/slot_list.h"
#include "dataplane/core/status_order.h"
#include "dataplane/lane/flow_log.h"
#include "dataplane/lane/tx_side.h"

namespace sluice::lane {

// Transmissions that a report may still name: as many as leave in this time at the flow's highest rate. The
// time is a long round trip and that for reordering. Credit does not bound their number, since complete
// extents make room while one with a hole waits. NEED covers what is older.
inline constexpr uint64_t kSentRememberedNs = 600'000'000;
inline constexpr uint32_t kSentRememberedMin = 1U << 16;
inline constexpr uint32_t kSentRememberedMax = 1U << 20;
inline uint32_t sent_remembered(const board::FlowConfig& c) {
  const double chunks = static_cast<double>(c.rate_bps_max) * static_cast<double>(kSentRememberedNs) / 8e9 /
                        static_cast<double>(c.chunk_bytes);
  return static_cast<uint32_t>(std::clamp<double>(chunks, kSentRememberedMin, kSentRememberedMax));
}
// One in so many of them may wait to be sent again.
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
// A sender behind a NAT or a firewall sends something at least every kKeepOpenNs, which keeps the path open.
// If no status has come for kPeerKnowsNs it probes quickly, since the path may be another one now: a peer
// that knows the path sends a status each 10 ms.
inline constexpr uint64_t kKeepOpenNs = 10'000'000'000;
inline constexpr uint64_t kPeerKnowsNs = 1'000'000'000;

// Extents whose first pass is to come or in progress, and the partitions that they are read from.
struct FirstPass {
  explicit FirstPass(uint32_t worker_extents) : partitions(kPartitionsQueued), unsent(worker_extents) {}
  void clear() {
    partitions.clear();
    unsent.clear();
  }

  Fifo<Partition> partitions;
  Fifo<uint32_t> unsent;  // extents, in order
  ReadAhead read_ahead;   // how many of these there may be
};

// The chunks that were sent, by tx_seq, and those that the peer reported lost.
struct Retransmissions {
  explicit Retransmissions(uint32_t remembered)
      : sent_ring(remembered), lost(sent_ring.capacity() / kRetransmittedShare) {}
  void pop() {
    lost.pop();
    copies_sent = 0;
  }
  // The chunk in front left once more, as `tx_seq`.
  void sent(uint64_t tx_seq) {
    SentChunk again = lost.front();
    ++again.tries;
    sent_ring.put(tx_seq, again);
    if (copies_sent++ == 0) {
      first_copy = tx_seq;
    } else {
      sent_ring.copies(tx_seq, first_copy);
    }
  }

  SentRing sent_ring;
  Fifo<SentChunk> lost;
  uint32_t copies_sent = 0;  // of the chunk in front
  uint64_t first_copy = 0;   // tx_seq of the first of them
};

// Ranges that the peer asked for with NEED.
struct Repairs {
  void clear() {
    asked.clear();
    slot = ExtentTable::kNone;
  }

  Fifo<Repair> asked{kRepairsQueued};
  uint32_t slot = ExtentTable::kNone;  // the extent that was read for the one in front
};

// Extents whose first pass is over. On a path that loses most, what the peer may miss of them is sent again
// before it asks.
struct Repeats {
  explicit Repeats(uint32_t worker_extents) : held(worker_extents) {}
  void insert(uint32_t extent) {
    held.insert(extent);
    all_repeated = false;
  }
  // The peer misses `chunks` of an extent that may have new passes.
  void renew(uint32_t chunks) {
    cost_max_chunks = std::min(cost_max_chunks, chunks);
    all_repeated = false;
  }

  SlotList held;                 // extents in that state
  uint32_t next = 0;             // the one whose holes are sent next
  uint32_t cost_max_chunks = 0;  // extents whose next pass costs more have to wait
  bool all_repeated = false;
};

// Extents of which repair symbols are to be sent, and what decides how many.
struct ParityQueue {
  explicit ParityQueue(uint32_t worker_extents) : waiting(worker_extents) {}
  // So many datagrams were lost one behind the other.
  void lost_in_a_row(uint64_t count) {
    runs = std::min(runs + 1, 16U);
    run_mean += (static_cast<double>(std::min<uint64_t>(count, 1000)) - run_mean) / runs;
  }

  SlotList waiting;
  LossEstimate loss;
  double run_mean = 1;
  uint32_t runs = 1;        // that it is the mean of
  bool end_is_new = false;  // something was sent or told since the end was looked at
  uint32_t ended_with = 0;  // repair symbols of each block that the end has got
  uint8_t end_code = 0;     // and by which code
};

// Probes say what was sent, for when nothing else does; padded ones find the size that the path carries.
struct Probes {
  void soon() { interval_ns = kProbeIntervalNsMin; }
  void after_data(uint64_t rtt_ns) {
    interval_ns = std::clamp(rtt_ns / 4, kProbeIntervalNsMin, kProbeIntervalNsMax);
  }
  void back_off() { interval_ns = std::min(interval_ns * 3 / 2, kProbeIntervalNsMax); }

  uint64_t seq = 0;  // of the next probe
  uint64_t interval_ns = kProbeIntervalNsMin;
  PaddedQueue padded;
};

// Extents that were opened at the peer, and how many may be.
struct CreditUse {
  void give_back() {
    if (opened > 0) --opened;
  }

  uint64_t opened = 0;  // never above the limit but by what the peer lists
  uint64_t limit = 0;   // as the newest status says
  CreditWish wish;
};

// State of the peer, as its statuses say.
struct PeerState {
  PeerState(uint32_t worker_extents, uint64_t now_ns)
      : done(std::max(kDoneKept, 2 * worker_extents)), round_trip(now_ns), last_heard_ns(now_ns) {}

  DoneRecord done;
  RoundTrip round_trip;
  StatusOrder status_order;
  ReplayWindow status_window;
  uint32_t statuses_heard = 0;  // modulo 2^32, as it is echoed
  LossLevel loss;
  uint64_t last_echo_ns = 0;
  uint64_t last_heard_ns;
};

// When datagrams may leave, and when the flow last had its turn.
struct Pacing {
  explicit Pacing(uint64_t now_ns) : last_pump_ns(now_ns) {}

  Pacer pacer;
  uint64_t last_send_ns = 0;
  uint64_t last_pump_ns;
};

struct TxSide::Flow {
  Flow(const WorkerResources& resources, uint32_t slot_index, const board::FlowConfig& c, board::FlowSlot& s,
       FlowChannel&& open_channel, uint32_t extents, uint64_t now_ns)
      : index(slot_index),
        config(c),
        slot(s),
        log(resources, s),
        channel(std::move(open_channel)),
        digest(channel.seal().data_kind(), c.chunk_bytes),
        pacing(now_ns),
        first_pass(extents),
        retransmissions(sent_remembered(c)),
        repeats(extents),
        parity(extents),
        compression(c.choice.compress == board::Compress::kAlways),
        peer(extents, now_ns),
        echoes({.asked = c.echoes, .bytes = c.echo_bytes, .seed = c.flow_id}, now_ns) {}

  Repetition repetition() const {
    return Repetition(std::max(config.expected_loss_percent * 0.01, credit.wish.loss()));
  }
  bool has_padded() const { return !probes.padded.empty(); }
  bool has_repairs() const { return !repairs.asked.empty(); }
  bool has_lost() const { return !retransmissions.lost.empty(); }
  bool has_parity() const { return !parity.waiting.empty(); }
  bool has_echoes() const { return echoes.has_unsent(); }
  bool has_unsent() const { return !first_pass.unsent.empty() && echoes.over(); }
  // Whether all has left, and the peer may not have all of it.
  bool has_end() const {
    return parity.end_is_new && !repeats.held.empty() && first_pass.unsent.empty() &&
           first_pass.partitions.empty();
  }
  // Whether anything may be sent again although nobody asked for it.
  bool has_repeats() const {
    return !repeats.held.empty() && !repeats.all_repeated && repetition().called_for();
  }

  const uint32_t index;
  const board::FlowConfig config;
  board::FlowSlot& slot;
  FlowLog log;
  FlowChannel channel;
  storage::ExtentDigest digest;
  Pacing pacing;
  FirstPass first_pass;
  Retransmissions retransmissions;
  Repairs repairs;
  Repeats repeats;
  ParityQueue parity;
  coding::CompressChoice compression;
  Probes probes;
  CreditUse credit;
  PeerState peer;
  EchoRun echoes;
  uint64_t echo_fault_events = 0;
  uint64_t tx_seq = 0;        // of the next datagram with data
  uint32_t extents_held = 0;  // those that let_go was not called for
  bool repair_turn = false;   // a repair goes before a retransmission
  bool closing = false;
};

// The kinds of work of a flow, the most urgent first. A new kind needs a queue in Flow, a member that sends
// one datagram of it, and its line here. Padded probes are few and must not wait for data that may never
// arrive. Echoes are all that a
// flow sends while it has any, but for these. Repairs and retransmissions take turns: a peer without buffers
// loses every retransmission until repairs have completed extents. Repair symbols of erasure codes come
// before new data: they are of extents that are sent, whose memory waits for them. Those of the end come
// behind all that is new.
struct TxSide::Work {
  using Order =
      InOrder<Kind<&TxSide::send_padded, &Flow::has_padded>, Kind<&TxSide::send_echo, &Flow::has_echoes>,
              InTurns<&Flow::repair_turn, Kind<&TxSide::send_repair, &Flow::has_repairs>,
                      Kind<&TxSide::send_retransmission, &Flow::has_lost>>,
              Kind<&TxSide::send_parity, &Flow::has_parity>, Kind<&TxSide::send_new, &Flow::has_unsent>,
              Kind<&TxSide::send_parity_at_end, &Flow::has_end>,
              Kind<&TxSide::send_repeat, &Flow::has_repeats>>;
};

}  // namespace sluice::lane
