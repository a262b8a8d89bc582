// See loss.h.
// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/loss.h"

#include <algorithm>
#include <cmath>

namespace sluice::emulator {

Loss::Loss(const LossSettings& settings) : settings_(settings) { std::ranges::sort(settings_.packets); }

void Loss::set(const LossSettings& settings) {
  LossSettings sorted = settings;
  std::ranges::sort(sorted.packets);
  if (sorted == settings_) return;
  settings_ = std::move(sorted);
  number_ = 0;
  bad_ = false;
}

// The state changes first, then the frame is lost or not in the new one: a stay in the bad state lasts 1/r
// frames on average.
bool Loss::burst(Draws draws) {
  const BurstSettings& s = settings_.burst;
  bad_ = bad_ ? !draws.chance(s.r) : draws.chance(s.p);
  return draws.chance(bad_ ? s.loss_bad : s.loss_good);
}

LossReason Loss::decide(uint64_t seed, uint64_t frame, uint32_t length) {
  ++number_;
  // Its state lives from frame to frame, so it must see all of them.
  const bool burst_on = settings_.burst.p > 0 || settings_.burst.loss_good > 0;
  const bool lost_in_burst = burst_on && burst(Draws(seed, frame, Stage::kLossBurst));
  if (!settings_.packets.empty() && std::ranges::binary_search(settings_.packets, number_)) {
    return kLossPackets;
  }
  if (settings_.every_nth != 0 && number_ % settings_.every_nth == 0) return kLossEveryNth;
  if (lost_in_burst) return kLossBurst;
  if (settings_.length_l0_bytes > 0 &&
      Draws(seed, frame, Stage::kLossLength).chance(-std::expm1(-(length / settings_.length_l0_bytes)))) {
    return kLossLength;
  }
  if (settings_.probability > 0 &&
      Draws(seed, frame, Stage::kLossProbability).chance(settings_.probability)) {
    return kLossProbability;
  }
  return kLossNone;
}

}  // namespace sluice::emulator
