// The pool has nothing for a leg: what it takes from slower ones, and what is asked for twice.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/parts/planner.h"

namespace sluice::parts {

void Planner::help(LegId leg) {
  const LegState& state = legs_[leg];
  const double refill_s = static_cast<double>(gap_ns_) * 1e-9;
  if (missing_bytes_ == 0 || state.needs_s(guess_) > state.rtt_s() + refill_s) return;
  const double mine = state.rate(guess_);
  const std::vector<LegId> victims = slowest_first(leg);
  for (const LegId victim : victims) {
    const LegState& its = legs_[victim];
    const double theirs = its.rate(guess_);
    const double late_s = its.needs_s(guess_) - state.free_in_s(guess_, options_.extent_bytes);
    const double bytes = late_s * mine * theirs / (mine + theirs);
    if (bytes >= options_.extent_bytes && steal(leg, victim, static_cast<uint64_t>(bytes))) return;
  }
  for (const LegId victim : victims) {
    const LegState& its = legs_[victim];
    const double times = state.rate_known() && its.rate_known() ? 2 : 1;
    // It works on what is not copied first. Each copy lets this leg be later with the next one.
    const auto late = [&] {
      const uint64_t copied = its.outstanding.copied_extents() * options_.extent_bytes;
      const double needs_s =
          static_cast<double>(its.remaining() - std::min(its.remaining(), copied)) / its.rate(guess_);
      return needs_s > times * state.done_in_s(guess_, options_.extent_bytes);
    };
    while (late() && copy(leg, victim)) {
    }
  }
}

std::vector<LegId> Planner::slowest_first(LegId except) const {
  std::vector<LegId> legs;
  for (const auto& [leg, state] : legs_) {
    if (leg != except && !state.outstanding.empty()) legs.push_back(leg);
  }
  std::stable_sort(legs.begin(), legs.end(), [this](LegId a, LegId b) {
    return legs_.at(a).needs_s(guess_) > legs_.at(b).needs_s(guess_);
  });
  return legs;
}

// Takes at most so many bytes from the end of what the victim has not begun.
bool Planner::steal(LegId leg, LegId victim, uint64_t bytes) {
  const LegState& its = legs_[victim];
  const uint64_t begun = its.begun_bytes(guess_, options_.extent_bytes);
  if (its.bytes <= begun) return false;
  uint64_t left = std::min(bytes, its.bytes - begun);
  std::vector<Piece> loot;
  its.outstanding.from_the_end([&](const Piece& piece) {
    const Object& object = objects_[piece.object];
    const uint64_t piece_bytes = object.there.bytes_of(piece.run).length;
    if (piece.copied) return true;
    if (object.kind == Kind::kWhole) {
      // All of it or nothing; and not by whoever has another version of it.
      if (piece_bytes == object.there.size_bytes() && piece_bytes <= left && !closed(leg, piece.object)) {
        loot.push_back(piece);
        left -= piece_bytes;
      }
      return left >= options_.extent_bytes;
    }
    if (!may(leg, object)) {
      compare(piece.object);
      return true;
    }
    const uint64_t extents =
        std::min(left / options_.extent_bytes, piece.run.end.value() - piece.run.first.value());
    if (extents == 0) return false;
    Piece part = piece;
    part.run.first = ExtentId(piece.run.end.value() - extents);
    loot.push_back(part);
    left -= std::min(left, extents * options_.extent_bytes);
    return left >= options_.extent_bytes;
  });
  std::reverse(loot.begin(), loot.end());
  for (const Piece& piece : loot) {
    Object& object = objects_[piece.object];
    take_back(victim, piece, true);
    if (object.kind == Kind::kWhole) object.first = leg;
    stolen_bytes_ += object.there.bytes_of(piece.run).length;
    put(piece.object, piece.run);
    give(leg, piece.object, piece.run, false);
  }
  return !loot.empty();
}

// Asks for one extent that the victim has begun: the last one that nobody else is asked for.
bool Planner::copy(LegId leg, LegId victim) {
  std::optional<Piece> found;
  legs_[victim].outstanding.from_the_end([&](const Piece& piece) {
    const Object& object = objects_[piece.object];
    if (piece.copied || object.kind == Kind::kWhole) return true;
    if (!may(leg, object)) {
      compare(piece.object);
      return true;
    }
    found = piece;
    return false;
  });
  if (!found) return false;
  const ExtentRun run{.first = ExtentId(found->run.end.value() - 1), .end = found->run.end};
  legs_[victim].outstanding.set_copied(found->object, run, true);
  copied_bytes_ += objects_[found->object].there.bytes_of(run).length;
  give(leg, found->object, run, true);
  return true;
}

}  // namespace sluice::parts
