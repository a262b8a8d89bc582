// Which leg brought each extent of one object, kept as runs.
//
// Pure. A leg brings long runs, so this is small beside a bit for each extent.
// Invariants: runs are not empty, do not overlap, and neighbours of one leg are one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "control/parts/words.h"

namespace sluice::parts {

class SourceRuns {
 public:
  struct Run {
    ExtentRun extents;
    LegId leg;
  };

  std::optional<LegId> at(ExtentId extent) const;
  void set(ExtentId extent, LegId leg);        // nobody has brought it before
  std::vector<Run> remove(ExtentRun extents);  // what was removed
  std::vector<ExtentRun> of(LegId leg) const;
  std::optional<LegId> of_all(uint64_t extents) const;  // who has brought all of an object of so many
  void check_invariants() const;                        // where DCHECKs are on

 private:
  struct Tail {
    uint64_t end = 0;
    LegId leg;
  };
  using Runs = std::map<uint64_t, Tail>;

  Runs runs_;
};

}  // namespace sluice::parts
