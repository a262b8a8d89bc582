// SPDX-License-Identifier: Apache-2.0
#include "dataplane/sums/tree.h"

#include <iterator>

#include "dataplane/base/check.h"

namespace sluice::sums {

Tree::Tree(const Shape& shape, Mask wanted) : shape_(shape), wanted_(wanted) {
  DCHECK((wanted & ~available()) == 0, "whoever asks for a sum has looked whether there is one");
}

Tree::Map::iterator Tree::overlapping(uint64_t leaf) {
  const auto after = known_.upper_bound(leaf);
  if (after == known_.begin()) return after;
  const auto before = std::prev(after);
  return Subtree{.first = before->first, .height = before->second.height}.end() > leaf ? before : after;
}

void Tree::erase(uint64_t first, uint64_t end) {
  for (auto at = overlapping(first); at != known_.end() && at->first < end;) at = known_.erase(at);
}

void Tree::add(const Summed& summed) {
  Subtree tree = summed.subtree;
  if (tree.first >= shape_.leaves() || tree.first % (uint64_t{1} << tree.height) != 0) return;
  const auto there = overlapping(tree.first);
  if (there != known_.end() && there->first <= tree.first && there->second.height >= tree.height) return;
  erase(tree.first, tree.end());
  if (known_.size() >= kEntriesMax) return;
  ExtentSums sums = summed.sums;
  while (!tree.is_whole(shape_)) {
    const Subtree parent{.first = tree.first & ~(uint64_t{1} << tree.height), .height = tree.height + 1};
    const bool is_left = parent.first == tree.first;
    const uint64_t right = parent.first + (uint64_t{1} << tree.height);
    if (right < shape_.leaves()) {
      const auto sibling = known_.find(is_left ? right : parent.first);
      if (sibling == known_.end() || sibling->second.height != tree.height) break;
      const ExtentSums other = sibling->second.sums;
      known_.erase(sibling);
      const uint64_t right_bytes = Subtree{.first = right, .height = tree.height}.range(shape_).length;
      sums =
          join(wanted_, is_left ? sums : other, is_left ? other : sums, right_bytes, parent.is_whole(shape_));
    }
    tree = parent;
  }
  known_.emplace(tree.first, Known{.height = tree.height, .sums = sums});
}

void Tree::forget(base::Range range) {
  if (known_.empty() || range.length == 0 || range.offset >= shape_.size_bytes) return;
  erase(range.offset / shape_.extent_bytes, (range.end() - 1) / shape_.extent_bytes + 1);
}

std::optional<ExtentSums> Tree::whole() const {
  if (shape_.size_bytes == 0) {
    Summer nothing;
    nothing.begin(wanted_, 0, true);
    return nothing.value();
  }
  if (known_.size() != 1) return std::nullopt;
  const auto& [first, known] = *known_.begin();
  const bool all = Subtree{.first = first, .height = known.height}.is_whole(shape_);
  return all ? std::optional(known.sums) : std::nullopt;
}

void Tree::check_invariants() const {
  uint64_t end = 0;
  for (const auto& [first, known] : known_) {
    DCHECK(first >= end && first < shape_.leaves(), "subtrees do not overlap, and are of the object");
    DCHECK(first % (uint64_t{1} << known.height) == 0, "a subtree begins at a multiple of its length");
    end = Subtree{.first = first, .height = known.height}.end();
  }
}

}  // namespace sluice::sums
