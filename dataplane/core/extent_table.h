// From (session, object, extent number) to a small index: open addressing, fixed size, no allocation.
//
// Pure; one owner. Holds at most `capacity` keys; linear probing with backward-shift deletion keeps
// look-ups at a few slots however long it lives.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "dataplane/base/check.h"

namespace sluice {

struct ExtentKey {
  uint32_t session = 0;
  uint32_t object = 0;
  uint64_t number = 0;
  bool operator==(const ExtentKey&) const = default;
};

class ExtentTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit ExtentTable(uint32_t capacity)
      : mask_(std::bit_ceil(2 * capacity + 2) - 1), capacity_(capacity), slots_(mask_ + 1) {}

  uint32_t find(const ExtentKey& key) const {
    for (uint32_t i = home(key);; i = (i + 1) & mask_) {
      if (slots_[i].value == kNone) return kNone;
      if (slots_[i].key == key) return slots_[i].value;
    }
  }
  // The key is not present, and there are less than `capacity`.
  void insert(const ExtentKey& key, uint32_t value) {
    CHECK(size_ < capacity_, "the table has room for every extent of its owner");
    DCHECK(find(key) == kNone, "an extent is in the table once");
    uint32_t i = home(key);
    while (slots_[i].value != kNone) i = (i + 1) & mask_;
    slots_[i] = {key, value};
    ++size_;
  }
  void erase(const ExtentKey& key) {  // which is present
    uint32_t i = home(key);
    while (slots_[i].value != kNone && !(slots_[i].key == key)) i = (i + 1) & mask_;
    CHECK(slots_[i].value != kNone, "what leaves the table is in it");
    --size_;
    for (uint32_t j = (i + 1) & mask_; slots_[j].value != kNone; j = (j + 1) & mask_) {
      // An entry may move back to the hole if the hole lies between its home and where it stands.
      if (((j - home(slots_[j].key)) & mask_) >= ((j - i) & mask_)) {
        slots_[i] = slots_[j];
        i = j;
      }
    }
    slots_[i].value = kNone;
  }
  uint32_t size() const { return size_; }

 private:
  struct Slot {
    ExtentKey key;
    uint32_t value = kNone;
  };
  uint32_t home(const ExtentKey& key) const {
    const uint64_t mixed = (key.number + (static_cast<uint64_t>(key.object) << 40) + key.session * 0x9E37U) *
                           0x9E3779B97F4A7C15ULL;
    return static_cast<uint32_t>(mixed >> 32) & mask_;
  }

  uint32_t mask_;
  uint32_t capacity_;
  uint32_t size_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace sluice
