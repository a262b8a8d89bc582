// The main loop's look at the workers. The service manager hears whether they turn; the log says when their
// clocks are not in order, or frames arrive that no worker sees.
//
// Only reads the workers' counts, on the thread that made it. An idle worker turns as well, after a short
// sleep.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/lane/attach_server.h"

namespace sluice::lane {

class WorkerWatch {
 public:
  explicit WorkerWatch(const WorkerEpochs& epochs) : epochs_(epochs), seen_(epochs.size(), 0) {}

  // Has each of them turned since this was last true? From then on what was seen counts anew.
  bool all_turned() {
    for (size_t i = 0; i < seen_.size(); ++i) {
      if (epochs_[i]->load(std::memory_order_acquire) == seen_[i]) return false;
    }
    for (size_t i = 0; i < seen_.size(); ++i) seen_[i] = epochs_[i]->load(std::memory_order_acquire);
    return true;
  }

 private:
  const WorkerEpochs& epochs_;
  std::vector<uint64_t> seen_;
};

class ClockWatch {
 public:
  explicit ClockWatch(const board::Board& board) : board_(board) {}

  // A sentence for each worker whose clocks have parted since the last call.
  std::vector<std::string> take_news() {
    std::vector<std::string> news;
    for (uint32_t i = 0; i < board::kWorkersMax; ++i) {
      const uint64_t now =
          board_.workers[i].counters[static_cast<uint32_t>(board::Counter::clock_partings)].load(
              std::memory_order_relaxed);
      if (now == seen_[i]) continue;
      seen_[i] = now;
      news.push_back("worker " + std::to_string(i) +
                     ": the CPU's time stamp counter and the system's clock disagree (" +
                     std::to_string(now) +
                     " times since the start): the worker follows the system's clock until they agree again; "
                     "docs/RUNBOOK.md, \"The clock\", says what to look at");
    }
    return news;
  }

 private:
  const board::Board& board_;
  std::array<uint64_t, board::kWorkersMax> seen_{};
};

// Frames that arrive and help nobody, which would else look as if none had arrived.
class ArrivalWatch {
 public:
  explicit ArrivalWatch(const board::Board& board) : board_(board) {}

  // Once a second, of the time since the last call. A twin is named once; lost frames once each time they
  // begin.
  std::vector<std::string> take_news() {
    std::vector<std::string> news;
    const Sums now = {.taken = sum(board::Counter::rx_frames),
                      .missed = sum(board::Counter::rx_missed),
                      .own_link = sum(board::Counter::neighbour_own_link)};
    const bool lost = now.missed > last_.missed && now.taken == last_.taken;
    if (lost && !told_lost_)
      news.push_back(
          std::to_string(now.missed - last_.missed) +
          " frames arrived within a second that the device had no room for, and none came to a worker: its "
          "receive queues are not emptied, or are none that a worker reads (sluice doctor --report)");
    const bool twins = now.own_link > last_.own_link;
    if (twins && !told_twins_)
      news.push_back(
          "another host answers with the link address of this port: two ports of one network have the same; "
          "give one of them another");
    told_lost_ = lost;
    told_twins_ |= twins;
    last_ = now;
    return news;
  }

 private:
  struct Sums {
    uint64_t taken = 0;
    uint64_t missed = 0;
    uint64_t own_link = 0;
  };
  uint64_t sum(board::Counter counter) const {
    uint64_t all = 0;
    for (const board::WorkerSlot& worker : board_.workers)
      all += worker.counters[static_cast<uint32_t>(counter)].load(std::memory_order_relaxed);
    return all;
  }

  const board::Board& board_;
  Sums last_;
  bool told_lost_ = false;
  bool told_twins_ = false;
};

}  // namespace sluice::lane
