// How the extents of an object lie in the tree of its sums.
//
// Pure. The leaves are the extents, each a power of two long but the last one. A subtree of height h begins
// at a multiple of 2^h leaves and has as many, or all that are left. So a leaf that has no neighbour on its
// right is its own parent. That is the tree of BLAKE3: left of each node lies the longest part that is a
// power of two.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "dataplane/base/check.h"
#include "dataplane/base/range.h"
#include "dataplane/sums/summer.h"

namespace sluice::sums {

struct Shape {
  uint64_t size_bytes = 0;
  uint32_t extent_bytes = 1;  // a power of two

  uint64_t leaves() const { return size_bytes / extent_bytes + (size_bytes % extent_bytes != 0 ? 1 : 0); }
  uint64_t end_of(uint64_t leaf) const {  // in bytes, of the leaves before this one
    return leaf >= leaves() ? size_bytes : leaf * extent_bytes;
  }
  uint32_t height() const { return leaves() <= 1 ? 0 : std::bit_width(leaves() - 1); }  // of the whole
};

struct Subtree {
  uint64_t first = 0;  // leaf
  uint32_t height = 0;

  uint64_t end() const { return first + (uint64_t{1} << height); }  // past the last leaf of the object, too
  base::Range range(const Shape& shape) const {
    const uint64_t from = first * shape.extent_bytes;
    return {.offset = from, .length = shape.end_of(end()) - from};
  }
  bool is_whole(const Shape& shape) const { return first == 0 && end() >= shape.leaves(); }
  bool operator==(const Subtree&) const = default;
};

// What a subtree came to.
struct Summed {
  Subtree subtree;
  ExtentSums sums = {};
};

// The largest subtree that begins with this leaf, and has none from `end` on.
inline Subtree largest_subtree(const Shape& shape, uint64_t first, uint64_t end) {
  DCHECK(first < end && end <= shape.leaves(), "leaves of the object");
  const auto fits = [&](uint32_t height) {
    const Subtree tree{.first = first, .height = height};
    return first % (uint64_t{1} << height) == 0 && std::min(tree.end(), shape.leaves()) <= end;
  };
  uint32_t height = 0;
  while (height < shape.height() && fits(height + 1)) ++height;
  return {.first = first, .height = height};
}

// Whole extents in as few subtrees as there can be, from the first to the last.
inline std::vector<Subtree> subtrees_of(const Shape& shape, base::Range extents) {
  std::vector<Subtree> all;
  const uint64_t end =
      extents.end() >= shape.size_bytes ? shape.leaves() : extents.end() / shape.extent_bytes;
  for (uint64_t at = extents.offset / shape.extent_bytes; at < end;) {
    all.push_back(largest_subtree(shape, at, end));
    at = all.back().end();
  }
  return all;
}

}  // namespace sluice::sums
