// A set of extents of one object, kept as runs. It also knows its longest run.
//
// Pure. Each call takes time with the logarithm of the number of runs, and with the runs that it removes.
// Invariants: runs are not empty, do not touch each other, and their lengths add up to extents().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "control/parts/words.h"

namespace sluice::parts {

class RunSet {
 public:
  bool empty() const { return runs_.empty(); }
  uint64_t extents() const { return extents_; }
  bool contains(ExtentId extent) const { return run_at(extent).has_value(); }
  // The run that holds this extent.
  std::optional<ExtentRun> run_at(ExtentId extent) const;
  ExtentRun first() const;  // the set is not empty
  // The longest run; of several, the one that lies last. The set is not empty.
  ExtentRun longest() const;
  std::vector<ExtentRun> within(ExtentRun run) const;  // cut to it
  std::vector<ExtentRun> all() const;
  void add(ExtentRun run);     // some of it may be there already
  void remove(ExtentRun run);  // likewise
  void clear();
  void check_invariants() const;  // where DCHECKs are on

 private:
  using Runs = std::map<uint64_t, uint64_t>;  // first, end

  void insert(uint64_t first, uint64_t end);
  Runs::iterator erase(Runs::iterator run);
  // The first run that ends beyond this extent.
  Runs::const_iterator first_beyond(uint64_t extent) const;

  Runs runs_;
  std::set<std::pair<uint64_t, uint64_t>> by_length_;  // length, first
  uint64_t extents_ = 0;
};

}  // namespace sluice::parts
