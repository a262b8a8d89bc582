// The sums of whole extents that are read one after the other, as subtrees.
//
// Any thread, one at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "dataplane/sums/subtree.h"

namespace sluice::sums {

class RangeSummer {
 public:
  RangeSummer(const Shape& shape, Mask wanted, base::Range extents) : shape_(shape), wanted_(wanted) {
    for (const Subtree& subtree : subtrees_of(shape, extents)) summed_.push_back({.subtree = subtree});
    begin();
  }

  void add(const uint8_t* data, uint64_t bytes) {
    in_pieces(bytes, [&](uint64_t some) {
      summer_.add(data, some);
      data += some;
    });
  }
  void add_zeros(uint64_t bytes) {
    in_pieces(bytes, [&](uint64_t some) { summer_.add_zeros(some); });
  }
  // Once all bytes were added; else those that are whole.
  std::vector<Summed> take() {
    summed_.resize(at_);
    return std::move(summed_);
  }

 private:
  void begin() {
    if (at_ == summed_.size()) return;
    const Subtree& subtree = summed_[at_].subtree;
    left_ = subtree.range(shape_).length;
    summer_.begin(wanted_, subtree.range(shape_).offset, subtree.is_whole(shape_));
  }
  template <typename Add>
  void in_pieces(uint64_t bytes, Add add_some) {
    while (bytes != 0 && at_ != summed_.size()) {
      const uint64_t some = std::min(bytes, left_);
      add_some(some);
      bytes -= some;
      left_ -= some;
      if (left_ != 0) continue;
      summed_[at_++].sums = summer_.value();
      begin();
    }
  }

  const Shape shape_;
  const Mask wanted_;
  std::vector<Summed> summed_;
  size_t at_ = 0;
  uint64_t left_ = 0;
  Summer summer_;
};

}  // namespace sluice::sums
