// The sums of an object, joined of those of its extents, which come in any order.
//
// Pure. What is known lies in subtrees, and neighbours that make a larger one are joined at once: of extents
// that come one after the other, few are kept. Memory: an entry for each known extent without a known
// neighbour, and kEntriesMax of them.
//
// Invariants: subtrees do not overlap; none has its sibling beside it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "dataplane/sums/subtree.h"

namespace sluice::sums {

class Tree {
 public:
  static constexpr size_t kEntriesMax = 1U << 18;

  Tree() = default;
  Tree(const Shape& shape, Mask wanted);

  Mask wanted() const { return wanted_; }  // 0: nothing is summed
  const Shape& shape() const { return shape_; }
  // A subtree of the object. What is known already stays as it is; what finds no room is not known.
  void add(const Summed& summed);
  // These bytes are others now, or not there: with them goes what they were joined with.
  void forget(base::Range range);
  // The same of each entry of which this says so.
  template <typename IsGone>
  void forget_if(IsGone is_gone) {
    std::erase_if(known_, [&](const auto& entry) {
      return is_gone(Subtree{.first = entry.first, .height = entry.second.height}.range(shape_));
    });
  }
  // Of the whole object, once all of it is known.
  std::optional<ExtentSums> whole() const;
  size_t entries() const { return known_.size(); }
  void check_invariants() const;  // where DCHECKs are on

 private:
  struct Known {
    uint32_t height = 0;
    ExtentSums sums = {};
  };
  using Map = std::map<uint64_t, Known>;     // by the first leaf
  Map::iterator overlapping(uint64_t leaf);  // the first entry that ends behind this leaf
  void erase(uint64_t first, uint64_t end);

  Shape shape_;
  Mask wanted_ = 0;
  Map known_;
};

}  // namespace sluice::sums
