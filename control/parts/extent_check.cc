// SPDX-License-Identifier: Apache-2.0
#include "control/parts/extent_check.h"

#include <algorithm>
#include <utility>

#include "dataplane/base/check.h"

namespace sluice::parts {

void ExtentCheck::add(ObjectId object, uint64_t extents) { objects_[object].extents = extents; }

void ExtentCheck::asked(LegId leg, ObjectId object, ExtentRun extents) {
  const auto found = objects_.find(object);
  if (found == objects_.end() || extents.end.value() > found->second.extents) return;
  found->second.asked[leg].add(extents);
  legs_[leg];
}

bool ExtentCheck::was_asked(LegId leg, Place place) const {
  const auto object = objects_.find(place.object);
  if (object == objects_.end()) return false;
  const auto asked = object->second.asked.find(leg);
  return asked != object->second.asked.end() && asked->second.contains(place.extent);
}

bool ExtentCheck::others_were_asked(LegId leg, Place place) const {
  const Object& object = objects_.at(place.object);
  return std::any_of(object.asked.begin(), object.asked.end(), [&](const auto& other) {
    return other.first != leg && other.second.contains(place.extent);
  });
}

void ExtentCheck::written(LegId leg, ObjectId id, ExtentId extent, uint64_t crc) {
  const auto object = objects_.find(id);
  if (object == objects_.end() || extent.value() >= object->second.extents) return;
  const Place place{.object = id, .extent = extent};
  if (const std::optional<LegId> source = object->second.sources.at(extent)) {
    const auto known = crcs_.find(place);
    if (known != crcs_.end() && known->second == crc) return;
    // Without the CRC nobody knows whether who was asked wrote other bytes.
    if (*source != leg && (known != crcs_.end() || !was_asked(leg, place))) {
      return in_conflict(
          {.object = id, .extent = extent, .first = *source, .second = leg, .asked = was_asked(leg, place)});
    }
    forget(id, run_of(extent));
    verdicts_.rewritten.push_back({.leg = leg, .object = id, .extent = extent, .crc = crc});
    return;
  }
  Leg& state = legs_[leg];
  const auto said = state.digests.find(place);
  if (said == state.digests.end()) {
    if (const std::optional<LegId> other = who_said(place, crc)) return judge(*other, place, crc, crc);
    return keep(leg, place, crc);
  }
  const uint64_t digest = said->second;
  state.digests.erase(said);
  judge(leg, place, crc, digest);
}

// Of an extent that was asked of two, a worker may fill in what comes of both, and calls it that of the
// first. The bytes are those of whoever says their digest.
std::optional<LegId> ExtentCheck::who_said(Place place, uint64_t crc) const {
  for (const auto& [leg, state] : legs_) {
    const auto said = state.digests.find(place);
    if (said != state.digests.end() && said->second == crc) return leg;
  }
  return std::nullopt;
}

void ExtentCheck::keep(LegId leg, Place place, uint64_t crc) {
  std::vector<Write>& writes = writes_[place];
  const auto same =
      std::find_if(writes.begin(), writes.end(), [leg](const Write& write) { return write.leg == leg; });
  if (same != writes.end()) {
    same->crc = crc;
    return;
  }
  writes.push_back({.leg = leg, .crc = crc});
  Leg& state = legs_[leg];
  if (++state.waiting <= kWritesMax || state.in_arrears) return;
  state.in_arrears = true;
  verdicts_.in_arrears.push_back(leg);
}

void ExtentCheck::said(LegId leg, ObjectId id, ExtentId first, std::span<const uint64_t> digests) {
  const auto object = objects_.find(id);
  if (object == objects_.end() || first.value() >= object->second.extents) return;
  const uint64_t count = std::min<uint64_t>(digests.size(), object->second.extents - first.value());
  for (uint64_t index = 0; index < count; ++index) {
    const Place place{.object = id, .extent = first.plus(index)};
    if (object->second.sources.at(place.extent)) continue;
    const auto writes = writes_.find(place);
    std::optional<uint64_t> crc;
    if (writes != writes_.end()) {
      for (const Write& write : writes->second) {
        const bool its_bytes = was_asked(leg, place) && write.crc == digests[index];
        if (write.leg == leg || (!crc && its_bytes)) crc = write.crc;
      }
    }
    if (crc) {
      judge(leg, place, *crc, digests[index]);
    } else if (was_asked(leg, place)) {
      legs_[leg].digests[place] = digests[index];
    }
  }
}

void ExtentCheck::judge(LegId leg, Place place, uint64_t written, uint64_t said) {
  const Verdict verdict{.leg = leg, .object = place.object, .extent = place.extent, .crc = written};
  std::optional<LegId> other;
  if (const auto writes = writes_.find(place); writes != writes_.end()) {
    for (const Write& write : writes->second) {
      if (write.leg != leg && write.crc != written) other = write.leg;
    }
  }
  // Whatever else was written there, the file has now, perhaps, some bytes of each.
  drop_writes(place);
  if (written != said) {
    verdicts_.wrong.push_back(verdict);
    return;
  }
  if (other) {
    return in_conflict({.object = place.object,
                        .extent = place.extent,
                        .first = *other,
                        .second = leg,
                        .asked = was_asked(leg, place)});
  }
  Object& object = objects_[place.object];
  object.sources.set(place.extent, leg);
  object.last = verdict;
  ++legs_[leg].confirmed;
  for (auto& [each, state] : legs_) state.digests.erase(place);
  if (others_were_asked(leg, place)) crcs_[place] = written;
  verdicts_.confirmed.push_back(verdict);
}

void ExtentCheck::drop_writes(Place place) {
  const auto writes = writes_.find(place);
  if (writes == writes_.end()) return;
  for (const Write& write : writes->second) --legs_[write.leg].waiting;
  writes_.erase(writes);
}

void ExtentCheck::in_conflict(const Conflict& conflict) {
  forget(conflict.object, run_of(conflict.extent));
  verdicts_.conflicts.push_back(conflict);
}

ExtentCheck::Verdicts ExtentCheck::take_verdicts() { return std::exchange(verdicts_, {}); }

std::vector<Place> ExtentCheck::drop(LegId leg) {
  const std::vector<Place> lost = unconfirmed(leg);
  for (const Place place : lost) drop_writes(place);
  for (auto& [id, object] : objects_) object.asked.erase(leg);
  std::erase_if(crcs_, [this](const auto& known) {
    const std::optional<LegId> source = source_of(known.first.object, known.first.extent);
    return !source || !others_were_asked(*source, known.first);
  });
  if (const auto state = legs_.find(leg); state != legs_.end()) {
    state->second.digests.clear();
    state->second.in_arrears = false;
  }
  return lost;
}

void ExtentCheck::forget(ObjectId id, ExtentRun extents) {
  const auto object = objects_.find(id);
  if (object == objects_.end() || extents.first >= extents.end) return;
  const std::optional<Verdict>& last = object->second.last;
  if (last && last->extent >= extents.first && last->extent < extents.end) object->second.last.reset();
  for (const SourceRuns::Run& run : object->second.sources.remove(extents)) {
    legs_[run.leg].confirmed -= run.extents.end.value() - run.extents.first.value();
  }
  const Place first{.object = id, .extent = extents.first};
  const Place end{.object = id, .extent = extents.end};
  for (auto at = writes_.lower_bound(first); at != writes_.end() && at->first < end;) {
    for (const Write& write : at->second) --legs_[write.leg].waiting;
    at = writes_.erase(at);
  }
  crcs_.erase(crcs_.lower_bound(first), crcs_.lower_bound(end));
  for (auto& [leg, state] : legs_) {
    state.digests.erase(state.digests.lower_bound(first), state.digests.lower_bound(end));
  }
}

void ExtentCheck::remove(ObjectId id) {
  const auto object = objects_.find(id);
  if (object == objects_.end()) return;
  // What each leg has brought of it still counts.
  const Object gone = std::exchange(
      object->second, Object{.extents = object->second.extents, .asked = {}, .sources = {}, .last = {}});
  forget(id, {.first = ExtentId(0), .end = ExtentId(gone.extents)});
  objects_.erase(id);
}

std::vector<Place> ExtentCheck::unconfirmed(LegId leg) const {
  std::vector<Place> places;
  for (const auto& [place, writes] : writes_) {
    for (const Write& write : writes) {
      if (write.leg == leg) places.push_back(place);
    }
  }
  return places;
}

std::optional<LegId> ExtentCheck::source_of(ObjectId id, ExtentId extent) const {
  const auto object = objects_.find(id);
  return object == objects_.end() ? std::nullopt : object->second.sources.at(extent);
}

std::vector<ExtentRun> ExtentCheck::brought_by(LegId leg, ObjectId id) const {
  const auto object = objects_.find(id);
  return object == objects_.end() ? std::vector<ExtentRun>() : object->second.sources.of(leg);
}

bool ExtentCheck::brought_all(LegId leg, ObjectId id) const {
  const auto object = objects_.find(id);
  return object != objects_.end() && object->second.sources.of_all(object->second.extents) == leg;
}

std::optional<ExtentCheck::Verdict> ExtentCheck::known(ObjectId id) const {
  const auto object = objects_.find(id);
  return object == objects_.end() ? std::nullopt : object->second.last;
}

uint64_t ExtentCheck::confirmed_extents(LegId leg) const {
  const auto state = legs_.find(leg);
  return state == legs_.end() ? 0 : state->second.confirmed;
}

void ExtentCheck::check_invariants() const {
  if (!base::dchecks_enabled) return;
  std::map<LegId, size_t> waiting;
  for (const auto& [place, writes] : writes_) {
    DCHECK(!writes.empty() && !source_of(place.object, place.extent), "what is confirmed waits for nothing");
    for (const Write& write : writes) ++waiting[write.leg];
  }
  for (const auto& [leg, state] : legs_) {
    const auto counted = waiting.find(leg);
    DCHECK(state.waiting == (counted == waiting.end() ? 0 : counted->second),
           "the writes of a leg are counted");
    for (const auto& [place, digest] : state.digests) {
      DCHECK(was_asked(leg, place) && !source_of(place.object, place.extent),
             "a digest is kept of what was asked for and is not confirmed");
    }
  }
  for (const auto& [place, crc] : crcs_) {
    DCHECK(source_of(place.object, place.extent), "the CRC that is kept is of a confirmed extent");
  }
  for (const auto& [id, object] : objects_) {
    object.sources.check_invariants();
    for (const auto& [leg, asked] : object.asked) asked.check_invariants();
  }
}

}  // namespace sluice::parts
