// The free extents of one direction of one worker: last in, first out, so that the warm one is used
// again; a few are kept back for repairs, which must never wait for new data.
//
// Pure; one owner; allocated once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "dataplane/base/check.h"

namespace sluice::storage {

class ExtentPool {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Manages indices first .. first+count-1; `reserve` of them only for repairs.
  ExtentPool(uint32_t first, uint32_t count, uint32_t reserve)
      : first_(first), count_(count), reserve_(reserve) {
    free_.reserve(count);
    for (uint32_t i = count; i > 0; --i) free_.push_back(first + i - 1);
  }

  // kNone: no extent is free, or only those that are kept for repairs.
  uint32_t take(bool repair) {
    if (free_.size() <= (repair ? 0 : reserve_)) return kNone;
    const uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  void give_back(uint32_t index) {  // which was taken
    CHECK(free_.size() < count_ && index - first_ < count_, "only what was taken comes back");
    DCHECK(std::find(free_.begin(), free_.end(), index) == free_.end(), "and comes back once");
    free_.push_back(index);
  }
  uint32_t free() const { return static_cast<uint32_t>(free_.size()); }

 private:
  uint32_t first_;
  uint32_t count_;
  uint32_t reserve_;
  std::vector<uint32_t> free_;
};

}  // namespace sluice::storage
