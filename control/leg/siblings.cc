// SPDX-License-Identifier: Apache-2.0
#include "control/leg/siblings.h"

#include <algorithm>
#include <functional>

#include "dataplane/base/check.h"

namespace sluice::transfer {
namespace {

bool needs_end(Siblings::Stage stage) {
  using S = Siblings::Stage;
  return stage >= S::kCalls && stage <= S::kMoves;
}

template <typename Legs, typename Is>
bool none_of_others(const Legs& legs, LegId leg, Is is) {
  for (LegId other; other < legs.end_id(); ++other)
    if (other != leg && is(legs[other].stage)) return false;
  return true;
}

bool comes(Siblings::Stage stage) {
  return stage >= Siblings::Stage::kWaits && stage <= Siblings::Stage::kBegins;
}

bool joins(Siblings::Stage stage) {
  return stage == Siblings::Stage::kDue || stage == Siblings::Stage::kBegins;
}

}  // namespace

bool Siblings::may_begin(LegId leg) const {
  return none_of_others(legs_, leg,
                        [](Stage stage) { return stage == Stage::kBegins || stage == Stage::kClosesEnd; });
}

bool Siblings::is_last(LegId leg) const {
  return none_of_others(legs_, leg,
                        [](Stage stage) { return needs_end(stage) || stage == Stage::kClosesEnd; });
}

bool Siblings::alone(LegId leg) const {
  return none_of_others(legs_, leg, [](Stage stage) { return stage > Stage::kWaits; });
}

bool Siblings::some_go_on() const {
  return std::ranges::any_of(
      legs_, [](const Each& each) { return each.stage == Stage::kWaits || needs_end(each.stage); });
}

bool Siblings::some_come() const {
  return std::ranges::any_of(legs_, [](const Each& each) { return comes(each.stage); });
}

bool Siblings::some_join() const {
  return std::ranges::any_of(legs_, [](const Each& each) { return joins(each.stage); });
}

bool Siblings::faster_joins(LegId leg) const {
  const uint64_t its_bps = legs_[leg].expected_bps;
  return std::ranges::any_of(legs_, [its_bps](const Each& each) {
    return joins(each.stage) && (its_bps == 0 || each.expected_bps == 0 || each.expected_bps > its_bps);
  });
}

bool Siblings::faster_calls(LegId leg) const {
  const uint64_t its_bps = legs_[leg].expected_bps;
  return its_bps != 0 && std::ranges::any_of(legs_, [its_bps](const Each& each) {
           return each.stage == Stage::kCalls && each.expected_bps > its_bps;
         });
}

bool Siblings::near_unheard() const {
  return std::ranges::any_of(legs_, [](const Each& each) {
    return !each.heard && comes(each.stage) && each.rtt_ns && *each.rtt_ns <= kNearNs;
  });
}

bool Siblings::some_unreached() const {
  return std::ranges::any_of(
      legs_, [](const Each& each) { return !each.heard && comes(each.stage) && !each.rtt_ns; });
}

std::vector<LegId> Siblings::in_order() const {
  std::vector<LegId> order;
  for (LegId leg; leg < legs_.end_id(); ++leg) order.push_back(leg);
  std::ranges::stable_sort(order, std::greater(), [this](LegId leg) { return legs_[leg].expected_bps; });
  return order;
}

bool Siblings::all_away() const {
  return std::ranges::all_of(legs_, [](const Each& each) { return each.stage == Stage::kAway; });
}

void Siblings::check_invariants() const {
  const auto at = [this](Stage stage) { return std::ranges::count(legs_, stage, &Each::stage); };
  DCHECK(at(Stage::kBegins) <= 1, "one leg at a time begins");
  DCHECK(at(Stage::kClosesEnd) <= 1, "the data end is closed by one leg");
  DCHECK(at(Stage::kClosesEnd) == 0 ||
             at(Stage::kCalls) + at(Stage::kDue) + at(Stage::kBegins) + at(Stage::kMoves) == 0,
         "nobody needs the data end that is being closed");
}

board::FlowFigures Siblings::figures() const {
  if (legs_.size() == 1) return legs_.begin()->lanes->figures();
  board::FlowFigures all;
  for (const Each& each : legs_) all.add(each.lanes->figures());
  return all;
}

}  // namespace sluice::transfer
