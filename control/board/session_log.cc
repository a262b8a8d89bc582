// SPDX-License-Identifier: Apache-2.0
#include "control/board/session_log.h"

#include <algorithm>
#include <iterator>

#include "dataplane/base/options/options.h"

namespace sluice::board {
namespace {

constexpr uint64_t kAgoNsMax = uint64_t{1} << 61;  // no clock runs so long
constexpr auto& kNames = options::kWords<options::LogLevel>;
static_assert(static_cast<int>(options::LogLevel::kPackets) == static_cast<int>(LogLevel::kPackets));
static_assert(static_cast<int>(options::LogLevel::kEvents) == static_cast<int>(LogLevel::kEvents));
constexpr std::string_view kKindNames[] = {"opened",         "closed",  "gap",  "report",
                                           "retransmission", "repair",  "need", "rate",
                                           "completion",     "failure", "sent", "received"};
static_assert(std::size(kKindNames) == static_cast<size_t>(kLogKindLast));

bool is_known(LogKind kind) { return kind >= LogKind::kOpened && kind <= kLogKindLast; }

// By the calendar. Nothing was noted after now, whatever stands there.
int64_t unix_ns_of(uint64_t monotonic_ns, const LogTime& now) {
  const uint64_t ago_ns = now.monotonic_ns - std::min(monotonic_ns, now.monotonic_ns);
  return now.unix_ns - static_cast<int64_t>(std::min<uint64_t>(ago_ns, kAgoNsMax));
}

}  // namespace

std::string_view log_level_name(LogLevel level) {
  return kNames[std::min<size_t>(static_cast<size_t>(level), std::size(kNames) - 1)];
}

std::optional<LogLevel> log_level_of(std::string_view name) {
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<LogLevel>(found - std::begin(kNames));
}

std::string_view log_kind_name(LogKind kind) {
  return is_known(kind) ? kKindNames[static_cast<size_t>(kind) - 1] : "unknown";
}

std::string wrong_log_level(std::string_view name) {
  return "log level \"" + std::string(name) + "\": use off, events or packets";
}

void SessionLog::look(const std::vector<Lane>& lanes, const LogTime& now) {
  for (const Lane& lane : lanes) {
    std::atomic<uint64_t>& level = lane.flow->control.log_level;
    const auto wanted = static_cast<uint64_t>(level_);
    // Its worker reads that line all the time: it is written only when it changes.
    if (level.load(std::memory_order_relaxed) != wanted) level.store(wanted, std::memory_order_relaxed);
    take(lane.number, *lane.flow, now);
  }
  std::stable_sort(batch_.begin(), batch_.end(),
                   [](const LogRecord& a, const LogRecord& b) { return a.unix_ns < b.unix_ns; });
  for (const LogRecord& record : batch_) records_.push_back(record);
  end_ += batch_.size();
  batch_.clear();
  while (records_.size() > kRecordsKept) records_.pop_front();
}

void SessionLog::take(uint32_t lane, FlowSlot& flow, const LogTime& now) {
  if (lane >= dropped_seen_.size()) dropped_seen_.resize(lane + 1);
  const uint64_t dropped = flow.state.log_dropped.load(std::memory_order_relaxed);
  uint64_t missing = dropped >= dropped_seen_[lane] ? dropped - dropped_seen_[lane] : dropped;
  dropped_seen_[lane] = dropped;
  int64_t last_unix_ns = now.unix_ns;
  LogEvent event;
  for (uint32_t n = 0; n < kLogSlots && flow.log.pop(&event); ++n) {
    if (!is_known(event.kind)) {
      ++missing;
      continue;
    }
    last_unix_ns = unix_ns_of(event.time_ns, now);
    batch_.push_back({.unix_ns = last_unix_ns, .lane = lane, .event = event});
  }
  if (missing == 0) return;
  dropped_ += missing;
  // What was dropped is newer than what is in the ring, which was full.
  batch_.push_back({.unix_ns = last_unix_ns, .lane = lane, .dropped = missing, .event = {}});
}

}  // namespace sluice::board
