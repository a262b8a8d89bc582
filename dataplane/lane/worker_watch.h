// Whether the workers turn, for a main loop that answers for them to a service manager.
//
// Only compares the workers' counts of quiet points. An idle worker turns as well, after a short sleep. The
// thread that made it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

}  // namespace sluice::lane
