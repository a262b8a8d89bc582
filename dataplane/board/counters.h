// The writing side of one worker's counters on the board.
//
// One writer, so plain loads and stores: no locked instruction. A view; copy it freely.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/board/board.h"

namespace sluice::board {

class CounterWriter {
 public:
  explicit CounterWriter(WorkerSlot& slot) : counters_(slot.counters) {}

  void add(Counter counter, uint64_t n = 1) const {
    auto& c = counters_[static_cast<uint32_t>(counter)];
    c.store(c.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  // Of a level: the most that was seen.
  void raise_to(Counter counter, uint64_t value) const {
    auto& c = counters_[static_cast<uint32_t>(counter)];
    if (value > c.load(std::memory_order_relaxed)) c.store(value, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t>* counters_;
};

}  // namespace sluice::board
