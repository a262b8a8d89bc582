// SPDX-License-Identifier: Apache-2.0
#include "control/rate/cubic_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::rate {
namespace {

constexpr double kC = 0.4;
constexpr double kBeta = 0.7;
constexpr double kRenoAlpha = 3 * (1 - kBeta) / (1 + kBeta);
constexpr double kWindowStart = 10;
constexpr double kWindowMin = 2;
constexpr double kRttStartS = 0.02;
constexpr double kRttMinS = 1e-3;
constexpr double kSlowStartPace = 1.25;  // faster than the window, so that it is filled

double in_seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

CubicRate::CubicRate(uint64_t cap_bps, double expected_loss, uint64_t now_ns)
    : Controller(cap_bps, 0),
      expected_loss_(std::clamp(expected_loss, 0.0, 0.95)),
      silence_(now_ns),
      window_(kWindowStart),
      threshold_(std::numeric_limits<double>::max()) {
  (void)pace(kRttStartS);
}

uint64_t CubicRate::step(const PathReport& report, uint64_t now_ns) {
  const Silence::State silence = silence_.look(report, now_ns);
  if (silence != Silence::State::kHeard) {
    const bool stopped = silence == Silence::State::kStopped;
    condition_ = stopped ? Condition::kStopped : Condition::kCrawling;
    rounds_.restart();
    if (window_ > kWindowStart) threshold_ = std::max(kWindowStart, window_ * kBeta);
    window_ = kWindowStart;  // the path may be another one when the peer is back
    epoch_ns_ = 0;
    rate_bps_ = stopped ? 0 : at_most(target_bps_ * Silence::kCrawlFraction, cap_bps_);
    return rate_bps_;
  }
  if (condition_ >= Condition::kCrawling) {
    condition_ = Condition::kRamping;
    (void)pace(kRttStartS);
  }
  if (report.rtt_ns == 0) return rate_bps_;
  const double base_s = in_seconds(std::min(report.rtt_min_ns, Silence::kStopNs));
  const auto round = rounds_.take(report, static_cast<uint64_t>(std::max(base_s, 4e-3) * 1e9), now_ns);
  if (!rounds_.news()) return rate_bps_;
  double queue_s = 0;
  if (report.delay_known) {
    base_.take(report.delay_min_ns, report.rtt_ns, now_ns);
    queue_s = base_.queue_s(report.delay_min_ns);
  }
  const double round_trip_s = std::max(kRttMinS, base_s + queue_s);
  datagram_bits_ = 8 * static_cast<double>(std::max(1U, report.datagram_bytes));
  if (round) {
    limited_ = round->sent_bps < 0.8 * static_cast<double>(rate_bps_);
    const bool lossy = expected_loss_ > 0 ? round->loss_lower_bound() > 1.2 * expected_loss_ + 0.002
                                          : round->loss * round->datagrams >= 1;
    if (lossy) congestion(round_trip_s, now_ns);
  }
  const double acknowledged =
      report.received > received_ ? static_cast<double>(report.received - received_) : 0;
  received_ = report.received;
  const bool queue_builds = queue_s > std::max(4e-3, base_s / 8);
  if (window_ < threshold_ && queue_builds) threshold_ = window_;
  if (!limited_) grow(acknowledged, round_trip_s, now_ns);
  window_ =
      std::clamp(window_, kWindowMin,
                 std::max(kWindowMin, static_cast<double>(cap_bps_) * 1.05 * round_trip_s / datagram_bits_));
  return pace(round_trip_s);
}

uint64_t CubicRate::pace(double round_trip_s) {
  const double faster = window_ < threshold_ ? kSlowStartPace : 1;
  target_bps_ = faster * window_ * datagram_bits_ / round_trip_s;
  rate_bps_ = at_most(target_bps_, cap_bps_);
  condition_ = window_ < threshold_ && rate_bps_ < cap_bps_ ? Condition::kRamping : Condition::kRunning;
  return rate_bps_;
}

void CubicRate::congestion(double round_trip_s, uint64_t now_ns) {
  if (reduced_ns_ != 0 && in_seconds(now_ns - reduced_ns_) < round_trip_s) return;
  reduced_ns_ = now_ns;
  window_max_ = window_ < window_max_ ? window_ * (1 + kBeta) / 2 : window_;  // fast convergence
  window_ = threshold_ = std::max(kWindowMin, window_ * kBeta);
  epoch_ns_ = 0;
}

void CubicRate::grow(double acknowledged, double round_trip_s, uint64_t now_ns) {
  if (window_ < threshold_) {
    window_ += acknowledged;
    return;
  }
  if (epoch_ns_ == 0) {
    epoch_ns_ = now_ns;
    reno_ = window_;
    window_max_ = std::max(window_max_, window_);
    k_s_ = std::cbrt((window_max_ - window_) / kC);
  }
  const double t = in_seconds(now_ns - epoch_ns_) + round_trip_s;
  const double cubic = kC * std::pow(t - k_s_, 3) + window_max_;
  reno_ += kRenoAlpha * acknowledged / window_;
  const double target = std::clamp(std::max(cubic, reno_), window_, 1.5 * window_);
  window_ += (target - window_) / window_ * acknowledged;
}

}  // namespace sluice::rate
