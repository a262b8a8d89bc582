// Sources whose files differ, where a list says what the whole comes to: each says the digests of all its
// extents, and the version is fetched that the list wants.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "control/destination/several_sources.h"

namespace sluice::transfer {

bool SeveralSources::settle(ObjectId object) {
  const auto found = objects_.find(object);
  if (found == objects_.end() || !found->second.object.listed || legs_.empty()) return false;
  Known& known = found->second;
  // One source alone has brought all: there is no other version.
  if (legs_.size() == 1 && check_.brought_all(legs_.begin()->first, known.object.id) && !others_.come)
    return false;
  if (known.settlement && known.version) known.settlement->refuse(*known.version);
  known.version.reset();
  known.judged = true;
  begin_settlement(known);
  return true;
}

void SeveralSources::begin_settlement(Known& known) {
  if (known.settlement) return;
  replicas_.remove(known.object.id);
  known.settlement.emplace(known.object.id, known.object.size_bytes, extent_bytes_);
  for (const auto& [leg, joined] : legs_) {
    if (!lost(leg, joined)) known.settlement->join(leg);
  }
}

// Until it has said what it has, it is asked for nothing.
void SeveralSources::join_settlement(Known& known, LegId leg) {
  if (!known.settlement) return;
  if (!known.version || !known.settlement->same(leg, *known.version)) planner_.close_to(leg, known.object.id);
  known.settlement->join(leg);
}

// One object after the other, so that no source owes more answers than docs/WIRE.md allows.
void SeveralSources::follow_settlements() {
  // Nothing is fetched of an object that was told whole: the list judges it, or it gets its name.
  const auto settles = [](const Known& known) {
    return known.settlement && (known.stage != Known::Stage::kTold || known.judged);
  };
  const auto asks = [&](const Known& known) { return settles(known) && !known.settlement->ready(); };
  const auto settling = settling_ ? objects_.find(*settling_) : objects_.end();
  if (settling == objects_.end() || !asks(settling->second)) {
    const auto next = std::ranges::find_if(objects_, [&](const auto& each) { return asks(each.second); });
    settling_ = next == objects_.end() ? std::nullopt : std::optional(next->first);
  }
  for (auto& [object, known] : objects_) {
    if (!settles(known)) continue;
    if (object == settling_) {
      for (parts::Portion& question : known.settlement->take_questions()) {
        actions_.words.push_back(
            {question.leg, DigestsWanted{.object = object, .ranges = std::move(question.ranges)}});
      }
    }
    follow_settlement(known);
  }
}

void SeveralSources::follow_settlement(Known& known) {
  parts::Settlement& settlement = *known.settlement;
  const auto has_version = [&](const auto& leg) { return settlement.same(leg.first, *known.version); };
  if (known.version && std::ranges::any_of(legs_, has_version)) {
    for (const auto& [leg, joined] : legs_)  // those that have joined since
      if (settlement.same(leg, *known.version)) planner_.open_to(leg, known.object.id);
    return;
  }
  known.version.reset();  // who has it is gone
  if (!settlement.ready()) return;
  while (const std::optional<LegId> best = settlement.best()) {
    const std::vector<recovery::ExtentRun> differing = differing_from(known, *best);
    if (!differing.empty() || !known.counted.complete() || !known.judged)
      return fetch_version(known, *best, differing);
    settlement.refuse(*best);  // all of this is there, and is not what the list wants
  }
  // One that is on its way, or silent, may have it: its stream or its attempt has limits.
  const bool all_known =
      std::ranges::all_of(legs_, [&](const auto& leg) { return settlement.knows(leg.first); });
  if (all_known && !others_.come) actions_.unsettled.push_back(known.object.id);
}

std::vector<recovery::ExtentRun> SeveralSources::differing_from(const Known& known, LegId version) const {
  std::vector<recovery::ExtentRun> differing;
  for (ExtentId at; at < known.counted.end_id(); ++at) {
    if (!known.counted.is_set(at)) continue;
    if (known.settlement->fits(at, check_.source_of(known.object.id, at), version)) continue;
    if (!differing.empty() && differing.back().end == at) {
      ++differing.back().end;
    } else {
      differing.push_back(parts::run_of(at));
    }
  }
  return differing;
}

void SeveralSources::fetch_version(Known& known, LegId version,
                                   const std::vector<recovery::ExtentRun>& differing) {
  const ObjectId object = known.object.id;
  known.version = version;
  for (const auto& [leg, joined] : legs_) {
    if (known.settlement->same(leg, version)) {
      planner_.open_to(leg, object);
    } else {
      planner_.close_to(leg, object);
    }
  }
  // They are asked for once workers take them again (only_there): until then what comes of them is dropped.
  for (const recovery::ExtentRun& run : differing) drop(known, known.counted.bytes_of(run));
  if (!differing.empty()) known.judged = false;
}

uint64_t SeveralSources::answers() const {
  uint64_t answers = 0;
  for (const auto& [object, known] : objects_)
    answers +=
        (known.settlement ? known.settlement->answers() : 0) + (known.witness ? known.witness->answers() : 0);
  return answers;
}

std::vector<LegId> SeveralSources::differing(ObjectId object) const {
  std::vector<LegId> legs;
  const auto found = objects_.find(object);
  if (found == objects_.end() || !found->second.version) return legs;
  const Known& known = found->second;
  for (const auto& [leg, joined] : legs_) {
    if (known.settlement->knows(leg) && !known.settlement->same(leg, *known.version)) legs.push_back(leg);
  }
  return legs;
}

}  // namespace sluice::transfer
