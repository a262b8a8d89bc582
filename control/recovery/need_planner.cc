// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/need_planner.h"

#include <algorithm>
#include <iterator>

namespace sluice::recovery {

Range NeedPlanner::range_of(const SentRanges::value_type& sent) {
  return {.offset = sent.first, .length = sent.second.end - sent.first};
}

bool NeedPlanner::note_sent(const ExtentMap& done, FlowRef flow, Range range, uint64_t now_ns) {
  if (range.length == 0 || done.cut(range) != range) return false;
  if (sent_.size() >= kSentRangesMax) {
    prune(done);
    if (sent_.size() >= kSentRangesMax) return false;
  }
  Sent& entry = sent_[range.offset];
  entry.end = std::max(entry.end, range.end());
  entry.flow = flow;
  // The tail of this range is still on its way: there is no silence yet.
  quiet_since_ns_ = std::max(quiet_since_ns_, now_ns);
  return true;
}

void NeedPlanner::note_all_maybe_sent(uint64_t now_ns) {
  unknown_ = true;
  quiet_since_ns_ = std::max(quiet_since_ns_, now_ns);
}

void NeedPlanner::note_progress(uint64_t now_ns) {
  quiet_since_ns_ = now_ns;
  wait_ns_ = kQuietNs;
}

void NeedPlanner::drop(LegId leg) {
  std::erase_if(sent_, [leg](const auto& each) { return each.second.flow.leg == leg; });
}

void NeedPlanner::prune(const ExtentMap& done) {
  for (auto it = sent_.begin(); it != sent_.end();) {
    it = done.complete(range_of(*it)) ? sent_.erase(it) : std::next(it);
  }
}

bool NeedPlanner::quiet(const ExtentMap& done, uint64_t now_ns, const Arrivals& arrivals) const {
  if (now_ns < quiet_since_ns_ || now_ns - quiet_since_ns_ < wait_ns_) return false;
  if (arrivals.best_bytes_per_s == 0 || now_ns - std::min(now_ns, arrivals.last_ns) >= wait_ns_) return true;
  const uint64_t extent_bytes = done.range_of(ExtentId(0)).length;
  const uint64_t extents_ns = kQuietExtents * extent_bytes * 1'000'000'000 / arrivals.best_bytes_per_s;
  return now_ns - quiet_since_ns_ >= std::min(extents_ns, kQuietMaxNs);
}

std::vector<Query> NeedPlanner::take_due(const ExtentMap& done, uint64_t now_ns, const Arrivals& arrivals) {
  std::vector<Query> queries;
  if (sent_.empty() && !unknown_) return queries;
  if (!quiet(done, now_ns, arrivals)) return queries;
  prune(done);
  const auto ask = [&](FlowRef flow, uint64_t from, uint64_t end) {
    if (from >= end) return;
    const Range asked{.offset = from, .length = end - from};
    for (const Range& run : done.missing(asked, kQueriesMax - queries.size())) {
      queries.push_back({.flow = flow, .range = run});
    }
  };
  // Ranges may overlap, and each byte is asked for once.
  uint64_t asked_end = 0;
  for (const auto& [offset, sent] : sent_) {
    if (unknown_) ask(FlowRef(), asked_end, offset);
    ask(sent.flow, std::max(offset, asked_end), sent.end);
    asked_end = std::max(asked_end, sent.end);
  }
  if (unknown_) ask(FlowRef(), asked_end, done.size_bytes());
  if (!queries.empty()) {
    quiet_since_ns_ = now_ns;
    wait_ns_ = std::min(wait_ns_ + wait_ns_ / 2, kQuietMaxNs);
  }
  return queries;
}

FlowRef NeedPlanner::flow_of(uint64_t offset) const {
  auto it = sent_.upper_bound(offset);
  if (it == sent_.begin()) return {};
  --it;
  return offset < it->second.end ? it->second.flow : FlowRef();
}

void NeedPlanner::check_invariants(const ExtentMap& done, std::span<const FlowRef> flows) const {
  if (!base::dchecks_enabled) return;
  DCHECK(sent_.size() <= kSentRangesMax, "no more ranges are remembered than there is room for");
  for (const auto& [offset, sent] : sent_) {
    DCHECK(offset < sent.end && sent.end <= done.size_bytes(), "what was sent lies in the object");
    DCHECK(sent.flow == FlowRef() || std::ranges::find(flows, sent.flow) != flows.end(),
           "it was sent on a flow of this attempt");
  }
  DCHECK(wait_ns_ >= kQuietNs && wait_ns_ <= kQuietMaxNs, "no round waits longer than the longest");
}

}  // namespace sluice::recovery
