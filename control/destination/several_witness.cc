// What came of an object from several sources is what one of them has: it says so before the object gets its
// name.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "control/destination/several_sources.h"

namespace sluice::transfer {
namespace {

// Extents that a witness has not answered. With looks, and what is compared and settled, they are no more
// than docs/WIRE.md allows on one stream.
constexpr uint64_t kWitnessUnansweredMax = 16;

}  // namespace

void SeveralSources::begin_witness(Known& known, const std::vector<recovery::Range>& held) {
  if (!known.object.witnessed || known.counted.extents() < 2) return;
  const recovery::Layout layout{
      .size_bytes = known.object.size_bytes, .extent_bytes = extent_bytes_, .crc_kind = crc_kind_};
  known.witness.emplace(known.object.id, layout, known.object.holes);
  recovery::ExtentMap there(layout);
  for (const recovery::Range& range : held) there.set(there.whole_in(range));
  for (const recovery::Range& hole : known.object.holes) there.clear(there.whole_in(hole));
  for (ExtentId at = there.next_set(ExtentId(0)); at < there.end_id(); at = there.next_set(at)) {
    const ExtentId end = there.next_clear({.first = at, .end = there.end_id()});
    known.witness->held({.first = at, .end = end});
    at = end;
  }
}

// Its questions are no longer of any object.
void SeveralSources::end_witness(Known& known) {
  if (!known.witness || !known.witness->witness()) return;
  const auto leg = legs_.find(*known.witness->witness());
  if (leg != legs_.end())
    leg->second.witness_unanswered -= std::min(leg->second.witness_unanswered, known.witness->unanswered());
  known.witness->leave(*known.witness->witness());
}

// One source that has brought all of it has said the digest of each extent, and looked again at its end.
bool SeveralSources::needs_witness(const Known& known) const {
  if (!known.witness || !known.witness->needed()) return false;
  return !known.complete || !std::ranges::any_of(legs_, [&](const auto& leg) {
    const std::vector<recovery::ExtentRun> runs = check_.brought_by(leg.first, known.object.id);
    return runs.size() == 1 && runs[0].first == ExtentId(0) && runs[0].end == known.counted.end_id();
  });
}

// The fastest: it has most of the object to say in any case.
void SeveralSources::choose_witness(Known& known) {
  std::optional<LegId> best;
  for (const auto& [leg, joined] : legs_) {
    if (lost(leg, joined) || planner_.closed(leg, known.object.id)) continue;
    if (!best || rate_bps(leg) > rate_bps(*best) ||
        (rate_bps(leg) == rate_bps(*best) && leg == known.begun_by))
      best = leg;
  }
  if (best) known.witness->choose(*best);
}

void SeveralSources::follow_witnesses() {
  for (auto& [object, known] : objects_) {
    const bool needed = !known.told_whole && needs_witness(known);
    if (needed && !known.witness->witness()) choose_witness(known);
    tell_whole(known);  // it may have said all before it was chosen
    if (!needed || known.told_whole || !known.witness->witness()) continue;
    // On a new stream it was asked again to send what is there meanwhile, and does not send it.
    if (known.complete && known.witness->idle() && !known.witness->digest()) known.witness->all_sent();
    Joined& leg = legs_.at(*known.witness->witness());
    std::optional<parts::Portion> question =
        known.witness->take_question(kWitnessUnansweredMax - leg.witness_unanswered);
    if (!question) continue;
    for (const recovery::Range& range : question->ranges) {
      const recovery::ExtentRun run = known.counted.whole_in(range);
      leg.witness_unanswered += run.end.value() - run.first.value();
    }
    actions_.words.push_back(
        {question->leg, DigestsWanted{.object = object, .ranges = std::move(question->ranges)}});
  }
}

void SeveralSources::said_to_witness(LegId leg, Known& known, ExtentId first,
                                     const std::vector<uint64_t>& digests) {
  if (!known.witness) return;
  const uint64_t answered = known.witness->said(leg, first, digests);
  const auto joined = legs_.find(leg);
  if (joined != legs_.end())
    joined->second.witness_unanswered -= std::min(joined->second.witness_unanswered, answered);
  tell_whole(known);
}

void SeveralSources::leave_witness(LegId leg) {
  for (auto& [object, known] : objects_)
    if (known.witness) known.witness->leave(leg);
  const auto joined = legs_.find(leg);
  if (joined != legs_.end()) joined->second.witness_unanswered = 0;
}

std::optional<uint64_t> SeveralSources::witnessed(ObjectId object) const {
  const auto found = objects_.find(object);
  if (found == objects_.end() || !needs_witness(found->second)) return std::nullopt;
  return found->second.witness->digest();
}

std::string SeveralSources::not_witnessed(ObjectId object) const {
  const Known& known = objects_.at(object);
  const std::optional<LegId> witness = known.witness->witness();
  std::string others;
  for (const auto& [leg, joined] : legs_) {
    if (leg == witness || check_.brought_by(leg, object).empty()) continue;
    others += (others.empty() ? " from " : ", ") + joined.peer;
  }
  // Who had brought what was there before nobody knows.
  return fmt::format(
      "{} at {} differs from what has arrived of it already{}: nothing was stored; compare the files of the "
      "nodes with "
      "'sluice ls --digest', and get it from the one that has the right one",
      known.object.shown, witness ? peer_of(*witness) : "a source",
      known.witness->held_before() ? "" : others);
}

}  // namespace sluice::transfer
