// State of one receiving flow; internal to rx_side.cc and rx_control.cc.
//
// Members that change together have a type of their own. Each type is for one worker's thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "dataplane/core/done_lists.h"
#include "dataplane/core/fifo.h"
#include "dataplane/core/lateness.h"
#include "dataplane/core/leap.h"
#include "dataplane/core/loss_level.h"
#include "dataplane/core/padded_probes.h"
#include "dataplane/core/recent_loss.h"
#include "dataplane/core/repetition.h"
#include "dataplane/core/replay_window.h"
#include "dataplane/core/seq_window.h"
#include "dataplane/core/slot_list.h"
#include "dataplane/core/status.h"
#include "dataplane/core/status_loss.h"
#include "dataplane/lane/flow_log.h"
#include "dataplane/lane/rx_side.h"

namespace sluice::lane {

inline constexpr uint32_t kGapsKept = 1024;
inline constexpr uint64_t kIdleStatusNs = 10'000'000;
// After this many data in a row that are too old, the window is taken to be wrong, not the data.
inline constexpr uint32_t kOldInARow = 64;

// The transmission numbers that have arrived, and those that a datagram may claim.
struct Arrivals {
  explicit Arrivals(board::FlowSlot& slot) : window(slot.window, board::kWindowBits) {}

  // `end` is 1 + the highest tx_seq that was sent, as a datagram says.
  bool believes(uint64_t end, uint64_t send_time_ns) {
    return leap.believes(std::max(window.end(), probe_end), end, send_time_ns);
  }
  // A datagram with data and a new tx_seq, recorded or not.
  void came(uint64_t tx_seq) {
    ++datagrams;
    data_end = std::max(data_end, tx_seq + 1);
  }
  // The window does not record a chunk that found no buffer. It came all the same.
  uint64_t received_end() const { return std::max(window.end(), data_end); }
  // An authentic number below the window came. True: the window is wrong. `chunks`: accepted so far.
  bool is_window_wrong(uint64_t chunks) {
    if (old_since_chunks != chunks) old_in_a_row = 0;
    old_since_chunks = chunks;
    if (++old_in_a_row < kOldInARow) return false;
    old_in_a_row = 0;
    return true;
  }
  void restart(uint64_t tx_seq) {
    window.restart(tx_seq);
    probe_end = data_end = tx_seq;
  }

  SeqWindow window;
  ReplayWindow probe_window;
  Leap leap;
  uint64_t datagrams = 0;  // with data and a new tx_seq
  uint64_t data_end = 0;   // 1 + the highest tx_seq of those
  uint64_t probe_end = 0;  // the highest that a probe said
  uint32_t old_in_a_row = 0;
  uint64_t old_since_chunks = 0;  // how many chunks had been accepted when that row began
};

// One-way delays of the datagrams since the last status: arrival less send time, by two clocks.
struct DelaySample {
  bool empty() const { return min_ns > max_ns; }
  void add(int64_t delay_ns, bool overtaken) {
    min_ns = std::min(min_ns, delay_ns);
    max_ns = std::max(max_ns, delay_ns);
    if (overtaken) overtaken_max_ns = std::max(overtaken_max_ns, delay_ns);
  }
  void clear() {
    min_ns = INT64_MAX;
    max_ns = INT64_MIN;
  }

  int64_t min_ns = INT64_MAX;
  int64_t max_ns = INT64_MIN;
  int64_t overtaken_max_ns = INT64_MIN;  // of datagrams that came after a later one
};

// State of the sender, as its newest datagram says.
struct SenderState {
  uint64_t send_time_ns = 0;  // by the sender's clock
  uint64_t arrival_ns = 0;
  uint32_t statuses_heard = 0;
  uint32_t credit_wanted_extents = 0;
  DelaySample delays;
  Lateness lateness;
};

// Extents that the sender may open, as absolute numbers: completed ones and a window.
struct CreditGrant {
  explicit CreditGrant(uint32_t worker_extents) : window_max(worker_extents) {}

  // The log of completed extents bounds a grant, since the sender learns of completions from it. A grant
  // never shrinks, although the sender's echo may go back.
  uint64_t grant(uint32_t window, const DoneLog& done) {
    return granted = std::max(granted, std::min(released + window, done.known() + done.kept()));
  }

  const uint32_t window_max;  // extents of the worker
  uint64_t released = 0;      // completed, with their buffers free again
  uint64_t granted = 0;
  uint64_t told = 0;  // by the last status
};

// Losses of the path, as the numbers that arrived tell.
struct PathLoss {
  uint64_t update(uint64_t missing, uint64_t received_end, uint64_t now_ns) {
    const uint64_t lost = level.update(missing, now_ns);
    recent.update(received_end, lost);
    return lost;
  }

  LossLevel level;
  RecentLoss recent;
};

// When the next status is due, and what it says next.
struct StatusSchedule {
  explicit StatusSchedule(uint64_t interval_ns) : repeat_interval_ns(interval_ns) {}

  void send_at_once() { next_ns = 0; }
  void send_within(uint64_t interval_ns) { next_ns = std::min(next_ns, last_ns + interval_ns); }

  uint64_t seq = 0;
  uint64_t next_ns = 0;
  uint64_t last_ns = 0;
  uint64_t repeat_interval_ns;  // until what the sender has not echoed is said again
  uint32_t holes_next = 0;      // the extent whose holes the next status lists first
  StatusLoss loss;
};

struct RxSide::Flow {
  Flow(const WorkerResources& resources, uint32_t slot_index, const board::FlowConfig& c, board::FlowSlot& s,
       FlowChannel&& open_channel, uint32_t extents)
      : index(slot_index),
        config(c),
        slot(s),
        log(resources, s),
        channel(std::move(open_channel)),
        digest(channel.seal().data_kind(), c.chunk_bytes),
        arrivals(s),
        credit(extents),
        done_log(std::max(kDoneKept, 2 * extents)),
        status(c.status_interval_ns),
        gaps(kGapsKept),
        open(extents) {}

  // Enciphered datagrams are accepted once: an attacker gains nothing from a copy.
  bool is_copy(const wire::Header& h) const {
    if (h.type == wire::Type::kProbe) return !arrivals.probe_window.is_new(h.offset);
    if (h.type == wire::Type::kEcho) return !echo_window.is_new(h.tx_seq);
    return channel.seal().enciphers(h.type) && arrivals.window.check(h.tx_seq) != SeqWindow::Novelty::kNew;
  }

  struct GapToSend {
    wire::GapRun run;
    uint8_t said = 0;
  };

  // How many extents the sender may have opened in all.
  uint64_t grant_credit() { return credit.grant(credit_window(), done_log); }

  // What control has granted last, no more than there is.
  uint32_t credit_window() const {
    const uint64_t granted = slot.control.credit_extents.load(std::memory_order_relaxed);
    return static_cast<uint32_t>(
        std::max<uint64_t>(config.credit_extents, std::min<uint64_t>(granted, credit.window_max)));
  }

  Repetition repetition() const {
    return Repetition(std::max(config.expected_loss_percent * 0.01, loss.recent.share()));
  }

  const uint32_t index;
  const board::FlowConfig config;
  board::FlowSlot& slot;
  FlowLog log;
  FlowChannel channel;
  storage::ExtentDigest digest;
  Arrivals arrivals;
  SenderState sender;
  CreditGrant credit;
  DoneLog done_log;
  PathLoss loss;
  StatusSchedule status;
  Fifo<GapToSend> gaps;
  PaddedCount padded;
  ReplayWindow echo_window;
  SlotList open;  // extents of this flow
  bool closing = false;
};

}  // namespace sluice::lane
