// A long piece of work on names, as those see it who wait for it: it can be stopped, and shows that it goes
// on. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "dataplane/base/progress.h"

namespace sluice::exports {

using Abandoned = std::function<bool()>;

struct Pulse {
  static constexpr uint64_t kAskedEvery = 64;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> steps{0};  // system calls that came back, about
  // Asked now and then by whoever works: has the one who waits gone? Where no other thread could say so.
  Abandoned abandoned = {};

  // False: it is to stop.
  bool step() {
    base::note_progress();
    const uint64_t before = steps.fetch_add(1, std::memory_order_relaxed);
    if (abandoned && before % kAskedEvery == 0 && abandoned()) stop.store(true, std::memory_order_relaxed);
    return !stop.load(std::memory_order_relaxed);
  }
};

}  // namespace sluice::exports
