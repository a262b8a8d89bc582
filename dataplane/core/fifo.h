// A bounded queue of one owner, allocated once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <memory>

#include "dataplane/base/check.h"

namespace sluice {

template <typename T>
class Fifo {
 public:
  explicit Fifo(uint32_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? 2U : capacity) - 1), items_(std::make_unique<T[]>(mask_ + 1)) {}

  // False when full.
  bool push(const T& item) {
    if (full()) return false;
    items_[head_++ & mask_] = item;
    return true;
  }
  // Where the owner's own account says that there is room.
  void must_push(const T& item) {
    const bool pushed = push(item);
    CHECK(pushed, "the owner counts what it puts here, and there was room");
  }
  bool empty() const { return head_ == tail_; }
  bool full() const { return head_ - tail_ > mask_; }
  uint32_t size() const { return head_ - tail_; }
  T& front() { return at(0); }
  T& at(uint32_t i) {  // i < size(), 0 is the front
    DCHECK(i < size(), "only what is in the queue is looked at");
    return items_[(tail_ + i) & mask_];
  }
  void pop() {
    DCHECK(!empty(), "only what is in the queue is taken out");
    ++tail_;
  }
  void clear() { tail_ = head_; }

 private:
  uint32_t mask_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  std::unique_ptr<T[]> items_;
};

}  // namespace sluice
