// SPDX-License-Identifier: Apache-2.0
#include "control/board/worker_figures.h"

#include <algorithm>

#include "dataplane/base/grown.h"

namespace sluice::board {
namespace {

using base::grown;

double part(uint64_t from, uint64_t to, uint64_t interval_ns) {
  if (interval_ns == 0) return 0;
  return std::min(1.0, static_cast<double>(grown(from, to)) / static_cast<double>(interval_ns));
}

// What one took; an interval in which none ended says nothing.
uint64_t each(uint64_t spent_ns, uint64_t ended) { return ended == 0 ? 0 : spent_ns / ended; }

}  // namespace

WorkerFigures figures_of(const WorkerSlot& worker) {
  const auto read = [&worker](Counter counter) {
    return worker.counters[static_cast<uint32_t>(counter)].load(std::memory_order_relaxed);
  };
  return {.busy_ns = read(Counter::busy_ns),
          .missed = read(Counter::rx_missed),
          .reads = read(Counter::disk_reads),
          .read_ns = read(Counter::disk_read_ns),
          .reading_ns = read(Counter::disk_reading_ns),
          .writes = read(Counter::disk_writes),
          .write_ns = read(Counter::disk_write_ns),
          .writing_ns = read(Counter::disk_writing_ns),
          .partial_bursts = read(Counter::tx_partial_bursts)};
}

Load load_of(std::span<const WorkerFigures> before, std::span<const WorkerFigures> now,
             uint64_t interval_ns) {
  Load load;
  for (size_t i = 0; i < std::min(before.size(), now.size()); ++i) {
    const WorkerFigures& a = before[i];
    const WorkerFigures& b = now[i];
    load.busy = std::max(load.busy, part(a.busy_ns, b.busy_ns, interval_ns));
    load.reading = std::max(load.reading, part(a.reading_ns, b.reading_ns, interval_ns));
    load.writing = std::max(load.writing, part(a.writing_ns, b.writing_ns, interval_ns));
    load.read_ns = std::max(load.read_ns, each(grown(a.read_ns, b.read_ns), grown(a.reads, b.reads)));
    load.write_ns = std::max(load.write_ns, each(grown(a.write_ns, b.write_ns), grown(a.writes, b.writes)));
    load.missed += grown(a.missed, b.missed);
  }
  return load;
}

}  // namespace sluice::board
