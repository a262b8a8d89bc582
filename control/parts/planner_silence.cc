// A tick of the planner; and which legs are silent, and when they are tried again.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/parts/planner.h"

namespace sluice::parts {
namespace {

// While nobody looks, no byte is counted: a process that stood still does not blame its peers for it.
constexpr uint64_t kLookNs = 250'000'000;
constexpr uint64_t kLeastGapNs = 50'000'000;
constexpr uint64_t kLongestGapNs = 1'000'000'000;
constexpr uint64_t kLooks = 4;
// A leg whose bytes come, and whose extents are never confirmed, is as good as silent after so long.
constexpr uint64_t kUnconfirmedNs = 5'000'000'000;

}  // namespace

void Planner::tick(uint64_t now_ns) {
  now_ns_ = std::max(now_ns_, now_ns);
  const uint64_t passed_ns = ticked_ns_ == 0 ? 0 : now_ns_ - ticked_ns_;
  ticked_ns_ = now_ns_;
  gap_ns_ = std::clamp(std::max(passed_ns, gap_ns_ / 8 * 7), kLeastGapNs, kLongestGapNs);
  double sum = 0;
  double known = 0;
  for (auto& [leg, state] : legs_) {
    state.goodput.tick(now_ns_, state.facts.rtt_ns);
    if (state.remaining() == 0) state.goodput.end();  // what it waits for is no byte
    if (state.phase != LegState::Phase::kActive) continue;
    if (!state.rate_known()) continue;
    sum += state.rate(kGuessedRate);
    known += 1;
  }
  guess_ = known > 0 ? sum / known : kGuessedRate;
  for (const auto& [leg, state] : legs_) hear_silence(leg, passed_ns);
  // Who can deliver soonest chooses first.
  std::vector<LegId> legs;
  for (const auto& [leg, state] : legs_) {
    if (state.phase == LegState::Phase::kActive) legs.push_back(leg);
  }
  std::stable_sort(legs.begin(), legs.end(), [this](LegId a, LegId b) {
    return legs_.at(a).done_in_s(guess_, options_.extent_bytes) <
           legs_.at(b).done_in_s(guess_, options_.extent_bytes);
  });
  for (const LegId leg : legs) refill(leg);
  for (const LegId leg : legs) help(leg);
  for (const auto& [leg, state] : legs_) try_again(leg);
  check_invariants();
}

void Planner::hear_silence(LegId leg, uint64_t passed_ns) {
  LegState& state = legs_[leg];
  if (state.phase == LegState::Phase::kSilent || state.outstanding.empty()) return;
  state.quiet_ns += std::min(passed_ns, kLookNs);
  state.unconfirmed_ns += std::min(passed_ns, kLookNs);
  const auto needs_ns = static_cast<uint64_t>(static_cast<double>(state.bytes) / state.rate(guess_) * 1e9);
  // Once all has come, its source may have to look at its file before it says the digests.
  const uint64_t limit_ns =
      std::max(kSilenceNs, 3 * state.facts.rtt_ns) * (state.remaining() == 0 ? kLooks : 1);
  const bool silent = state.quiet_ns > limit_ns;
  if (!silent && state.unconfirmed_ns <= kUnconfirmedNs + 10 * state.facts.rtt_ns + 4 * needs_ns) return;
  return_all(leg, true);
  state.phase = LegState::Phase::kSilent;
  state.goodput.forget();
  state.trial_wait_ns = std::clamp(2 * state.trial_wait_ns, kTrialNs, kTrialMaxNs);
  state.trial_at_ns = now_ns_ + state.trial_wait_ns;
  ++changes_;
}

void Planner::try_again(LegId leg) {
  LegState& state = legs_[leg];
  if (state.phase != LegState::Phase::kSilent || now_ns_ < state.trial_at_ns || missing_bytes_ == 0) return;
  if (const std::optional<Find> found = find(leg)) {
    state.phase = LegState::Phase::kOnTrial;
    if (objects_[found->object].kind == Kind::kWhole) return take_whole(leg, found->object);
    give(leg, found->object, run_of(found->run.first), false);
    return;
  }
  for (const LegId victim : slowest_first(leg)) {
    if (!copy(leg, victim)) continue;
    state.phase = LegState::Phase::kOnTrial;
    return;
  }
}

}  // namespace sluice::parts
