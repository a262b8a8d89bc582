// A bounded ring between one producer and one consumer, placed in shared memory.
//
// The other side may be another, faulty process: indices read from it are taken modulo the size and
// the distance is bounded, so that no value there can lead outside the array.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <type_traits>

namespace sluice::board {

template <typename T, uint32_t kSlots>
class SpscRing {
  static_assert((kSlots & (kSlots - 1)) == 0, "a power of two");
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Producer. False when full.
  bool push(const T& item) {
    const uint32_t head = head_.load(std::memory_order_relaxed);
    if (head - tail_.load(std::memory_order_acquire) >= kSlots) return false;
    slots_[head % kSlots] = item;
    head_.store(head + 1, std::memory_order_release);
    return true;
  }
  // Producer: slots that can still be pushed.
  uint32_t room() const {
    const uint32_t used = head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_acquire);
    return used >= kSlots ? 0 : kSlots - used;
  }
  // Consumer. False when empty.
  bool pop(T* item) {
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (head_.load(std::memory_order_acquire) == tail) return false;
    *item = slots_[tail % kSlots];
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  bool empty() const {
    return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_relaxed);
  }
  // Consumer. Sleeps while the ring is empty, for so long at most: until the producer rings, or a signal
  // comes.
  void wait(uint64_t ns) {
    const timespec most{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    futex(FUTEX_WAIT, tail_.load(std::memory_order_relaxed), &most);
  }
  // Producer, after a push: ends the consumer's wait.
  void ring() { futex(FUTEX_WAKE, 1, nullptr); }
  // Either side, only while the other is known not to run (attach, flow open).
  void reset() {
    head_.store(0, std::memory_order_relaxed);
    tail_.store(0, std::memory_order_release);
  }

 private:
  // On what the producer counts: the kernel looks whether it has moved meanwhile.
  void futex(int operation, uint32_t value, const timespec* most) {
    static_assert(sizeof head_ == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
    ::syscall(SYS_futex, &head_, operation, value, most, nullptr, 0);
  }

  alignas(64) std::atomic<uint32_t> head_{0};
  alignas(64) std::atomic<uint32_t> tail_{0};
  alignas(64) T slots_[kSlots];
};

}  // namespace sluice::board
