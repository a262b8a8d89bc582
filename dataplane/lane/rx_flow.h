// State of one receiving flow; internal to rx_side*.cc.
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
// So many data in a row that are too old: the window was led astray, not they.
inline constexpr uint32_t kOldInARow = 64;

struct RxSide::Flow {
  Flow(const WorkerResources& resources, uint32_t slot_index, const board::FlowConfig& c, board::FlowSlot& s,
       FlowChannel&& open_channel, uint32_t extents)
      : index(slot_index),
        config(c),
        slot(s),
        log(resources, s),
        channel(std::move(open_channel)),
        digest(channel.seal().data_kind(), c.chunk_bytes),
        window(s.window, board::kWindowBits),
        extents_max(extents),
        done_log(std::max(kDoneKept, 2 * extents)),
        gaps(kGapsKept),
        open(extents),
        repeat_interval_ns(c.status_interval_ns) {}

  // What is under a cipher is taken once: an attacker who has a copy gains nothing by it.
  bool is_copy(const wire::Header& h) const {
    if (h.type == wire::Type::kProbe) return !probe_window.is_new(h.offset);
    return channel.seal().enciphers(h.type) && window.check(h.tx_seq) != SeqWindow::Verdict::kNew;
  }

  struct GapToSend {
    wire::GapRun run;
    uint8_t said = 0;
  };

  // How many extents the sender may have opened in all: those that are completed, and the window. Never more
  // than the log of completed extents can tell it about; and never less than before, though its echo may go
  // back.
  uint64_t credit() {
    const uint64_t now = std::min(released + credit_window(), done_log.known() + done_log.kept());
    return credit_given = std::max(credit_given, now);
  }

  // What control has granted last, no more than there is.
  uint32_t credit_window() const {
    const uint64_t granted = slot.control.credit_extents.load(std::memory_order_relaxed);
    return static_cast<uint32_t>(
        std::max<uint64_t>(config.credit_extents, std::min<uint64_t>(granted, extents_max)));
  }

  Repetition repetition() const {
    return Repetition(std::max(config.expected_loss_percent * 0.01, recent_loss.share()));
  }

  const uint32_t index;
  const board::FlowConfig config;
  board::FlowSlot& slot;
  FlowLog log;
  FlowChannel channel;
  storage::ExtentDigest digest;
  SeqWindow window;
  ReplayWindow probe_window;
  const uint32_t extents_max;  // of the worker
  DoneLog done_log;
  uint64_t released = 0;  // extents that are completed and whose buffers are free again
  Fifo<GapToSend> gaps;
  SlotList open;  // extents of this flow
  bool closing = false;
  uint64_t status_seq = 0;
  StatusLoss status_loss;
  // Of each datagram only this is kept, and looked at once for each status.
  uint64_t datagrams = 0;  // with data and a new tx_seq
  uint64_t came_end = 0;   // 1 + highest tx_seq of data that came, recorded or not
  uint32_t statuses_heard = 0;
  uint32_t credit_wanted = 0;
  int64_t late_delay_ns = INT64_MIN;  // the longest of what was overtaken
  LossLevel loss;
  RecentLoss recent_loss;
  uint32_t holes_next = 0;  // the extent of whose holes the next status tells first
  Lateness lateness;
  uint64_t next_status_ns = 0;
  uint64_t last_status_ns = 0;
  uint64_t credit_given = 0;
  uint64_t credit_told = 0;
  uint64_t repeat_interval_ns;  // until what the sender has not echoed is said again
  PaddedCount padded;
  Leap leap;
  uint64_t probe_end = 0;
  uint32_t old_in_a_row = 0;
  uint64_t old_since_chunks = 0;   // how many had been accepted when that row began
  uint64_t echo_send_time_ns = 0;  // when the newest datagram was sent, and when it arrived
  uint64_t echo_arrival_ns = 0;
  int64_t delay_min_ns = INT64_MAX;
  int64_t delay_max_ns = INT64_MIN;
};

}  // namespace sluice::lane
