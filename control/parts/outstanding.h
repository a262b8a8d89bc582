// What one leg is asked for and has not brought yet, in the order in which it was asked.
//
// Pure. Kept as pieces: runs of extents of one object that were asked together. What arrives out of order
// divides a piece. Invariants: no extent is in two pieces, and a piece is not empty.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "control/parts/words.h"
#include "dataplane/base/number.h"

namespace sluice::parts {

struct Piece {
  ObjectId object;
  ExtentRun run;
  bool copied = false;  // another leg is asked for it, too
};

class Outstanding {
 public:
  bool empty() const { return pieces_.empty(); }
  uint64_t extents() const { return extents_; }
  uint64_t copied_extents() const { return copied_extents_; }
  // None of them is there yet.
  void add(const Piece& piece);
  // The parts of this run that are there, cut to it.
  std::vector<Piece> within(ObjectId object, ExtentRun run) const;
  std::optional<Piece> at(ObjectId object, ExtentId extent) const;
  void remove(ObjectId object, ExtentRun run);
  // Whether another leg is asked for these, too. All of them are there.
  void set_copied(ObjectId object, ExtentRun run, bool copied);
  std::vector<Piece> all() const;  // in order
  // Calls `look` with each piece, the last one first, until it says false.
  void from_the_end(const std::function<bool(const Piece&)>& look) const;
  void clear();
  void check_invariants() const;  // where DCHECKs are on

 private:
  struct Tail {
    ExtentId end;
    uint64_t order = 0;
    bool copied = false;
  };
  struct Turn {
    uint64_t order = 0;
    Place first;

    auto operator<=>(const Turn&) const = default;
  };
  using Pieces = std::map<Place, Tail>;  // by the first extent

  static Piece piece_of(const Pieces::value_type& piece);
  void insert(Place first, const Tail& tail);
  Pieces::iterator erase(Pieces::iterator piece);
  // The first piece, of this object or a later one, that ends beyond this extent.
  Pieces::const_iterator first_beyond(ObjectId object, ExtentId extent) const;

  Pieces pieces_;
  std::set<Turn> turns_;
  uint64_t last_order_ = 0;
  uint64_t extents_ = 0;
  uint64_t copied_extents_ = 0;
};

}  // namespace sluice::parts
