// The network log of one session, as control keeps it: what its workers noted on the board, bounded.
//
// Pure; the times are arguments. On control's loop, which takes the notes of all lanes at each look and puts
// them in the order of their times. A dataplane may write anything there: what is no note is counted with
// what was dropped.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/board/board.h"

namespace sluice::board {

std::string_view log_level_name(LogLevel level);
std::optional<LogLevel> log_level_of(std::string_view name);
std::string_view log_kind_name(LogKind kind);
std::string wrong_log_level(std::string_view name);  // says what is possible

// Both clocks at one moment: workers note by the monotonic one.
struct LogTime {
  uint64_t monotonic_ns = 0;
  int64_t unix_ns = 0;
};

struct LogRecord {
  int64_t unix_ns = 0;
  uint32_t lane = 0;
  uint64_t dropped = 0;  // not 0: so many notes of the lane are missing here, and `event` is nothing
  LogEvent event;        // its kind is known
};

class SessionLog {
 public:
  static constexpr size_t kRecordsKept = 16384;  // the newest, of all lanes: 1 MiB

  explicit SessionLog(LogLevel level) : level_(level) {}

  LogLevel level() const { return level_; }
  void set_level(LogLevel level) { level_ = level; }

  // Takes what is on the board of these lanes, and tells their workers the level. So much of each at most as
  // its ring holds.
  struct Lane {
    uint32_t number = 0;
    FlowSlot* flow = nullptr;  // that a worker has opened for this session
  };
  void look(const std::vector<Lane>& lanes, const LogTime& now);

  // Records have numbers, from 0, never given again. Those in [begin, end) are there.
  uint64_t begin() const { return end_ - records_.size(); }
  uint64_t end() const { return end_; }
  const LogRecord& at(uint64_t number) const { return records_[number - begin()]; }
  uint64_t dropped() const { return dropped_; }

 private:
  void take(uint32_t lane, FlowSlot& flow, const LogTime& now);

  LogLevel level_;
  std::deque<LogRecord> records_;
  uint64_t end_ = 0;
  uint64_t dropped_ = 0;                // of all lanes
  std::vector<uint64_t> dropped_seen_;  // of each lane, as the board has it: from 0 for each flow
  std::vector<LogRecord> batch_;        // of one look; kept, so that not each allocates
};

}  // namespace sluice::board
