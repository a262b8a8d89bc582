// SPDX-License-Identifier: Apache-2.0
#include "control/parts/leg_state.h"

namespace sluice::parts {
namespace {

// A source that has not sent anything begins with so many bytes in a round trip, and doubles them each time
// (control/rate/adaptive_rate.cc).
constexpr double kStartBytes = 40 * 8192;
constexpr double kLeastRate = 1000;  // so that nobody divides by zero
// A leg whose recent rate is so far above its average is still ramping up.
constexpr double kRamp = 1.25;
// A leg whose recent rate is so far below its average has slowed down: the average would say so a second
// late.
constexpr double kSlowed = 2;
// How fast a rate that is only a guess fades, against what is measured.
constexpr double kGuessS = 0.2;

// The time that a beginning costs, against sending these bytes at full rate from the first on.
double ramp_s(double bytes, double rate, double rtt_s) {
  double lost_s = 0;
  double sent = 0;
  for (double round = kStartBytes; round < rate * rtt_s && sent + round < bytes; round *= 2) {
    lost_s += rtt_s - round / rate;
    sent += round;
  }
  return lost_s;
}

}  // namespace

double LegState::rate(double guess) const {
  if (goodput.known()) {
    const bool slowed = goodput.recent_rate() < goodput.rate() / kSlowed;
    return std::max(slowed ? goodput.recent_rate() : goodput.rate(), kLeastRate);
  }
  // The ramp of the beginning is in what was measured so far, so what was expected fades only slowly.
  const bool expects = facts.expected_rate_bps != 0;
  const double expected = expects ? static_cast<double>(facts.expected_rate_bps) / 8 : guess;
  const double fades_s = expects ? Goodput::kAverageS : std::min(Goodput::kAverageS, kGuessS + 2 * rtt_s());
  const double left = 1 - std::min(1.0, goodput.age_s() / fades_s);
  return std::max({goodput.rate(), goodput.recent_rate(), expected * left, kLeastRate});
}

double LegState::free_in_s(double guess, uint64_t more_bytes) const {
  const auto left = static_cast<double>(remaining() + more_bytes);
  const double ramp = goodput.known() ? 0 : ramp_s(left, rate(guess), rtt_s());
  const double start_s = std::max(0.0, ramp - goodput.age_s());
  // While bytes come, a round trip's worth of what is outstanding is on its way.
  if (goodput.flowing()) return start_s + std::max(rtt_s(), needs_s(guess));
  return start_s + rtt_s() + needs_s(guess);
}

uint64_t LegState::window_bytes(double guess, double refill_s, uint64_t extent_bytes) const {
  // One round trip that brought little, as where a machine is busy, does not leave the source without work.
  const double steady = goodput.known() ? std::max(goodput.rate(), kLeastRate) : rate(guess);
  const double recent = std::max(steady, goodput.recent_rate());
  const double round_trips = recent > kRamp * steady || !goodput.known() ? 3 : 2;
  return static_cast<uint64_t>(recent * (round_trips * rtt_s() + refill_s)) + facts.lanes * extent_bytes;
}

uint64_t LegState::begun_bytes(double guess, uint64_t extent_bytes) const {
  const double fastest = std::max(rate(guess), goodput.recent_rate());
  return received + static_cast<uint64_t>(fastest * rtt_s()) + facts.lanes * extent_bytes;
}

}  // namespace sluice::parts
