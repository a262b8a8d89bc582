// SPDX-License-Identifier: Apache-2.0
#include "control/tree/pack.h"
#include "tools/sim/plan.h"
#include "tools/sim/random.h"

namespace sluice::sim {

// A third of all worlds: every other object is a pack, and the last one the last pack.
void choose_packs(Plan* plan) {
  Random random(plan->seed, 11);
  plan->packs = random.chance(333'333);
  plan->growing = plan->sizes.size() > 1 && random.chance(500'000);
  plan->foreseen = plan->seed % 2 == 0;
  plan->list_ns = random.scale(100'000, 400'000'000);
}

catalog::FileKind kind_of(const Plan& plan, uint32_t object) {
  if (!plan.packs || plan.sizes[object] < tree::kPackHeadBytes) return catalog::FileKind::kFile;
  if (object + 1 == plan.sizes.size()) return catalog::FileKind::kLastPack;
  return object % 2 == 0 ? catalog::FileKind::kPack : catalog::FileKind::kFile;
}

}  // namespace sluice::sim
