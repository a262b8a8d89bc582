// Before an object that several sources have sent gets its name, one source says the digest of all of it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "control/destination/several_sources.h"

namespace sluice::transfer {

// A source takes so many questions less those of other kinds, which may all wait at the same time. An eighth
// of a large window stays free: a source that had sent an extent when it was asked for its digest says the
// digest twice, and still owes the second one when the first has come.
uint64_t SeveralSources::witness_window(uint64_t digests_unanswered) {
  static_assert(kDigestsUnansweredMin > kOtherQuestionsMax);
  const uint64_t takes =
      std::clamp<uint64_t>(digests_unanswered, kDigestsUnansweredMin, kDigestsUnansweredMax);
  return takes - kOtherQuestionsMax - (takes - kDigestsUnansweredMin) / 8;
}

void SeveralSources::begin_witness(Known& known) {
  if (!known.object.witnessed || known.counted.extents() < 2) return;
  const recovery::Layout layout{
      .size_bytes = known.object.size_bytes, .extent_bytes = extent_bytes_, .crc_kind = crc_kind_};
  known.witness.emplace(known.object.id, layout, known.object.holes).held(known.counted);
}

void SeveralSources::has_holes(ObjectId object, const std::vector<recovery::Range>& holes) {
  Known& known = objects_.at(object);
  if (known.object.holes == holes) return;
  known.object.holes = holes;
  if (known.witness) known.witness->has_holes(holes);
}

// One source that has brought all of it has said the digest of each extent, and looked again at its end.
bool SeveralSources::needs_witness(const Known& known) const {
  if (!known.witness || !known.witness->needed()) return false;
  return known.stage == Known::Stage::kComing || !std::ranges::any_of(legs_, [&](const auto& leg) {
           return check_.brought_all(leg.first, known.object.id);
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

// The only place that calls an object whole.
void SeveralSources::follow_witnesses() {
  Unanswered unanswered;
  for (auto& [object, known] : objects_) {
    if (known.stage == Known::Stage::kTold) continue;
    const bool needed = needs_witness(known);
    if (needed && !known.witness->witness()) choose_witness(known);
    const bool known_whole = !needed || known.witness->digest();
    if (known.stage == Known::Stage::kThere && known.last_looks.empty() && known_whole) {
      known.stage = Known::Stage::kTold;
      actions_.whole.push_back(object);
    } else if (needed && known.witness->witness()) {
      ask_witness(known, &unanswered);
    }
  }
}

void SeveralSources::ask_witness(Known& known, Unanswered* unanswered) {
  const LegId leg = *known.witness->witness();
  // On a new stream it was asked again to send what is there meanwhile, and does not send it.
  if (known.stage == Known::Stage::kThere && known.witness->idle() && !known.witness->digest())
    known.witness->all_sent();
  if (!known.witness->due()) return;
  const auto [its, is_new] = unanswered->try_emplace(leg, 0);
  if (is_new) {
    for (const auto& [object, other] : objects_)
      its->second += other.witness ? other.witness->unanswered(leg) : 0;
  }
  const uint64_t window = legs_.at(leg).witness_window;
  const uint64_t before = known.witness->unanswered(leg);
  std::optional<parts::Portion> question =
      known.witness->take_question(window - std::min(window, its->second));
  if (!question) return;
  its->second += known.witness->unanswered(leg) - before;
  actions_.words.push_back(
      {leg, DigestsWanted{.object = known.object.id, .ranges = std::move(question->ranges)}});
}

void SeveralSources::leave_witness(LegId leg) {
  for (auto& [object, known] : objects_)
    if (known.witness) known.witness->leave(leg);
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
  // Nobody knows which sources had brought what was there before.
  return fmt::format(
      "{} at {} differs from what has arrived of it already{}: nothing was stored; compare the files of the "
      "nodes with "
      "'sluice ls --digest', and get it from the one that has the right one",
      known.object.shown, witness ? peer_of(*witness) : "a source",
      known.witness->held_before() ? "" : others);
}

}  // namespace sluice::transfer
