// How the lanes of a session share its rate: those with work equally; the others keep a little, for probes;
// all together never more than the rate. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dataplane/base/number.h"

namespace sluice::rate {

inline constexpr uint64_t kIdleLaneShare = 100;  // an idle lane keeps 1/100 of the rate

// Bit/s of each lane; `busy`: whether it has work. Without work all are alike.
Indexed<LaneId, uint64_t> lane_shares(uint64_t rate_bps, const Indexed<LaneId, bool>& busy);

}  // namespace sluice::rate
