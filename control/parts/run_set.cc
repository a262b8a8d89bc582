// SPDX-License-Identifier: Apache-2.0
#include "control/parts/run_set.h"

#include <algorithm>

#include "dataplane/base/check.h"

namespace sluice::parts {

void RunSet::insert(uint64_t first, uint64_t end) {
  runs_.emplace(first, end);
  by_length_.emplace(end - first, first);
  extents_ += end - first;
}

RunSet::Runs::iterator RunSet::erase(Runs::iterator run) {
  by_length_.erase({run->second - run->first, run->first});
  extents_ -= run->second - run->first;
  return runs_.erase(run);
}

RunSet::Runs::const_iterator RunSet::first_beyond(uint64_t extent) const {
  auto next = runs_.upper_bound(extent);
  if (next == runs_.begin()) return next;
  const auto before = std::prev(next);
  return before->second > extent ? before : next;
}

std::optional<ExtentRun> RunSet::run_at(ExtentId extent) const {
  const auto run = first_beyond(extent.value());
  if (run == runs_.end() || run->first > extent.value()) return std::nullopt;
  return ExtentRun{.first = ExtentId(run->first), .end = ExtentId(run->second)};
}

ExtentRun RunSet::first() const {
  DCHECK(!runs_.empty(), "a set that is not empty has a first run");
  return {.first = ExtentId(runs_.begin()->first), .end = ExtentId(runs_.begin()->second)};
}

ExtentRun RunSet::longest() const {
  DCHECK(!runs_.empty(), "a set that is not empty has a longest run");
  const auto& [length, first] = *by_length_.rbegin();
  return {.first = ExtentId(first), .end = ExtentId(first + length)};
}

std::vector<ExtentRun> RunSet::within(ExtentRun run) const {
  std::vector<ExtentRun> found;
  for (auto at = first_beyond(run.first.value()); at != runs_.end() && at->first < run.end.value(); ++at) {
    found.push_back(
        {.first = std::max(run.first, ExtentId(at->first)), .end = std::min(run.end, ExtentId(at->second))});
  }
  return found;
}

std::vector<ExtentRun> RunSet::all() const {
  std::vector<ExtentRun> found;
  for (const auto& [first, end] : runs_) found.push_back({.first = ExtentId(first), .end = ExtentId(end)});
  return found;
}

void RunSet::add(ExtentRun run) {
  uint64_t first = run.first.value();
  uint64_t end = run.end.value();
  if (first >= end) return;
  // One that ends where this one begins joins it as well.
  auto at = runs_.lower_bound(first);
  if (at != runs_.begin() && std::prev(at)->second >= first) --at;
  while (at != runs_.end() && at->first <= end) {
    first = std::min(first, at->first);
    end = std::max(end, at->second);
    at = erase(at);
  }
  insert(first, end);
}

void RunSet::remove(ExtentRun run) {
  const uint64_t first = run.first.value();
  const uint64_t end = run.end.value();
  if (first >= end) return;
  auto at = runs_.upper_bound(first);
  if (at != runs_.begin() && std::prev(at)->second > first) --at;
  while (at != runs_.end() && at->first < end) {
    const auto [old_first, old_end] = *at;
    at = erase(at);
    if (old_first < first) insert(old_first, first);
    if (old_end > end) insert(end, old_end);
  }
}

void RunSet::clear() {
  runs_.clear();
  by_length_.clear();
  extents_ = 0;
}

void RunSet::check_invariants() const {
  if (!base::dchecks_enabled) return;
  uint64_t sum = 0;
  uint64_t end_before = 0;
  bool is_first = true;
  for (const auto& [first, end] : runs_) {
    DCHECK(first < end, "no run is empty");
    DCHECK(is_first || first > end_before, "runs do not touch each other");
    DCHECK(by_length_.contains({end - first, first}), "each run is found by its length");
    sum += end - first;
    end_before = end;
    is_first = false;
  }
  DCHECK(by_length_.size() == runs_.size() && sum == extents_, "the lengths add up");
}

}  // namespace sluice::parts
