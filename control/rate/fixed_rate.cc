// SPDX-License-Identifier: Apache-2.0
#include "control/rate/fixed_rate.h"

#include <algorithm>
#include <utility>

#include "control/rate/round_meter.h"

namespace sluice::rate {

FixedRate::FixedRate(uint64_t cap_bps, double expected_loss, uint64_t now_ns)
    : Controller(cap_bps, cap_bps / 10),
      loss_max_(kLossMax + 1.2 * std::clamp(expected_loss, 0.0, 0.95)),
      silence_(now_ns),
      started_ns_(now_ns),
      stepped_ns_(now_ns),
      window_ns_(now_ns) {}

void FixedRate::judge_loss(const PathReport& report, uint64_t now_ns) {
  if (!std::exchange(began_, true)) {
    window_sent_ = report.sent;
    window_lost_ = report.lost;
  }
  const auto sent = static_cast<double>(report.sent - window_sent_);
  const auto lost = static_cast<double>(report.lost - window_lost_);
  const double loss = sent > 0 ? std::min(1.0, lost / sent) : 0;
  const bool lossy = loss_lower_bound(loss, sent) > loss_max_;
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
  switch (silence_.look(report, now_ns)) {
    case Silence::State::kStopped:
      condition_ = Condition::kStopped;
      factor = 0;
      break;
    case Silence::State::kCrawling:
      condition_ = Condition::kCrawling;
      factor = std::min(fraction_, Silence::kCrawlFraction);
      break;
    case Silence::State::kHeard:
      break;
  }
  rate_bps_ = fraction_of(cap_bps_, factor);
  return rate_bps_;
}

}  // namespace sluice::rate
