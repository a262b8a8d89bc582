// SPDX-License-Identifier: Apache-2.0
#include "control/destination/several_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "control/words/range_messages.h"
#include "dataplane/base/check.h"

namespace sluice::transfer {
namespace {

// So long the first source waits for others that are about to join. A file of one extent is then asked of the
// fastest, which this node knows from before.
constexpr uint64_t kOthersJoinNs = 200 * kMillisecondNs;

}  // namespace

SeveralSources::SeveralSources(uint32_t extent_bytes, crc::CrcKind crc_kind, uint64_t seed)
    : extent_bytes_(extent_bytes),
      crc_kind_(crc_kind),
      planner_({.extent_bytes = extent_bytes}),
      replicas_({.seed = seed, .extent_bytes = extent_bytes}) {}

// ---- objects -----------------------------------------------------------------------------------

void SeveralSources::add(const Object& object, const std::vector<recovery::Range>& held) {
  Known known{.object = object,
              .counted = recovery::ExtentMap(
                  recovery::Layout{.size_bytes = object.size_bytes, .extent_bytes = extent_bytes_}),
              .begun_by = {}};
  for (const recovery::Range& range : held) known.counted.set(known.counted.whole_in(range));
  check_.add(object.id, known.counted.extents());
  planner_.add(object.id, object.size_bytes,
               object.whole ? parts::Planner::Kind::kWhole : parts::Planner::Kind::kDivisible);
  planner_.holds(object.id, held);
  Known& added = objects_.insert_or_assign(object.id, std::move(known)).first->second;
  begin_witness(added);
  if (object.witnessed && added.counted.complete()) complete(added);
}

void SeveralSources::remove(ObjectId object) {
  const auto found = objects_.find(object);
  if (found == objects_.end()) return;
  for (const auto& [id, extent] : found->second.last_looks) {
    const auto leg = legs_.find(id);
    if (leg == legs_.end() || std::erase(leg->second.looks, object) != 0) continue;
    if (leg->second.looks_unanswered != 0) --leg->second.looks_unanswered;
  }
  for (auto& [leg, joined] : legs_) drop_early_look(found->second, leg);
  objects_.erase(found);
  planner_.remove(object);
  check_.remove(object);
  replicas_.remove(object);
}

void SeveralSources::only_there(ObjectId object, const recovery::ExtentMap& there) {
  const auto found = objects_.find(object);
  if (found == objects_.end() || there.contains(found->second.counted)) return;
  // The failed sync was also of what workers have written and no source has vouched for yet.
  for (const auto& [leg, joined] : legs_) {
    for (const parts::Place& place : check_.unconfirmed(leg)) {
      if (place.object != object) continue;
      check_.forget(object, parts::run_of(place.extent));
      lose(object, parts::run_of(place.extent));
    }
  }
  recovery::ExtentMap& counted = found->second.counted;
  for (const recovery::ExtentRun& run : there.missing({.first = ExtentId(0), .end = there.end_id()})) {
    for (ExtentId at = counted.next_set(run.first); at < run.end; at = counted.next_set(at)) {
      const ExtentId end = counted.next_clear({.first = at, .end = run.end});
      counted.clear(recovery::ExtentRun{.first = at, .end = end});
      found->second.stage = Known::Stage::kComing;
      found->second.dropped.add({.first = at, .end = end});
      check_.forget(object, {.first = at, .end = end});
      planner_.forgotten(object, {.first = at, .end = end});
      at = end;
    }
  }
}

void SeveralSources::lose(ObjectId object, recovery::ExtentRun run) {
  const auto found = objects_.find(object);
  if (found == objects_.end()) return;
  found->second.counted.clear(run);
  found->second.stage = Known::Stage::kComing;
  planner_.forgotten(object, run);
  drop(found->second, found->second.counted.bytes_of(run));
}

void SeveralSources::drop(Known& known, recovery::Range range) {
  known.dropped.add(known.counted.whole_in(range));
  actions_.forgotten.push_back({.object = known.object.id, .range = range});
}

// ---- legs --------------------------------------------------------------------------------------

void SeveralSources::join(const Source& source, uint64_t now_ns) {
  now_ns_ = std::max(now_ns_, now_ns);
  if (legs_.empty()) first_joined_ns_ = now_ns_;
  legs_.insert_or_assign(source.leg, Joined{.peer = source.peer,
                                            .rtt_ns = source.rtt_ns,
                                            .witness_window = witness_window(source.digests_unanswered),
                                            .hearing = {}});
  planner_.join(source.leg,
                {.rtt_ns = source.rtt_ns, .expected_rate_bps = source.expected_bps, .lanes = source.lanes},
                now_ns_);
  replicas_.join(source.leg, source.peer);
  for (auto& [object, known] : objects_) join_settlement(known, source.leg);
}

void SeveralSources::leave(LegId leg) {
  leave_witness(leg);
  if (legs_.erase(leg) == 0) return;
  for (auto& [object, known] : objects_) drop_early_look(known, leg);
  planner_.leave(leg);
  replicas_.leave(leg);
  for (const parts::Place& place : check_.drop(leg)) lose(place.object, parts::run_of(place.extent));
  for (auto& [object, known] : objects_) {
    forget_looks(known, leg);
    if (known.settlement) known.settlement->leave(leg);
  }
}

// The next attempt tells once more of each object that is whole and has no name yet.
void SeveralSources::leave_all() {
  while (!legs_.empty()) leave(legs_.begin()->first);
  for (auto& [object, known] : objects_) known.stage = std::min(known.stage, Known::Stage::kThere);
  others_ = unknown_others();
}

void SeveralSources::on_new_stream(LegId leg) {
  if (!legs_.contains(leg)) return;
  for (const parts::Portion& portion : planner_.outstanding(leg)) ask(portion, false);
  std::map<ObjectId, std::vector<ExtentId>> unconfirmed;
  for (const parts::Place& place : check_.unconfirmed(leg)) unconfirmed[place.object].push_back(place.extent);
  for (auto& [object, extents] : unconfirmed) {
    const auto found = objects_.find(object);
    if (found == objects_.end()) continue;
    ask({.leg = leg,
         .object = object,
         .ranges = recovery::join_extents(found->second.counted, std::move(extents))},
        false);
  }
  leave_witness(leg);
  replicas_.leave(leg);  // what it was asked and has not answered is asked again
  Joined& joined = legs_.at(leg);
  replicas_.join(leg, joined.peer);
  joined.looks.clear();
  joined.looks_unanswered = 0;
  for (auto& [object, known] : objects_) {
    drop_early_look(known, leg);
    if (known.last_looks.contains(leg)) joined.looks.push_back(object);
    if (known.settlement) known.settlement->leave(leg);
    join_settlement(known, leg);
  }
  ask_looks(leg, joined);
}

void SeveralSources::tick(LegId leg, const Sign& sign, uint64_t now_ns) {
  const auto found = legs_.find(leg);
  if (found == legs_.end()) return;
  Joined& joined = found->second;
  now_ns_ = std::max(now_ns_, now_ns);
  const uint64_t before = std::exchange(joined.bytes, sign.bytes);
  joined.hearing.look(sign.bytes + sign.heard_ns, sign.up, now_ns_);
  follow_hearing(leg, joined);
  follow_check();  // nothing is planned for what has come
  planner_.received(leg, sign.bytes - std::min(sign.bytes, before), now_ns_);
  if (waits_for_faster(joined)) return;
  planner_.expect_others(others_.some && now_ns_ - first_joined_ns_ < kOthersJoinNs);
  planner_.tick(now_ns_);
}

// A faster leg that still calls its peer may have a longer round trip. This one waits for it as long as that
// can make its words late, and no longer.
bool SeveralSources::waits_for_faster(const Joined& leg) const {
  const uint64_t passed_ns = now_ns_ - first_joined_ns_;
  if (others_.faster && passed_ns < kOthersJoinNs) return true;
  return others_.faster_calls && passed_ns < std::min(kOthersJoinNs, leg.rtt_ns / 2);
}

void SeveralSources::written(LegId leg, const board::Event& event) {
  const ObjectId object(event.object);
  const auto found = objects_.find(object);
  if (found == objects_.end() || !legs_.contains(leg)) return;
  const auto extent = found->second.counted.extent_of({.offset = event.offset, .length = event.length});
  if (extent) check_.written(leg, object, *extent, event.digest);
}

bool SeveralSources::said(LegId leg, const ExtentDigests& digests) {
  const auto found = objects_.find(digests.object);
  if (found == objects_.end()) return true;  // it is done
  const recovery::ExtentMap& map = found->second.counted;
  if (digests.offset % extent_bytes_ != 0 || digests.offset >= map.size_bytes()) return false;
  const ExtentId first = map.extent_at(digests.offset);
  if (digests.digests.size() > map.extents() - first.value()) return false;
  check_.said(leg, digests.object, first, digests.digests);
  replicas_.said(leg, digests.object, first, digests.digests);
  if (found->second.settlement) found->second.settlement->said(leg, first, digests.digests);
  if (found->second.witness) found->second.witness->said(leg, first, digests.digests);
  looked_early(leg, found->second, digests);
  looked(leg, found->second, first, digests.digests.size());
  return true;
}

std::string SeveralSources::waiting_for() const {
  for (const auto& [object, known] : objects_) {
    if (known.settlement && !known.version)
      return fmt::format("{} (what each has of {}, since it is not what the list wants)",
                         known.settlement->ready() ? "other sources" : "its sources", known.object.shown);
    if (known.stage != Known::Stage::kThere) continue;
    if (known.last_looks.empty() && known.witness)
      return fmt::format("{} (whether it has {} as it came from several)",
                         known.witness->witness() ? "node " + peer_of(*known.witness->witness()) : "a source",
                         known.object.shown);
    if (!known.last_looks.empty())
      return fmt::format("node {} (a last look at its {})", peer_of(known.last_looks.begin()->first),
                         known.object.shown);
  }
  return "";
}

// ---- what follows ------------------------------------------------------------------------------

SeveralSources::Actions SeveralSources::take_actions() {
  follow_check();
  follow_replicas();  // they may open an object to a leg
  follow_settlements();
  follow_planner();
  follow_replicas();  // what is to be compared is asked at once
  follow_witnesses();
  ask_early_looks();
  check_invariants();
  return std::exchange(actions_, {});
}

void SeveralSources::follow_planner() {
  parts::Planner::Actions wants = planner_.take_actions();
  for (const ObjectId object : wants.begin_anew) {
    const auto found = objects_.find(object);
    if (found == objects_.end()) continue;
    recovery::ExtentMap& counted = found->second.counted;
    const recovery::ExtentRun all{.first = ExtentId(0), .end = counted.end_id()};
    counted.clear(all);
    check_.forget(object, all);
    found->second.begun_by.reset();
    found->second.stage = Known::Stage::kComing;
    drop(found->second, counted.bytes_of(all));
  }
  for (const parts::Want& want : wants.wants) ask(want.portion, want.withdrawn);
  for (const ObjectId object : wants.compare) compare(object);
}

void SeveralSources::ask(const parts::Portion& portion, bool withdrawn) {
  const auto found = objects_.find(portion.object);
  if (found == objects_.end()) return;
  if (!withdrawn) {
    if (!found->second.begun_by) found->second.begun_by = portion.leg;
    found->second.looked.erase(portion.leg);
    if (const auto early = found->second.early_looks.find(portion.leg);
        early != found->second.early_looks.end())
      early->second.stale = true;
    for (const recovery::Range& range : portion.ranges) {
      const recovery::ExtentRun run = found->second.counted.whole_in(range);
      check_.asked(portion.leg, portion.object, run);
      if (found->second.witness) found->second.witness->asked(portion.leg, run);
    }
  }
  in_parts(portion.ranges, [&](std::vector<recovery::Range> ranges) {
    actions_.words.push_back(
        {portion.leg, Want{.object = portion.object, .ranges = std::move(ranges), .withdrawn = withdrawn}});
  });
  if (!withdrawn) need_dropped(portion);
}

// A source ignores a Need for what it has not sent yet: that comes in its turn (WIRE 2.3).
void SeveralSources::need_dropped(const parts::Portion& portion) {
  const Known& known = objects_.at(portion.object);
  std::vector<recovery::Range> needed;
  for (const recovery::Range& range : portion.ranges)
    for (const recovery::ExtentRun& run : known.dropped.within(known.counted.whole_in(range)))
      needed.push_back(known.counted.bytes_of(run));
  in_parts(needed, [&](std::vector<recovery::Range> ranges) {
    actions_.words.push_back({portion.leg, Need{.object = portion.object, .ranges = std::move(ranges)}});
  });
}

std::vector<parts::Portion> SeveralSources::to_need(LegId first, ObjectId object,
                                                    const std::vector<recovery::Range>& ranges) const {
  const auto found = objects_.find(object);
  if (found == objects_.end()) return {};
  const recovery::ExtentMap& map = found->second.counted;
  std::vector<parts::Portion> portions{{.leg = first, .object = object, .ranges = {}}};
  for (const auto& [leg, joined] : legs_)
    if (leg != first) portions.push_back({.leg = leg, .object = object, .ranges = {}});
  for (const recovery::Range& range : ranges) {
    parts::RunSet left;
    left.add({.first = map.extent_at(range.offset), .end = map.extent_at(range.end() - 1).plus(1)});
    for (parts::Portion& portion : portions) {
      for (const recovery::ExtentRun& asked : take_asked(portion.leg, object, &left)) {
        const recovery::Range whole = map.bytes_of(asked);
        const uint64_t from = std::max(whole.offset, range.offset);
        portion.ranges.push_back({.offset = from, .length = std::min(whole.end(), range.end()) - from});
      }
    }
  }
  std::erase_if(portions, [](const parts::Portion& portion) { return portion.ranges.empty(); });
  return portions;
}

// Removes from `extents` those that this leg is to bring, and returns them.
std::vector<recovery::ExtentRun> SeveralSources::take_asked(LegId leg, ObjectId object,
                                                            parts::RunSet* extents) const {
  std::vector<recovery::ExtentRun> taken;
  for (const recovery::ExtentRun& run : extents->all())
    std::ranges::copy(planner_.asked_within(leg, object, run), std::back_inserter(taken));
  for (const recovery::ExtentRun& run : taken) extents->remove(run);
  return taken;
}

void SeveralSources::compare(ObjectId object) {
  const auto found = objects_.find(object);
  if (found == objects_.end()) return;
  const Object& known = found->second.object;
  std::optional<parts::Replicas::Held> held;
  if (const auto extent = check_.known(object))
    held = {.extent = extent->extent, .crc = extent->crc, .from = extent->leg};
  replicas_.compare({.object = object,
                     .size_bytes = known.size_bytes,
                     .name = known.shown,
                     .begun_by = found->second.begun_by,
                     .held = held});
}

void SeveralSources::follow_replicas() {
  parts::Replicas::Actions actions = replicas_.take_actions();
  for (parts::Portion& question : actions.questions) {
    actions_.words.push_back(
        {question.leg, DigestsWanted{.object = question.object, .ranges = std::move(question.ranges)}});
  }
  for (const parts::Replicas::Agreed& agreed : actions.agreed) planner_.open_to(agreed.leg, agreed.object);
  for (parts::Replicas::Disagreement& each : actions.disagreements) {
    const auto found = objects_.find(each.object);
    if (found != objects_.end() && found->second.object.listed) {
      begin_settlement(found->second);
    } else {
      fail({ErrorCode::kIntegrity, std::move(each.message)});
    }
  }
}

const std::string& SeveralSources::peer_of(LegId leg) const {
  static const std::string none = "a source that has left";
  const auto found = legs_.find(leg);
  return found == legs_.end() ? none : found->second.peer;
}

void SeveralSources::check_invariants() const {
  if (!base::dchecks_enabled) return;
  planner_.check_invariants();
  check_.check_invariants();
}

}  // namespace sluice::transfer
