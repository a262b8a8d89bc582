// What has happened: who is there, what came, and where each extent that is not there belongs.
// SPDX-License-Identifier: Apache-2.0
#include "control/parts/planner.h"

#include <algorithm>
#include <utility>

namespace sluice::parts {
namespace {

// Joins the last range if it goes on there.
void append(std::vector<Range>& ranges, Range range) {
  if (!ranges.empty() && ranges.back().end() == range.offset) {
    ranges.back().length += range.length;
  } else {
    ranges.push_back(range);
  }
}

}  // namespace

void Planner::add(ObjectId object, uint64_t size_bytes, Kind kind) {
  if (!objects_.contains(object)) objects_.resize(object.value() + 1);
  Object& added = objects_[object];
  if (added.added) return;
  added.added = true;
  added.kind = kind;
  added.there = ExtentMap({.size_bytes = size_bytes, .extent_bytes = options_.extent_bytes});
  missing_bytes_ += size_bytes;
  put(object, all_of(added));
}

void Planner::holds(ObjectId id, const std::vector<Range>& ranges) {
  if (!exists(id)) return;
  Object& object = objects_[id];
  for (const Range& range : ranges) {
    const ExtentRun run = object.there.whole_in(range);
    if (run.first < run.end) count_as_there(id, run, std::nullopt);
  }
  object.begun = object.begun || object.there.set_extents() != 0;
  list(id);
}

void Planner::remove(ObjectId id) {
  if (!exists(id)) return;
  Object& object = objects_[id];
  withdraw_from_all(id, all_of(object), std::nullopt);
  pull(id, all_of(object));
  missing_bytes_ -= object.there.size_bytes() - object.there.set_bytes();
  object = Object();
}

void Planner::join(LegId leg, const LegFacts& facts, uint64_t now_ns) {
  if (here(leg)) return;
  now_ns_ = std::max(now_ns_, now_ns);
  LegFacts& known = legs_[leg].facts;
  known = facts;
  known.lanes = std::max(facts.lanes, 1U);
  if (known.expected_rate_bps == 0) known.expected_rate_bps = rates_when_left_[leg];
  ++changes_;
}

void Planner::leave(LegId leg) {
  if (!here(leg)) return;
  return_all(leg, false);
  if (legs_[leg].goodput.known()) rates_when_left_[leg] = rate_bps(leg);
  legs_.erase(leg);
  for (ObjectId id; id < objects_.end_id(); ++id) {
    if (objects_[id].first == leg) refresh(id);
  }
  std::erase_if(actions_.wants, [leg](const Want& want) { return want.portion.leg == leg; });
  ++changes_;
}

void Planner::open_to(LegId leg, ObjectId object) {
  if (!exists(object)) return;
  std::vector<LegId>& open = objects_[object].open;
  if (!is_among(open, leg)) open.push_back(leg);
  std::erase(objects_[object].closed, leg);
  ++changes_;
}

void Planner::close_to(LegId leg, ObjectId id) {
  if (!exists(id)) return;
  Object& object = objects_[id];
  if (is_among(object.closed, leg)) return;
  object.closed.push_back(leg);
  if (!object.compared_ns) object.compared_ns = now_ns_;  // nobody is to compare it any more
  std::erase(object.open, leg);
  if (here(leg)) {
    for (const Piece& piece : legs_[leg].outstanding.within(id, all_of(object)))
      return_piece(leg, piece, true);
  }
  if (object.first == leg) refresh(id);
  if (object.first == leg) object.first.reset();
  ++changes_;
}

void Planner::refresh(ObjectId id) {
  Object& object = objects_[id];
  if (object.pool.extents() != object.there.extents()) return;
  object.first.reset();
  object.begun = false;
  list(id);
}

bool Planner::may(LegId leg, const Object& object) const {
  if (is_among(object.closed, leg)) return false;
  if (!object.begun || object.first == leg) return true;
  // Another leg may begin a whole object anew.
  if (object.kind == Kind::kWhole) return !object.first || away(*object.first);
  return is_among(object.open, leg);
}

bool Planner::away(LegId leg) const { return !here(leg) || silent(leg); }

bool Planner::arrived(LegId leg, ObjectId id, ExtentId extent, uint64_t now_ns) {
  now_ns_ = std::max(now_ns_, now_ns);
  if (!here(leg) || !exists(id) || extent >= objects_[id].there.end_id()) return false;
  LegState& state = legs_[leg];
  Object& object = objects_[id];
  const ExtentRun run = run_of(extent);
  // Another leg may have begun a whole object anew meanwhile. If it has one extent, all of it came from this
  // leg.
  const bool all = object.kind == Kind::kWhole && object.there.extents() == 1;
  const bool counts = !object.there.is_set(extent) &&
                      (all ? !is_among(object.closed, leg)
                           : may(leg, object) && (object.kind == Kind::kDivisible || object.first == leg));
  const uint64_t bytes = object.there.range_of(extent).length;
  state.received -= std::min(state.received, bytes);
  state.unconfirmed_ns = 0;
  state.quiet_ns = 0;
  if (state.phase != LegState::Phase::kActive) {
    state.phase = LegState::Phase::kActive;
    state.trial_wait_ns = 0;
    ++changes_;
  }
  if (!counts) return false;
  object.begun = true;
  if (all) object.first = leg;
  count_as_there(id, run, leg);
  return true;
}

void Planner::forgotten(ObjectId id, ExtentRun extents) {
  if (!exists(id)) return;
  Object& object = objects_[id];
  const ExtentRun run{.first = extents.first, .end = std::min(extents.end, object.there.end_id())};
  if (run.first >= run.end) return;
  withdraw_from_all(id, run, std::nullopt);
  missing_bytes_ += object.there.clear(run);
  object.begun = true;
  put(id, run);
}

void Planner::received(LegId leg, uint64_t bytes, uint64_t now_ns) {
  now_ns_ = std::max(now_ns_, now_ns);
  if (!here(leg) || bytes == 0) return;
  LegState& state = legs_[leg];
  state.goodput.add(bytes);
  state.received = std::min(state.received + bytes, state.bytes);
  state.quiet_ns = 0;
  if (state.phase == LegState::Phase::kSilent) state.trial_at_ns = std::min(state.trial_at_ns, now_ns);
}

void Planner::put(ObjectId id, ExtentRun run) {
  Object& object = objects_[id];
  for (const ExtentRun& missing : object.there.missing(run)) {
    const uint64_t before = object.pool.extents();
    // What is in the pool already is not counted twice.
    for (const ExtentRun& known : object.pool.within(missing))
      pool_bytes_ -= object.there.bytes_of(known).length;
    object.pool.add(missing);
    pool_bytes_ += object.there.bytes_of(missing).length;
    if (object.pool.extents() != before) ++changes_;
  }
  list(id);
}

void Planner::pull(ObjectId id, ExtentRun run) {
  Object& object = objects_[id];
  for (const ExtentRun& known : object.pool.within(run)) pool_bytes_ -= object.there.bytes_of(known).length;
  object.pool.remove(run);
  list(id);
}

void Planner::list(ObjectId id) {
  const Object& object = objects_[id];
  const bool some = !object.pool.empty();
  if (some && !object.begun) {
    fresh_.insert(id);
  } else {
    fresh_.erase(id);
  }
  if (some && object.begun) {
    begun_.insert(id);
  } else {
    begun_.erase(id);
  }
}

void Planner::note(LegId leg, ObjectId object, ExtentRun run, bool withdrawn) {
  const Range range = objects_[object].there.bytes_of(run);
  // Behind the last word to this leg, if it is of the same kind.
  for (auto want = actions_.wants.rbegin(); want != actions_.wants.rend(); ++want) {
    if (want->portion.leg != leg) continue;
    if (want->withdrawn != withdrawn || want->portion.object != object) break;
    if (want->portion.ranges.size() == kRangesMax) break;
    append(want->portion.ranges, range);
    return;
  }
  actions_.wants.push_back(
      {.portion = {.leg = leg, .object = object, .ranges = {range}}, .withdrawn = withdrawn});
}

void Planner::give(LegId leg, ObjectId id, ExtentRun run, bool copied) {
  LegState& state = legs_[leg];
  Object& object = objects_[id];
  if (!copied) pull(id, run);
  if (!object.begun) {
    object.begun = true;
    object.first = leg;
    list(id);
  }
  if (state.remaining() == 0) state.goodput.begin(now_ns_, state.facts.rtt_ns);
  if (state.outstanding.empty()) {
    state.quiet_ns = 0;
    state.unconfirmed_ns = 0;
  }
  state.outstanding.add({.object = id, .run = run, .copied = copied});
  state.bytes += object.there.bytes_of(run).length;
  state.next = Place{.object = id, .extent = run.end};
  note(leg, id, run, false);
}

void Planner::take_back(LegId leg, const Piece& piece, bool withdraw) {
  LegState& state = legs_[leg];
  const uint64_t bytes = objects_[piece.object].there.bytes_of(piece.run).length;
  // An extent that was copied was begun: its part of what has come does not count any more.
  if (withdraw && piece.copied) {
    state.received -=
        static_cast<uint64_t>(static_cast<double>(state.received) / static_cast<double>(state.bytes) *
                              static_cast<double>(std::min(bytes, state.received)));
  }
  state.outstanding.remove(piece.object, piece.run);
  state.bytes -= bytes;
  state.received = std::min(state.received, state.bytes);
  if (state.outstanding.empty()) state.goodput.end();
  if (withdraw) note(leg, piece.object, piece.run, true);
}

void Planner::return_piece(LegId leg, const Piece& piece, bool withdraw) {
  take_back(leg, piece, withdraw);
  if (!piece.copied) return put(piece.object, piece.run);
  // The other leg goes on with it alone.
  for (auto& [other, state] : legs_) {
    for (const Piece& copy : state.outstanding.within(piece.object, piece.run)) {
      state.outstanding.set_copied(copy.object, copy.run, false);
    }
  }
}

void Planner::return_all(LegId leg, bool withdraw) {
  for (const Piece& piece : legs_[leg].outstanding.all()) return_piece(leg, piece, withdraw);
  legs_[leg].received = 0;
}

void Planner::withdraw_from_all(ObjectId id, ExtentRun run, std::optional<LegId> except) {
  for (auto& [leg, state] : legs_) {
    for (const Piece& piece : state.outstanding.within(id, run)) take_back(leg, piece, leg != except);
  }
}

void Planner::count_as_there(ObjectId id, ExtentRun run, std::optional<LegId> from) {
  withdraw_from_all(id, run, from);
  pull(id, run);
  missing_bytes_ -= objects_[id].there.set(run);
}

void Planner::begin_anew(ObjectId id) {
  Object& object = objects_[id];
  if (object.there.set_extents() != 0) actions_.begin_anew.push_back(id);
  withdraw_from_all(id, all_of(object), std::nullopt);
  missing_bytes_ += object.there.clear(all_of(object));
  put(id, all_of(object));
}

void Planner::compare(ObjectId id) {
  Object& object = objects_[id];
  if (object.compared_ns || object.kind == Kind::kWhole) return;
  object.compared_ns = now_ns_;
  actions_.compare.push_back(id);
}

Planner::Actions Planner::take_actions() { return std::exchange(actions_, {}); }

std::vector<Portion> Planner::outstanding(LegId leg) const {
  std::vector<Portion> portions;
  if (!here(leg)) return portions;
  for (const Piece& piece : legs_.at(leg).outstanding.all()) {
    if (portions.empty() || portions.back().object != piece.object ||
        portions.back().ranges.size() == kRangesMax) {
      portions.push_back({.leg = leg, .object = piece.object, .ranges = {}});
    }
    append(portions.back().ranges, objects_[piece.object].there.bytes_of(piece.run));
  }
  return portions;
}

uint64_t Planner::outstanding_bytes(LegId leg) const { return here(leg) ? legs_.at(leg).bytes : 0; }

uint64_t Planner::rate_bps(LegId leg) const {
  if (!here(leg)) return 0;
  const LegState& state = legs_.at(leg);
  if (!state.goodput.measured()) return state.facts.expected_rate_bps;
  return static_cast<uint64_t>(state.goodput.rate() * 8);
}

bool Planner::silent(LegId leg) const { return here(leg) && legs_.at(leg).phase != LegState::Phase::kActive; }

bool Planner::all_asked(ObjectId object) const { return exists(object) && objects_[object].pool.empty(); }

bool Planner::brings(LegId leg, ObjectId id) const {
  return here(leg) && exists(id) && !legs_.at(leg).outstanding.within(id, all_of(objects_[id])).empty();
}

std::vector<ExtentRun> Planner::asked_within(LegId leg, ObjectId id, ExtentRun run) const {
  std::vector<ExtentRun> runs;
  if (!here(leg)) return runs;
  for (const Piece& piece : legs_.at(leg).outstanding.within(id, run)) runs.push_back(piece.run);
  return runs;
}

ExtentId Planner::last_asked(LegId leg, ObjectId id) const {
  ExtentId last;
  for (const Piece& piece : legs_.at(leg).outstanding.within(id, all_of(objects_[id])))
    last = std::max(last, ExtentId(piece.run.end.value() - 1));
  return last;
}

bool Planner::complete(ObjectId object) const { return exists(object) && objects_[object].there.complete(); }

}  // namespace sluice::parts
