// What one look at a node found, for whoever makes metrics of it.
//
// Plain data, made on control's loop (Report::figures) and read on any thread afterwards: it is a
// copy, and nobody changes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/transfer/view.h"
#include "dataplane/base/error.h"
#include "dataplane/board/board.h"

namespace sluice::metrics {

// A lane, as its flow stands on the board. Of a receiving lane, what only a sender knows is 0.
struct LaneFigures {
  uint32_t lane = 0;
  bool sends = false;
  uint64_t payload_bytes = 0;
  uint64_t chunks = 0;
  uint64_t retransmitted_chunks = 0;
  uint64_t repaired_chunks = 0;
  uint64_t duplicate_chunks = 0;
  uint64_t late_chunks = 0;
  uint64_t lost_datagrams = 0;
  uint64_t crc_errors = 0;
  uint64_t no_room = 0;
  uint64_t rate_bps = 0;
  uint64_t rtt_ns = 0;  // 0: not known yet
  uint64_t rtt_min_ns = 0;
  uint64_t credit_extents = 0;  // not used yet
  struct Blocked {
    uint64_t credit_ns = 0;
    uint64_t source_ns = 0;
    uint64_t memory_ns = 0;
    uint64_t pacing_ns = 0;
  } blocked;
};
LaneFigures figures_of(uint32_t lane, const board::FlowSlot& flow);

struct SessionFigures {
  transfer::View view;  // without files
  std::vector<LaneFigures> lanes;
};

using WorkerCounters = std::array<uint64_t, board::kCounters>;

struct DataplaneFigures {
  std::string port;  // device
  bool hugepages = false;
  std::string fallback_for{};  // the device that sockets carry the data for; empty: it does so itself
  uint32_t falls = 0;
  uint64_t heartbeat_age_ns = 0;
  std::vector<WorkerCounters> workers;
};

struct NodeFigures {
  std::string name;
  std::string version;
  uint64_t port_rate_bps = 0;
  uint32_t sessions_max = 0;
  uint32_t queue_max = 0;
  std::optional<DataplaneFigures> dataplane;                              // nothing: it is not attached
  std::array<uint64_t, static_cast<size_t>(kErrorCodeLast) + 1> ended{};  // sessions, by exit code
  struct Expiry {
    std::string kind;
    std::string name;
    int64_t unix_s = 0;
  };
  struct Callers {  // of the control port, by what became of them
    uint64_t trusted = 0;
    uint64_t refused = 0;
    uint64_t failed = 0;
    uint64_t timed_out = 0;
    uint64_t let_go = 0;
    uint64_t waited = 0;
  };
  std::optional<Callers> callers;  // nothing: it does not listen
  std::vector<Expiry> expiries;    // of certificates that have an end
  uint64_t turns = 0;
  uint64_t longest_turn_ns = 0;
  bool journal_lost = false;
  uint64_t audit_lines_lost = 0;
  std::vector<SessionFigures> sessions;  // that have not ended, in the order in which they were asked for
};

// ---- what is not asked of the loop ----

struct ExportSpace {
  std::string name;
  uint64_t size_bytes = 0;
  uint64_t free_bytes = 0;
};

struct ProcessFigures {
  double cpu_s = 0;
  double start_time_s = 0;
  uint64_t resident_bytes = 0;
  uint64_t open_fds = 0;
  uint64_t max_fds = 0;
};

}  // namespace sluice::metrics
