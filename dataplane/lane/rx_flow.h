// State of one receiving flow; internal to rx_side*.cc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/core/fifo.h"
#include "dataplane/core/seq_window.h"
#include "dataplane/core/status.h"
#include "dataplane/lane/rx_side.h"

namespace sluice::lane {

inline constexpr uint32_t kDoneLog = 1024;  // completed extents that the sender may not know yet
inline constexpr uint32_t kGapsKept = 1024;
inline constexpr uint8_t kGapRepeats = 3;
inline constexpr uint64_t kIdleStatusNs = 10'000'000;

struct RxSide::Flow {
  Flow(uint32_t slot_index, const board::FlowConfig& c, board::FlowSlot& s, FlowChannel&& open_channel)
      : index(slot_index),
        config(c),
        slot(s),
        channel(std::move(open_channel)),
        digest(channel.seal().data_kind(), c.chunk_bytes),
        window(s.window, board::kWindowBits),
        done_log(kDoneLog),
        gaps(kGapsKept) {}

  struct GapToSend {
    wire::GapRun run;
    uint8_t left = kGapRepeats;
  };

  // How many extents the sender may have opened in all: those that are completed, and the window. Never more
  // than the log of completed extents can tell it about.
  uint64_t credit() const {
    const uint64_t by_buffers = released + config.credit_extents;
    const uint64_t by_log = done_count - done_log.size() + kDoneLog;
    return by_buffers < by_log ? by_buffers : by_log;
  }

  const uint32_t index;
  const board::FlowConfig config;
  board::FlowSlot& slot;
  FlowChannel channel;
  storage::ExtentDigest digest;
  SeqWindow window;
  // Completed extents that the sender has not echoed; the front one has number done_count - done_log.size().
  Fifo<wire::DoneExtent> done_log;
  uint64_t done_count = 0;
  uint64_t released = 0;  // extents that are completed and whose buffers are free again
  Fifo<GapToSend> gaps;
  uint32_t extents_open = 0;
  bool closing = false;
  uint64_t status_seq = 0;
  uint64_t next_status_ns = 0;
  uint64_t last_status_ns = 0;
  uint64_t credit_told = 0;
  uint64_t probe_end = 0;
  uint64_t echo_send_time_ns = 0;  // when the newest datagram was sent, and when it arrived
  uint64_t echo_arrival_ns = 0;
  int64_t delay_min_ns = INT64_MAX;
  int64_t delay_max_ns = INT64_MIN;
};

}  // namespace sluice::lane
