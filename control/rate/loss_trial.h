// Is loss that a path shows random, or of our making? Send less for a while, then as before, and compare.
//
// Pure. The loss of a path that corrupts or drops at random does not depend on how fast one sends; that of a
// full queue or a policer does. The first round of either half still shows the rate before, and is left out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "control/rate/round_meter.h"

namespace sluice::rate {

class LossTrial {
 public:
  static constexpr double kLowShare = 0.8;
  static constexpr double kSureDeviations = 4;  // of many trials of many starts chance has its way with some

  enum class Finding : uint8_t { kRunning, kCongestive, kRandom };

  // By so many deviations the two halves differ if the loss is of our making.
  // `suspect_loss`: what made it begin, if that is to be found again.
  void begin(double rate_bps, double deviations = 2.5, double suspect_loss = 0);
  bool running() const { return running_; }
  void abort() { running_ = false; }
  Finding take(const Round& round);
  double rate_bps() const { return high_ ? rate_bps_ : kLowShare * rate_bps_; }
  double full_rate_bps() const { return rate_bps_; }
  double loss() const;  // of both halves
  // Most of the loss that made it begin is not found again: by more than chance, and by more than would
  // matter. `known`: the part that the path was known to lose.
  bool misses(double suspect_loss, double suspect_datagrams, double known) const;
  double low_loss_bound() const;  // of the lower rate: it is at least this

 private:
  bool running_ = false;
  bool high_ = false;
  double rate_bps_ = 0;
  double deviations_ = 0;
  double suspect_loss_ = 0;
  int rounds_ = 0;  // of this half
  LossCount low_;
  LossCount full_;
};

}  // namespace sluice::rate
