// What both sides of one worker work with: its datagrams, its disk, its part of the board, the open objects.
//
// One thread: the worker. Nothing here allocates, locks or blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dataplane/base/config/config.h"
#include "dataplane/board/board.h"
#include "dataplane/board/counters.h"
#include "dataplane/lane/coder.h"
#include "dataplane/lane/object_table.h"
#include "dataplane/net/datagram_queue.h"
#include "dataplane/seal/seal.h"
#include "storage/disk.h"

namespace sluice::lane {

using board::Counter;

// Extents of a pool that only repairs may take: one for each of a few flows at a time.
inline constexpr uint32_t kRepairReserve = 2;

struct WorkerResources {
  net::DatagramQueue& datagrams;
  board::Board& board;
  board::WorkerSlot& slot;
  ObjectTable& objects;
  storage::Disk& disk;
  board::PortInfo port_info;  // copied: control can write to the board
  seal::Scratch& scratch;
  Coder& coder;
  const uint32_t& key_epoch_bits;
  uint64_t turn_ns = 0;                             // when the worker's turn began
  seal::Store store = seal::Store::kThroughCaches;  // in this turn

  void count(Counter counter, uint64_t n = 1) const { board::CounterWriter(slot).add(counter, n); }
  void emit(const board::Event& event) const {
    // Room was checked before the work began (has_event_room); what still fails is counted.
    if (!slot.events.push(event)) count(Counter::event_ring_full);
  }
  // More than every extent of this worker could need at once.
  bool has_event_room() const { return slot.events.room() >= kEventReserve; }
  static constexpr uint32_t kEventReserve = config::kExtentsMax + 512;
};

// Numbers of a flow on the board, which one worker writes.
inline void add(std::atomic<uint64_t>& field, uint64_t n) {
  field.store(field.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}
inline void set(std::atomic<uint64_t>& field, uint64_t v) { field.store(v, std::memory_order_relaxed); }

}  // namespace sluice::lane
