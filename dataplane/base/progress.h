// A long piece of work says that it gets further, to whoever watches over the thread that does it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace sluice::base {

// Where this thread's progress is noted, on the steady clock; nullptr: nobody watches.
inline thread_local std::atomic<uint64_t>* progress_ns = nullptr;

inline void note_progress() {
  if (progress_ns == nullptr) return;
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  progress_ns->store(static_cast<uint64_t>(now.count()), std::memory_order_relaxed);
}

}  // namespace sluice::base
