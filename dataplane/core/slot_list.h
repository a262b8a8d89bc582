// Some slots of a pool, in no order: what a flow has of the extents that all flows share.
//
// Pure; one owner. Nothing is allocated once it is made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/check.h"

namespace sluice {

class SlotList {
 public:
  explicit SlotList(uint32_t slots) : place_(slots, kNowhere) { items_.reserve(slots); }

  void insert(uint32_t slot) {
    DCHECK(place_[slot] == kNowhere, "a slot is in the list once");
    place_[slot] = size();
    items_.push_back(slot);
  }
  void erase(uint32_t slot) {
    const uint32_t place = place_[slot];
    DCHECK(place != kNowhere, "what is taken out is in the list");
    place_[slot] = kNowhere;
    const uint32_t last = items_.back();
    items_.pop_back();
    if (last == slot) return;
    items_[place] = last;
    place_[last] = place;
  }
  uint32_t size() const { return static_cast<uint32_t>(items_.size()); }
  bool empty() const { return items_.empty(); }
  uint32_t at(uint32_t i) const { return items_[i]; }  // i < size()

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;

  std::vector<uint32_t> items_;
  std::vector<uint32_t> place_;  // in items_
};

}  // namespace sluice
