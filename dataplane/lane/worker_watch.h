// What a main loop has to know of the workers: whether they turn, for a service manager, and whether their
// clocks are in order, for the log.
//
// Only looks at the workers' counts. An idle worker turns as well, after a short sleep. The thread that made
// it.
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

}  // namespace sluice::lane
