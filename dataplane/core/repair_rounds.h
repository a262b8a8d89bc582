// How long the repair of losses takes, in round trips.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

namespace sluice {

// One round: finding a loss takes a little longer than a round trip.
inline constexpr double kRepairRoundTrips = 1.25;

// How many rounds of repair the last of so many chunks takes, on the average. `loss`: the share of datagrams
// that is lost, below 1.
inline double repair_rounds(double chunks, double loss) {
  double rounds = 0;
  double missing = loss;  // chance that a chunk is still missing after so many transmissions
  for (int round = 0; round < 40 && missing > 1e-6; ++round, missing *= loss) {
    rounds += 1 - std::pow(1 - missing, chunks);
  }
  return rounds;
}

}  // namespace sluice
