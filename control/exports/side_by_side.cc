// SPDX-License-Identifier: Apache-2.0
#include "control/exports/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

#include "dataplane/base/progress.h"

namespace sluice::exports {

void side_by_side(size_t count, const SideBySide& how,
                  const std::function<bool(size_t number, size_t thread)>& piece) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kTriedAlone = 4;  // one may have waited for a processor
  std::atomic<size_t> next = 0;
  const auto step = [&](size_t thread) {
    const size_t number = next++;
    if (number >= count) return false;
    base::note_progress();
    if (!piece(number, thread)) next = count;
    return true;
  };
  std::vector<std::jthread> helpers;  // they end first, as all that they use stands above
  const Clock::time_point begun = Clock::now();
  bool alone = true;
  for (size_t done = 1; step(0); ++done) {
    const auto passed_ns = static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - begun).count());
    if (!alone || done < kTriedAlone || passed_ns / done < how.slow_ns) continue;
    alone = false;
    const size_t left = count - std::min(count, next.load());
    try {
      for (size_t thread = 1; thread < how.threads_max && thread <= left; ++thread)
        helpers.emplace_back([&step, thread, watched = base::progress_ns] {
          base::progress_ns = watched;
          while (step(thread)) {
          }
        });
    } catch (const std::system_error&) {  // no thread is to be had: it goes on with fewer
    }
  }
}

}  // namespace sluice::exports
