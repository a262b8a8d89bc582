// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "tools/sim/plan.h"
#include "tools/sim/random.h"

namespace sluice::sim {

// Keys change as often as a transfer lets them: not so often that what is lost in a row, within credit or
// while statuses are lost for half a second, is more than an epoch.
void choose_protection(Plan* plan) {
  Random random(plan->seed, 10);
  for (wire::Protection& each : plan->protection)
    each = static_cast<wire::Protection>(random.chance(500'000) ? 0 : random.between(1, 2));
  const uint64_t under_way = uint64_t{4} * plan->rx_extents * (plan->extent_bytes / plan->chunk_bytes + 1);
  plan->key_epoch_bits = std::max(12U, static_cast<uint32_t>(std::bit_width(under_way)));
}

}  // namespace sluice::sim
