// SPDX-License-Identifier: Apache-2.0
#include "control/parts/source_runs.h"

#include <algorithm>

#include "dataplane/base/check.h"

namespace sluice::parts {

std::optional<LegId> SourceRuns::at(ExtentId extent) const {
  const auto next = runs_.upper_bound(extent.value());
  if (next == runs_.begin()) return std::nullopt;
  const Tail& tail = std::prev(next)->second;
  if (tail.end <= extent.value()) return std::nullopt;
  return tail.leg;
}

void SourceRuns::set(ExtentId extent, LegId leg) {
  DCHECK(!at(extent), "one leg brings an extent");
  uint64_t first = extent.value();
  uint64_t end = first + 1;
  auto next = runs_.lower_bound(end);
  if (next != runs_.end() && next->first == end && next->second.leg == leg) {
    end = next->second.end;
    next = runs_.erase(next);
  }
  if (next != runs_.begin()) {
    const auto before = std::prev(next);
    if (before->second.end == first && before->second.leg == leg) {
      before->second.end = end;
      return;
    }
  }
  runs_.emplace(first, Tail{.end = end, .leg = leg});
}

std::vector<SourceRuns::Run> SourceRuns::remove(ExtentRun extents) {
  std::vector<Run> removed;
  const uint64_t first = extents.first.value();
  const uint64_t end = extents.end.value();
  auto run = runs_.upper_bound(first);
  if (run != runs_.begin() && std::prev(run)->second.end > first) --run;
  while (run != runs_.end() && run->first < end) {
    const uint64_t from = run->first;
    const Tail tail = run->second;
    run = runs_.erase(run);
    if (from < first) runs_.emplace(from, Tail{.end = first, .leg = tail.leg});
    if (tail.end > end) runs_.emplace(end, tail);
    removed.push_back(
        {.extents = {.first = ExtentId(std::max(from, first)), .end = ExtentId(std::min(tail.end, end))},
         .leg = tail.leg});
  }
  return removed;
}

std::vector<ExtentRun> SourceRuns::of(LegId leg) const {
  std::vector<ExtentRun> found;
  for (const auto& [first, tail] : runs_) {
    if (tail.leg == leg) found.push_back({.first = ExtentId(first), .end = ExtentId(tail.end)});
  }
  return found;
}

std::optional<LegId> SourceRuns::of_all(uint64_t extents) const {
  if (runs_.size() != 1) return std::nullopt;
  const auto& [first, tail] = *runs_.begin();
  return first == 0 && tail.end == extents ? std::optional(tail.leg) : std::nullopt;
}

void SourceRuns::check_invariants() const {
  if (!base::dchecks_enabled) return;
  const Tail* before = nullptr;
  for (const auto& [first, tail] : runs_) {
    DCHECK(first < tail.end, "no run is empty");
    DCHECK(before == nullptr || before->end < first || (before->end == first && before->leg != tail.leg),
           "runs do not overlap, and neighbours of one leg are one");
    before = &tail;
  }
}

}  // namespace sluice::parts
