// The law `cubic`: the window of RFC 9438, paced, so that a session shares a path with TCP as a TCP would.
//
// Pure. Counts windows in datagrams. Loss is a sign of congestion but for what was declared. Slow start ends
// with the first loss, or when a queue builds up (after HyStart++, RFC 9406). One instance for all that a
// node sends to one peer in this mode.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "control/rate/controller.h"
#include "control/rate/delay_base.h"
#include "control/rate/round_meter.h"
#include "control/rate/silence.h"

namespace sluice::rate {

class CubicRate final : public Controller {
 public:
  CubicRate(uint64_t cap_bps, double expected_loss, uint64_t now_ns);

  uint64_t step(const PathReport& report, uint64_t now_ns) override;

 private:
  void congestion(double round_trip_s, uint64_t now_ns);
  uint64_t pace(double round_trip_s);
  void grow(double acknowledged, double round_trip_s, uint64_t now_ns);

  const double expected_loss_;
  double target_bps_ = 0;  // of the window; the rate is this, within the cap
  Silence silence_;
  RoundMeter rounds_;
  DelayBase base_;
  double datagram_bits_ = 8 * 8192;
  double window_;
  double threshold_;       // of slow start
  double window_max_ = 0;  // before the last reduction
  double k_s_ = 0;         // until the window is as large again
  double reno_ = 0;        // the window that Reno would have
  uint64_t epoch_ns_ = 0;  // 0: none
  uint64_t reduced_ns_ = 0;
  uint64_t received_ = 0;
  bool limited_ = true;  // by something else than the window, in the last round
};

}  // namespace sluice::rate
