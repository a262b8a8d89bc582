// FIXED rate control of one session at its source: a reserved rate, a short ramp, a circuit breaker.
//
// Pure: (counters of the session's flows, now) -> bit/s. It does not seek the path's capacity: it
// sends at the limit, yields when loss stays above 2 %, and crawls while the peer is silent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "control/rate/controller.h"
#include "control/rate/silence.h"

namespace sluice::rate {

class FixedRate final : public Controller {
 public:
  static constexpr uint64_t kRampStepNs = 2'000'000;   // ten steps, 20 ms in all
  static constexpr uint64_t kWindowNs = 100'000'000;   // over which loss is judged
  static constexpr uint64_t kBreakNs = 1'000'000'000;  // loss for so long lowers the rate
  static constexpr double kLossMax = 0.02;
  static constexpr double kCut = 0.8;
  static constexpr double kRecoveryPerSecond = 0.05;
  static constexpr double kFractionMin = 0.01;

  // Loss up to `expected_loss` (0 to 1) is the path's: only more of it lowers the rate.
  FixedRate(uint64_t cap_bps, double expected_loss, uint64_t now_ns);

  uint64_t step(const PathReport& report, uint64_t now_ns) override;
  uint32_t cuts() const { return cuts_; }

 private:
  void judge_loss(const PathReport& report, uint64_t now_ns);

  const double loss_max_;
  double fraction_ = 0.1;  // of the limit, silence aside
  bool ramping_ = true;
  Silence silence_;
  uint64_t started_ns_;
  uint64_t stepped_ns_;
  uint64_t window_ns_;  // start of the window of loss
  bool began_ = false;  // the counters may be older than this
  uint64_t window_sent_ = 0;
  uint64_t window_lost_ = 0;
  uint64_t lossy_since_ns_ = 0;  // 0: the last window was fine
  uint32_t cuts_ = 0;
};

}  // namespace sluice::rate
