// What a worker counted of its time, its disk and its receive ring, and what that says of an interval.
//
// Pure. A worker serves all sessions whose flows it has: its load is that of all of them together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/board/board.h"

namespace sluice::board {

struct WorkerFigures {
  uint64_t busy_ns = 0;
  uint64_t missed = 0;  // datagrams for which its receive ring had no room
  uint64_t reads = 0;
  uint64_t read_ns = 0;     // of all reads, added up
  uint64_t reading_ns = 0;  // while at least one was under way
  uint64_t writes = 0;
  uint64_t write_ns = 0;
  uint64_t writing_ns = 0;
  uint64_t partial_bursts = 0;  // that its device took only in part
};
WorkerFigures figures_of(const WorkerSlot& worker);

// Of an interval, and of the worker that had most of each.
struct Load {
  double busy = 0;  // parts of the time, 0 to 1
  double reading = 0;
  double writing = 0;
  uint64_t read_ns = 0;  // that one took, on average
  uint64_t write_ns = 0;
  uint64_t missed = 0;  // of all workers
};
// Of the same workers, in the same order, at its beginning and its end.
Load load_of(std::span<const WorkerFigures> before, std::span<const WorkerFigures> now, uint64_t interval_ns);

}  // namespace sluice::board
