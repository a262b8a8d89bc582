// The audit log of a node: lines that are only ever appended to DIR/audit.ndjson.
//
// Any thread; blocking. It is opened for each line, so that whoever rotates it may rename it at any time. A
// line that cannot be written is told in the daemon's log, and holds nothing up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace sluice::audit {

class AuditLog {
 public:
  explicit AuditLog(std::filesystem::path file) : file_(std::move(file)) {}
  void append(std::string_view line) const;

 private:
  const std::filesystem::path file_;
};

}  // namespace sluice::audit
