// For how long each cause held a session, and the last evidence of each: what is told of a whole session.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "control/verdict/verdict.h"

namespace sluice::verdict {

class Tally {
 public:
  struct Row {
    Cause cause = Cause::kNone;
    uint64_t held_ns = 0;               // so long it was the cause
    std::vector<std::string> evidence;  // the last one
  };

  void add(const Verdict& verdict, uint64_t interval_ns);
  void add(const Row& row);
  void add(const Tally& other);
  // The cause that held it for longest, and for how much of the time; kNone only if there is no other.
  Verdict whole() const;
  // Parts of the time, the largest first; those that held it at all.
  std::vector<Verdict> shares() const;
  std::vector<Row> rows() const;  // in the order of causes
  bool empty() const;

 private:
  uint64_t total_ns() const;

  std::array<Row, kCauseNames.size()> rows_;
};

}  // namespace sluice::verdict
