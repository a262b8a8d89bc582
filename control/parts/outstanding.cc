// SPDX-License-Identifier: Apache-2.0
#include "control/parts/outstanding.h"

#include <algorithm>

#include "dataplane/base/check.h"

namespace sluice::parts {

Piece Outstanding::piece_of(const Pieces::value_type& piece) {
  return {.object = piece.first.object,
          .run = {.first = piece.first.extent, .end = piece.second.end},
          .copied = piece.second.copied};
}

void Outstanding::insert(Place first, const Tail& tail) {
  const uint64_t length = tail.end.value() - first.extent.value();
  pieces_.emplace(first, tail);
  turns_.insert({.order = tail.order, .first = first});
  extents_ += length;
  if (tail.copied) copied_extents_ += length;
}

Outstanding::Pieces::iterator Outstanding::erase(Pieces::iterator piece) {
  const uint64_t length = piece->second.end.value() - piece->first.extent.value();
  turns_.erase({.order = piece->second.order, .first = piece->first});
  extents_ -= length;
  if (piece->second.copied) copied_extents_ -= length;
  return pieces_.erase(piece);
}

Outstanding::Pieces::const_iterator Outstanding::first_beyond(ObjectId object, ExtentId extent) const {
  auto next = pieces_.upper_bound({.object = object, .extent = extent});
  if (next == pieces_.begin()) return next;
  const auto before = std::prev(next);
  return before->first.object == object && before->second.end > extent ? before : next;
}

void Outstanding::add(const Piece& piece) {
  if (piece.run.first >= piece.run.end) return;
  DCHECK(within(piece.object, piece.run).empty(), "an extent is asked of a leg once");
  // A run that goes on where the last one ended is one with it.
  if (!turns_.empty() && !piece.copied) {
    const auto last = pieces_.find(turns_.rbegin()->first);
    if (last->first.object == piece.object && last->second.end == piece.run.first && !last->second.copied) {
      const Place first = last->first;
      const uint64_t order = last->second.order;
      erase(last);
      insert(first, {.end = piece.run.end, .order = order, .copied = false});
      return;
    }
  }
  insert({.object = piece.object, .extent = piece.run.first},
         {.end = piece.run.end, .order = ++last_order_, .copied = piece.copied});
}

std::vector<Piece> Outstanding::within(ObjectId object, ExtentRun run) const {
  std::vector<Piece> found;
  for (auto at = first_beyond(object, run.first);
       at != pieces_.end() && at->first.object == object && at->first.extent < run.end; ++at) {
    Piece piece = piece_of(*at);
    piece.run = {.first = std::max(piece.run.first, run.first), .end = std::min(piece.run.end, run.end)};
    found.push_back(piece);
  }
  return found;
}

std::optional<Piece> Outstanding::at(ObjectId object, ExtentId extent) const {
  const std::vector<Piece> found = within(object, run_of(extent));
  if (found.empty()) return std::nullopt;
  return found.front();
}

void Outstanding::remove(ObjectId object, ExtentRun run) {
  for (const Piece& piece : within(object, run)) {
    const auto at = std::prev(pieces_.upper_bound({.object = object, .extent = piece.run.first}));
    const auto [first, tail] = *at;
    erase(at);
    if (first.extent < piece.run.first) {
      insert(first, {.end = piece.run.first, .order = tail.order, .copied = tail.copied});
    }
    if (piece.run.end < tail.end) insert({.object = object, .extent = piece.run.end}, tail);
  }
}

void Outstanding::set_copied(ObjectId object, ExtentRun run, bool copied) {
  for (const Piece& piece : within(object, run)) {
    if (piece.copied == copied) continue;
    const auto at = std::prev(pieces_.upper_bound({.object = object, .extent = piece.run.first}));
    const uint64_t order = at->second.order;
    remove(object, piece.run);
    insert({.object = object, .extent = piece.run.first},
           {.end = piece.run.end, .order = order, .copied = copied});
  }
}

std::vector<Piece> Outstanding::all() const {
  std::vector<Piece> found;
  for (const Turn& turn : turns_) found.push_back(piece_of(*pieces_.find(turn.first)));
  return found;
}

void Outstanding::from_the_end(const std::function<bool(const Piece&)>& look) const {
  for (auto turn = turns_.rbegin(); turn != turns_.rend(); ++turn) {
    if (!look(piece_of(*pieces_.find(turn->first)))) return;
  }
}

void Outstanding::clear() {
  pieces_.clear();
  turns_.clear();
  extents_ = 0;
  copied_extents_ = 0;
}

void Outstanding::check_invariants() const {
  if (!base::dchecks_enabled) return;
  uint64_t sum = 0;
  uint64_t copied = 0;
  std::optional<Piece> before;
  for (const auto& piece : pieces_) {
    const Piece here = piece_of(piece);
    DCHECK(here.run.first < here.run.end, "no piece is empty");
    DCHECK(!before || before->object != here.object || before->run.end <= here.run.first,
           "no extent is asked of a leg twice");
    DCHECK(turns_.contains({.order = piece.second.order, .first = piece.first}), "each piece has a turn");
    sum += here.run.end.value() - here.run.first.value();
    if (here.copied) copied += here.run.end.value() - here.run.first.value();
    before = here;
  }
  DCHECK(turns_.size() == pieces_.size(), "each turn has a piece");
  DCHECK(sum == extents_ && copied == copied_extents_, "the lengths add up");
}

}  // namespace sluice::parts
