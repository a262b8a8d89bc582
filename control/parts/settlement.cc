// SPDX-License-Identifier: Apache-2.0
#include "control/parts/settlement.h"

#include <algorithm>
#include <utility>

namespace sluice::parts {

Settlement::Settlement(ObjectId object, uint64_t size_bytes, uint32_t extent_bytes)
    : object_(object), layout_({.size_bytes = size_bytes, .extent_bytes = extent_bytes}) {}

void Settlement::join(LegId id) {
  Leg& leg = legs_[id];
  if (leg.here) return;
  leg.here = true;
  if (leg.digests.empty()) leg.missing = layout_.extents();
  leg.digests.resize(layout_.extents());
  ask_more(id, leg);
}

void Settlement::dismiss(LegId id) {
  if (const auto leg = legs_.find(id); leg != legs_.end()) leg->second.here = false;
}

void Settlement::leave(LegId id) {
  const auto leg = legs_.find(id);
  if (leg == legs_.end()) return;
  leg->second.here = false;
  leg->second.asked = leg->second.unanswered = 0;
  std::erase_if(questions_, [id](const Portion& question) { return question.leg == id; });
}

void Settlement::ask_more(LegId id, Leg& leg) {
  while (leg.here && leg.asked < leg.digests.size() && leg.unanswered + kQuestionExtents <= kUnansweredMax) {
    const ExtentId first(leg.asked);
    const ExtentRun run{
        .first = first,
        .end = ExtentId(std::min<uint64_t>(leg.asked + kQuestionExtents, leg.digests.size()))};
    leg.asked = run.end.value();
    for (ExtentId at = run.first; at < run.end; ++at) leg.unanswered += leg.digests[at.value()] ? 0 : 1;
    const auto begin = leg.digests.begin() + static_cast<ptrdiff_t>(first.value());
    const auto end = leg.digests.begin() + static_cast<ptrdiff_t>(run.end.value());
    if (std::all_of(begin, end, [](const auto& digest) { return digest.has_value(); })) continue;
    questions_.push_back({.leg = id, .object = object_, .ranges = {layout_.bytes_of(run)}});
  }
}

void Settlement::said(LegId id, ExtentId first, std::span<const uint64_t> digests) {
  const auto found = legs_.find(id);
  if (found == legs_.end()) return;
  Leg& leg = found->second;
  for (size_t index = 0; index < digests.size() && first.value() + index < leg.digests.size(); ++index) {
    std::optional<uint64_t>& digest = leg.digests[first.value() + index];
    if (digest) continue;
    digest = digests[index];
    --leg.missing;
    ++answers_;
    if (first.value() + index < leg.asked) leg.unanswered -= std::min<uint64_t>(leg.unanswered, 1);
  }
  ask_more(id, leg);
}

std::vector<Portion> Settlement::take_questions() { return std::exchange(questions_, {}); }

bool Settlement::knows(LegId id) const {
  const auto leg = legs_.find(id);
  return leg != legs_.end() && leg->second.missing == 0;
}

bool Settlement::ready() const {
  bool some = false;
  for (const auto& [id, leg] : legs_) {
    if (leg.here && leg.missing != 0) return false;
    some |= leg.here;
  }
  return some;
}

bool Settlement::same(LegId leg, LegId other) const {
  return knows(leg) && knows(other) && legs_.at(leg).digests == legs_.at(other).digests;
}

bool Settlement::refused(LegId leg) const {
  return std::any_of(refused_.begin(), refused_.end(), [&](LegId other) { return same(leg, other); });
}

std::optional<LegId> Settlement::best() const {
  std::optional<LegId> best;
  int64_t most = 0;
  for (const auto& each : legs_) {
    const LegId id = each.first;
    if (!each.second.here || !knows(id) || refused(id)) continue;
    const auto have = std::count_if(legs_.begin(), legs_.end(), [&](const auto& other) {
      return other.second.here && same(id, other.first);
    });
    if (have > most) best = id;
    most = std::max<int64_t>(most, have);
  }
  return best;
}

bool Settlement::fits(ExtentId extent, std::optional<LegId> source, LegId version) const {
  if (!source) return false;
  const auto its = legs_.find(*source);
  const auto wanted = legs_.find(version);
  if (its == legs_.end() || wanted == legs_.end()) return false;
  const std::optional<uint64_t>& digest = its->second.digests[extent.value()];
  return digest && digest == wanted->second.digests[extent.value()];
}

}  // namespace sluice::parts
