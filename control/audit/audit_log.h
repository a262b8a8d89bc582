// The audit log of a node: lines that are only ever appended to DIR/audit.ndjson.
//
// Any thread; blocking. It is opened for each line, so that whoever rotates it may rename it at any time. A
// line that cannot be written is told in the daemon's log and counted, and holds nothing up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string_view>

namespace sluice::audit {

class AuditLog {
 public:
  explicit AuditLog(std::filesystem::path file) : file_(std::move(file)) {}
  void append(std::string_view line) const;
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }  // lines that could not be written

 private:
  const std::filesystem::path file_;
  mutable std::atomic<uint64_t> lost_{0};
};

}  // namespace sluice::audit
