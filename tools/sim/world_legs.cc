// Legs of a transfer that die alone, while others go on.
// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/world.h"

namespace sluice::sim {

void World::kill_leg(const LegDeath& death) {
  const Host& host = *hosts_[death.node];
  if (healed_ || host.control == nullptr) return;
  trace_.add(scheduler_.now_ns(), death.node, "leg dies", death.leg);
  host.control->kill_leg(death.leg);
}

}  // namespace sluice::sim
