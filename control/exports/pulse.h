// A long piece of work on names, as those see it who wait for it: it can be stopped, and shows that it goes
// on. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "dataplane/base/progress.h"

namespace sluice::exports {

struct Pulse {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> steps{0};  // system calls that came back, about

  // False: it is to stop.
  bool step() {
    base::note_progress();
    steps.fetch_add(1, std::memory_order_relaxed);
    return !stop.load(std::memory_order_relaxed);
  }
};

}  // namespace sluice::exports
