// How a link's thread keeps the workers out of a device while its memory changes under them.
//
// A worker passes the gate at every burst: one load of a line that is almost never written. The link's
// thread closes it and waits until each running worker has been seen at the closed gate; a worker is then
// outside the device and stays so until the gate opens. No lock, no fence in the worker's path.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace sluice::memif {

class Gate {
 public:
  enum class State : uint32_t {
    kOpen = 0,
    kPaused = 1,   // for a moment: keep what is to be sent
    kOffline = 2,  // no peer: drop what is to be sent
  };

  // Worker. Anything but kOpen: do not touch the device.
  State pass() {
    const uint32_t wanted = wanted_.load(std::memory_order_acquire);
    const auto state = static_cast<State>(wanted & kStateMask);
    if (state != State::kOpen) [[unlikely]] {
      seen_.store(wanted, std::memory_order_release);
    }
    return state;
  }

  // Worker: the same question without an answer to the link's thread, which goes on waiting.
  State state() const { return static_cast<State>(wanted_.load(std::memory_order_acquire) & kStateMask); }

  // Around the worker's life; by the launching thread before, by the worker after.
  void worker_begins() { running_.store(true); }
  void worker_ends() { running_.store(false); }

  // Link's thread only.
  void open() { wanted_.store(next(State::kOpen), std::memory_order_release); }
  // Returns when no worker is inside the device; `state` is not kOpen. The wait ends with the worker's
  // next burst, or its end.
  void close(State state) {
    const uint32_t wanted = next(state);
    wanted_.store(wanted);
    while (running_.load() && seen_.load(std::memory_order_acquire) != wanted) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

 private:
  static constexpr uint32_t kStateMask = 3;
  uint32_t next(State state) {
    epoch_ += kStateMask + 1;
    return epoch_ | static_cast<uint32_t>(state);
  }

  uint32_t epoch_ = 0;
  alignas(64) std::atomic<uint32_t> wanted_{0};
  alignas(64) std::atomic<uint32_t> seen_{0};
  std::atomic<bool> running_{false};
};

}  // namespace sluice::memif
