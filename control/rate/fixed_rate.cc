// SPDX-License-Identifier: Apache-2.0
#include "control/rate/fixed_rate.h"

#include <algorithm>
#include <cmath>

namespace sluice::rate {

double loss_lower_bound(uint64_t lost, uint64_t sent) {
  if (sent == 0) return 0;
  const double n = static_cast<double>(sent);
  const double l = std::min(1.0, static_cast<double>(lost) / n);
  return l - 2 * std::sqrt(l / n);
}

FixedRate::FixedRate(uint64_t limit_bps, uint64_t now_ns)
    : limit_bps_(limit_bps),
      rate_bps_(limit_bps / 10),
      started_ns_(now_ns),
      stepped_ns_(now_ns),
      window_ns_(now_ns) {}

void FixedRate::judge_loss(const PathReport& report, uint64_t now_ns) {
  const uint64_t sent = report.sent - window_sent_;
  const uint64_t lost = report.lost - window_lost_;
  const bool lossy = loss_lower_bound(lost, sent) > kLossMax;
  if (ramping_ && lossy) ramping_ = false;  // The ramp ends where the path overflows.
  if (now_ns - window_ns_ < kWindowNs) return;
  if (!lossy) {
    lossy_since_ns_ = 0;
  } else if (lossy_since_ns_ == 0) {
    lossy_since_ns_ = window_ns_;
  }
  if (lossy_since_ns_ != 0 && now_ns - lossy_since_ns_ >= kBreakNs) {
    fraction_ = std::max(fraction_ * kCut, kFractionMin);
    lossy_since_ns_ = now_ns;
    ++cuts_;
  }
  window_ns_ = now_ns;
  window_sent_ = report.sent;
  window_lost_ = report.lost;
}

uint64_t FixedRate::step(const PathReport& report, uint64_t now_ns) {
  const uint64_t elapsed_ns = now_ns - stepped_ns_;
  stepped_ns_ = now_ns;
  judge_loss(report, now_ns);
  if (ramping_) {
    const uint64_t steps = 1 + (now_ns - started_ns_) / kRampStepNs;
    fraction_ = std::min(1.0, 0.1 * static_cast<double>(steps));
    ramping_ = steps < 10;
  } else if (lossy_since_ns_ == 0 && fraction_ < 1.0) {
    fraction_ = std::min(1.0, fraction_ + kRecoveryPerSecond * static_cast<double>(elapsed_ns) * 1e-9);
  }
  condition_ = ramping_ ? Condition::kRamping : fraction_ < 1.0 ? Condition::kYielding : Condition::kRunning;

  double factor = fraction_;
  const uint64_t heard_ns = std::max(report.last_peer_ns, started_ns_);
  const uint64_t silence_ns = now_ns > heard_ns ? now_ns - heard_ns : 0;
  if (silence_ns >= kStopNs) {
    condition_ = Condition::kStopped;
    factor = 0;
  } else if (silence_ns > std::max(4 * report.rtt_ns, kSilenceMinNs)) {
    condition_ = Condition::kCrawling;
    factor = std::min(fraction_, kCrawlFraction);
  }
  // A limit has more digits than a double: rounded up, it would be above the limit, or no number at all.
  rate_bps_ = factor >= 1.0
                  ? limit_bps_
                  : std::min(limit_bps_, static_cast<uint64_t>(static_cast<double>(limit_bps_) * factor));
  return rate_bps_;
}

}  // namespace sluice::rate
