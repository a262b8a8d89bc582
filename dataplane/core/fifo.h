// A bounded queue of one owner, allocated once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <memory>

namespace sluice {

template <typename T>
class Fifo {
 public:
  explicit Fifo(uint32_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? 2U : capacity) - 1), items_(std::make_unique<T[]>(mask_ + 1)) {}

  bool push(const T& item) {
    if (head_ - tail_ > mask_) return false;
    items_[head_++ & mask_] = item;
    return true;
  }
  bool empty() const { return head_ == tail_; }
  bool full() const { return head_ - tail_ > mask_; }
  uint32_t size() const { return head_ - tail_; }
  T& front() { return items_[tail_ & mask_]; }
  T& at(uint32_t i) { return items_[(tail_ + i) & mask_]; }  // i < size(), 0 is the front
  void pop() { ++tail_; }
  void clear() { tail_ = head_; }

 private:
  uint32_t mask_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  std::unique_ptr<T[]> items_;
};

}  // namespace sluice
