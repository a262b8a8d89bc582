// How many legs a transfer has, and which of them die while others go on.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tools/sim/plan.h"
#include "tools/sim/random.h"

namespace sluice::sim {

// Drawn from a stream of its own. Each leg has as many lanes as the plan says, so there must be buffers for
// all.
void choose_legs(Plan* plan, uint32_t legs) {
  plan->rx_extents = plan->rx_extents / plan->legs * legs;
  plan->tx_extents = plan->tx_extents / plan->legs * legs;
  plan->legs = legs;
  plan->leg_deaths.clear();
  if (legs == 1) return;
  Random r(plan->seed, 16);
  if (plan->stranger_alone || r.chance(200'000)) return;
  constexpr uint64_t kMs = 1'000'000;
  const uint64_t busy_ns =
      std::min(plan->safety_ns, 30 * kMs + plan->bytes() * 16'000'000'000 / plan->rate_bps);
  for (uint64_t n = r.between(1, 6); n > 0; --n) {
    plan->leg_deaths.push_back({.time_ns = r.below(busy_ns),
                                .node = static_cast<uint32_t>(r.below(2)),
                                .leg = static_cast<uint32_t>(r.below(legs))});
  }
}

}  // namespace sluice::sim
