// The last look of each source at its file, before the file gets its name here.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/destination/several_sources.h"

namespace sluice::transfer {
namespace {

// Last looks of a source that are not answered, those that were asked for beforehand apart.
constexpr uint32_t kLooksMax = 16;
constexpr uint32_t kEarlyLooksMax = 8;

}  // namespace

// A source whose file's times cannot tell whether it was changed reads again what it has read, before it says
// the digest that it is asked for.
void SeveralSources::complete(Known& known) {
  known.stage = Known::Stage::kThere;
  known.last_looks.clear();
  for (auto& [leg, joined] : legs_) {
    const std::vector<recovery::ExtentRun> runs = check_.brought_by(leg, known.object.id);
    if (runs.empty() || known.looked.contains(leg) || lost(leg, joined)) continue;
    known.last_looks.emplace(leg, runs.front().first);
    joined.looks.push_back(known.object.id);
    ask_looks(leg, joined);
  }
  if (known.witness) known.witness->all_sent();
}

// A source that is silent does not look. It had looked before it said each digest. Once it speaks again it is
// asked what it has of objects whose sources differ.
void SeveralSources::follow_hearing(LegId id, Joined& leg) {
  if (!lost(id, leg)) {
    for (auto& [object, known] : objects_)
      if (known.settlement) known.settlement->join(id);
    return;
  }
  leg.looks.clear();
  leg.looks_unanswered = 0;
  for (auto& [object, known] : objects_) {
    drop_early_look(known, id);
    forget_looks(known, id);
    if (known.settlement) known.settlement->dismiss(id);
    if (known.witness) known.witness->dismiss(id);
  }
}

void SeveralSources::ask_looks(LegId id, Joined& leg) {
  static_assert(kLooksMax + kEarlyLooksMax + parts::Replicas::kQuestionsMax +
                    parts::Settlement::kUnansweredMax <=
                kOtherQuestionsMax);
  for (; leg.looks_unanswered < kLooksMax && !leg.looks.empty(); leg.looks.pop_front()) {
    const auto found = objects_.find(leg.looks.front());
    if (found == objects_.end()) continue;
    const auto extent = found->second.last_looks.find(id);
    if (extent == found->second.last_looks.end()) continue;
    ++leg.looks_unanswered;
    actions_.words.push_back({id, DigestsWanted{.object = found->first,
                                                .ranges = {found->second.counted.range_of(extent->second)}}});
  }
}

void SeveralSources::looked(LegId leg, Known& known, ExtentId first, size_t digests) {
  const auto look = known.last_looks.find(leg);
  if (look == known.last_looks.end() || look->second < first || look->second >= first.plus(digests)) return;
  const auto joined = legs_.find(leg);
  if (joined != legs_.end()) {
    if (joined->second.looks_unanswered != 0) --joined->second.looks_unanswered;
    ask_looks(leg, joined->second);
  }
  forget_looks(known, leg);
}

void SeveralSources::forget_looks(Known& known, LegId leg) { known.last_looks.erase(leg); }

// A source is asked for its look once nothing more of the object is left to be asked for: it answers with the
// digest of the last extent, and not a round trip later. A source that is asked for more afterwards looks
// again.
void SeveralSources::ask_early_looks() {
  for (auto& [object, known] : objects_) {
    if (known.stage != Known::Stage::kComing || known.object.whole || !planner_.all_asked(object)) continue;
    for (auto& [leg, joined] : legs_) {
      if (known.looked.contains(leg) || known.early_looks.contains(leg)) continue;
      if (joined.early_unanswered >= kEarlyLooksMax || !planner_.brings(leg, object)) continue;
      const ExtentId extent = planner_.last_asked(leg, object);
      known.early_looks.emplace(leg, Known::EarlyLook{.extent = extent});
      ++joined.early_unanswered;
      actions_.words.push_back(
          {leg, DigestsWanted{.object = object, .ranges = {known.counted.range_of(extent)}, .last = true}});
    }
  }
}

void SeveralSources::looked_early(LegId leg, Known& known, const ExtentDigests& digests) {
  const auto early = known.early_looks.find(leg);
  if (!digests.last || early == known.early_looks.end()) return;
  const ExtentId first = known.counted.extent_at(digests.offset);
  const ExtentId extent = early->second.extent;
  if (extent < first || extent >= first.plus(digests.digests.size())) return;
  if (!early->second.stale) known.looked.insert(leg);
  drop_early_look(known, leg);
}

void SeveralSources::drop_early_look(Known& known, LegId leg) {
  const auto joined = legs_.find(leg);
  if (known.early_looks.erase(leg) != 0 && joined != legs_.end() && joined->second.early_unanswered != 0)
    --joined->second.early_unanswered;
}

}  // namespace sluice::transfer
