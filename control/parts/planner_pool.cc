// What a leg is asked for from the pool, and how much.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "control/parts/planner.h"

namespace sluice::parts {
namespace {

constexpr double kForEver = std::numeric_limits<double>::infinity();
constexpr uint64_t kRefills = 8;        // a window is filled up by an eighth of it at a time
constexpr uint64_t kUnconfirmed = 3;    // windows that a leg may have outstanding, come but not confirmed
constexpr uint64_t kAlignExtents = 64;  // a block of the journal (control/recovery/extent_ledger.h)

double seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

uint64_t length(ExtentRun run) { return run.end.value() - run.first.value(); }

}  // namespace

void Planner::refill(LegId leg) {
  LegState& state = legs_[leg];
  const uint64_t window = window_of(state);
  if (!state.outstanding.empty() &&
      state.remaining() + std::max<uint64_t>(options_.extent_bytes, window / kRefills) > window) {
    return;
  }
  while (state.remaining() < window && state.bytes < kUnconfirmed * window) {
    const std::optional<Find> found = find(leg);
    if (!found) return;
    // Soon the others will have nothing else to begin. They are counted on from now on.
    const Object& object = objects_[found->object];
    if (!object.begun && object.there.extents() > 1 && legs_.size() > 1 && fresh_.size() <= legs_.size()) {
      compare(found->object);
    }
    uint64_t worth = worth_taking(leg, *found);
    // Each may wait for another that would be sooner, with what that other does not find first.
    if (worth == 0 && nobody_works()) worth = 1;
    if (worth == 0) return;
    if (objects_[found->object].kind == Kind::kWhole) {
      take_whole(leg, found->object);
      continue;
    }
    const uint64_t room = std::max<uint64_t>(1, (window - state.remaining()) / options_.extent_bytes);
    const ExtentId end = found->run.first.plus(std::min({room, worth, length(found->run)}));
    give(leg, found->object, {.first = found->run.first, .end = end}, false);
  }
}

bool Planner::nobody_works() const {
  return std::all_of(legs_.begin(), legs_.end(),
                     [](const auto& leg) { return leg.second.outstanding.empty(); });
}

uint64_t Planner::window_of(const LegState& state) const {
  if (others_expected_) return uint64_t{state.facts.lanes} * options_.extent_bytes;
  return state.window_bytes(guess_, 2 * seconds(gap_ns_), options_.extent_bytes);
}

void Planner::take_whole(LegId leg, ObjectId id) {
  Object& object = objects_[id];
  if (object.begun && object.first != leg) {
    begin_anew(id);
    object.first = leg;
  }
  for (const ExtentRun& run : object.pool.all()) give(leg, id, run, false);
}

std::optional<Planner::Find> Planner::find(LegId leg) {
  LegState& state = legs_[leg];
  if (state.next && exists(state.next->object)) {
    const Object& object = objects_[state.next->object];
    const std::optional<ExtentRun> run = object.pool.run_at(state.next->extent);
    if (run && may(leg, object)) {
      return Find{.object = state.next->object, .run = {.first = state.next->extent, .end = run->end}};
    }
  }
  if (state.found_nothing_at == changes_) return std::nullopt;
  if (const std::optional<Find> own = find_begun(leg, true)) return own;
  for (const ObjectId id : fresh_) {
    if (may(leg, objects_[id])) return within(leg, id);
  }
  if (const std::optional<Find> shared = find_begun(leg, false)) return shared;
  state.found_nothing_at = changes_;
  return std::nullopt;
}

std::optional<Planner::Find> Planner::find_begun(LegId leg, bool own) {
  std::optional<Find> best;
  for (const ObjectId id : begun_) {
    const Object& object = objects_[id];
    if (own && object.first != leg) continue;
    if (!may(leg, object)) {
      compare(id);
      continue;
    }
    const Find found = within(leg, id);
    if (!best || length(found.run) > length(best->run)) best = found;
  }
  return best;
}

Planner::Find Planner::within(LegId leg, ObjectId id) const {
  const Object& object = objects_[id];
  ExtentRun run = object.pool.longest();
  // Another leg is about to go on at its beginning. This one takes the second half.
  const bool shared = std::any_of(legs_.begin(), legs_.end(), [&](const auto& other) {
    const LegState& state = other.second;
    return other.first != leg && !state.outstanding.empty() &&
           state.next == Place{.object = id, .extent = run.first};
  });
  if (shared && length(run) > 1) {
    uint64_t middle = run.first.value() + length(run) / 2;
    if (length(run) >= 4 * kAlignExtents) middle -= middle % kAlignExtents;
    run.first = ExtentId(middle);
  }
  return {.object = id, .run = run};
}

// In whole extents; of a whole object, all or nothing.
uint64_t Planner::worth_taking(LegId leg, const Find& found) const {
  const LegState& state = legs_.at(leg);
  const Object& object = objects_[found.object];
  const bool whole = object.kind == Kind::kWhole;
  const uint64_t piece =
      whole ? object.there.size_bytes() : object.there.bytes_of(run_of(found.run.first)).length;
  const double level = level_s(leg, object);
  const double before_level = (level - state.free_in_s(guess_, piece)) * state.rate(guess_);
  if (before_level >= static_cast<double>(piece)) {
    return static_cast<uint64_t>(before_level / static_cast<double>(piece));
  }
  // Nobody can do it before then. Who is done with it first takes it.
  const double mine = state.done_in_s(guess_, piece);
  for (const auto& [other, its] : legs_) {
    const std::optional<double> wait = other == leg ? std::nullopt : wait_s(other, object);
    if (wait && *wait + its.done_in_s(guess_, piece) < mine) return 0;
  }
  return 1;
}

std::optional<double> Planner::wait_s(LegId leg, const Object& object) const {
  const LegState& state = legs_.at(leg);
  if (state.phase != LegState::Phase::kActive || is_among(object.closed, leg)) return std::nullopt;
  if (state.bytes >= kUnconfirmed * window_of(state)) return std::nullopt;
  // Once another leg has begun it, the replicas are compared first.
  const bool divided_later = !object.begun && object.compared_ns;
  if (may(leg, object) && !divided_later) return 0;
  if (object.kind == Kind::kWhole || !object.compared_ns) return std::nullopt;
  const uint64_t passed_ns = now_ns_ - std::min(now_ns_, *object.compared_ns);
  if (passed_ns > std::max(kSilenceNs, 3 * state.facts.rtt_ns)) return std::nullopt;
  return seconds(state.facts.rtt_ns - std::min(state.facts.rtt_ns, passed_ns));
}

// When the pool will be done, if all legs that may take of it, or soon may, share it so that they end
// together.
double Planner::level_s(LegId taker, const Object& object) const {
  struct Share {
    double free_s;
    double rate;
  };
  double all = 0;
  for (const auto& [leg, state] : legs_) all += state.rate(guess_);
  std::vector<Share> shares;
  for (const auto& [leg, state] : legs_) {
    const std::optional<double> wait = leg == taker ? 0 : wait_s(leg, object);
    if (!wait) continue;
    const double rate = state.rate(guess_);
    const auto share = static_cast<uint64_t>(static_cast<double>(pool_bytes_) * rate / all);
    shares.push_back({.free_s = *wait + state.free_in_s(guess_, share), .rate = rate});
  }
  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.free_s < b.free_s; });
  double rates = 0;
  double work = static_cast<double>(pool_bytes_);  // and what would be done before time 0 at these rates
  double level = kForEver;
  for (const Share& share : shares) {
    if (level <= share.free_s) break;
    rates += share.rate;
    work += share.free_s * share.rate;
    level = work / rates;
  }
  return level;
}

}  // namespace sluice::parts
