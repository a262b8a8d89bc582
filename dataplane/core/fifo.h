// A bounded queue of one owner, allocated once; a page of it costs nothing before it is used.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

#include "dataplane/base/check.h"

namespace sluice {

template <typename T>
class Fifo {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  explicit Fifo(uint32_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? 2U : capacity) - 1),
        places_(std::make_unique_for_overwrite<Place[]>(mask_ + 1)) {}

  // False when full.
  bool push(const T& item) {
    if (full()) return false;
    ::new (places_[head_++ & mask_].bytes) T(item);
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
    return *std::launder(reinterpret_cast<T*>(places_[(tail_ + i) & mask_].bytes));
  }
  void pop() {
    DCHECK(!empty(), "only what is in the queue is taken out");
    ++tail_;
  }
  void clear() { tail_ = head_; }

 private:
  struct alignas(T) Place {
    std::byte bytes[sizeof(T)];
  };

  uint32_t mask_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  std::unique_ptr<Place[]> places_;
};

}  // namespace sluice
