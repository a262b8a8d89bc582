// What befalls single files of a session of several, while all others are well.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "tools/sim/plan.h"
#include "tools/sim/random.h"

namespace sluice::sim {

const char* trouble_name(FileTrouble trouble) {
  constexpr const char* kNames[] = {"changes", "unreadable", "taken", "unwritable"};
  return kNames[static_cast<size_t>(trouble)];
}

// Drawn from a stream of its own.
void choose_failures(Plan* plan) {
  Random random(plan->seed, 12);
  if (!random.chance(250'000) || plan->stranger_alone) return;
  while (plan->sizes.size() < 3) plan->sizes.push_back(random.below(300'000));
  const uint64_t busy_ns =
      std::min(plan->safety_ns, 30'000'000 + plan->bytes() * 16'000'000'000 / plan->rate_bps);
  for (uint64_t n = random.between(1, 3); n > 0; --n) {
    plan->troubles.push_back({.time_ns = random.chance(200'000) ? 0 : random.below(busy_ns),
                              .object = static_cast<uint32_t>(random.below(plan->sizes.size())),
                              .trouble = static_cast<FileTrouble>(random.below(4)),
                              .error = random.flip() ? ENOSPC : EIO});
  }
}

// Directories that somebody removes, and journals of whoever was called. Drawn from a stream of its own.
void choose_removals(Plan* plan) {
  Random random(plan->seed, 13);
  if (plan->stranger_alone) return;
  const uint64_t busy_ns =
      std::min(plan->safety_ns, 30'000'000 + plan->bytes() * 16'000'000'000 / plan->rate_bps);
  if (random.chance(40'000)) plan->removed_ns = 1 + random.below(busy_ns);
  // Of a single file that has its name the next life knows nothing, and it is in its own way.
  const bool apt = plan->initiator == kSource && plan->sizes.size() > 1 && plan->journal_lost_ns == 0;
  if (!random.chance(60'000) || !apt || plan->snapshot_ns != 0 || plan->damage) return;
  plan->called_loses_journal = true;
  plan->journal_lost_ns = 1 + random.below(busy_ns);
}

std::string troubles_text(const Plan& plan) {
  std::string out = fmt::format(
      "stalls {}/1e6 of {} ns, unfinished files removed at {} ns, journal lost by who was called {}\n",
      plan.stall_per_million, plan.stall_ns, plan.removed_ns, plan.called_loses_journal);
  for (const Trouble& t : plan.troubles) {
    out +=
        fmt::format("file {} {} at {} ns, error {}\n", t.object, trouble_name(t.trouble), t.time_ns, t.error);
  }
  return out;
}

}  // namespace sluice::sim
