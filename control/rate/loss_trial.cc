// SPDX-License-Identifier: Apache-2.0
#include "control/rate/loss_trial.h"

#include <algorithm>
#include <cmath>

namespace sluice::rate {
namespace {

constexpr double kRoundsMin = 3;
constexpr double kRoundsMax = 24;
constexpr double kLossesWanted = 40;  // of a half: fewer do not tell two rates apart
constexpr double kDifferenceMin = 0.003;
constexpr double kSurelyGone = 0.05;  // less loss than that is not what doubling a rate brings

}  // namespace

void LossTrial::begin(double rate_bps, double deviations, double suspect_loss) {
  *this = {};
  deviations_ = deviations;
  suspect_loss_ = suspect_loss;
  running_ = true;
  rate_bps_ = rate_bps;
}

double LossTrial::loss() const {
  return (low_.lost + full_.lost) / std::max(1.0, low_.datagrams + full_.datagrams);
}

bool LossTrial::misses(double suspect_loss, double suspect_datagrams, double known) const {
  const double noise = std::sqrt(loss() / std::max(1.0, suspect_datagrams));
  return suspect_loss - loss() >
         std::max({0.5 * (suspect_loss - known), kSurelyGone, kSureDeviations * noise});
}

double LossTrial::low_loss_bound() const { return loss_lower_bound(low_.loss(), low_.datagrams); }

LossTrial::Finding LossTrial::take(const Round& round) {
  ++rounds_;
  if (rounds_ > 1) (high_ ? full_ : low_).add(round);
  const double losses_a_round = std::max({1e-3, suspect_loss_, round.loss}) * std::max(1.0, round.datagrams);
  const double wanted = std::clamp(kLossesWanted / losses_a_round + 1, kRoundsMin, kRoundsMax);
  if (rounds_ < wanted) return Finding::kRunning;
  if (!high_) {
    high_ = true;
    rounds_ = 0;
    return Finding::kRunning;
  }
  running_ = false;
  // Of what was sent, the part that arrived: the same at both rates if loss is random.
  const auto deviation = [](const LossCount& half) {
    const double n = std::max(1.0, half.datagrams);
    const double arrived = std::max(1 / n, 1 - half.loss());
    return std::sqrt(std::max(half.loss() * arrived, 1 / n) / n) / arrived;
  };
  const double ratio = (1 - full_.loss()) / std::max(1e-6, 1 - low_.loss());
  const double noise = std::hypot(deviation(low_), deviation(full_));
  if (1 - ratio > std::max(kDifferenceMin, deviations_ * noise)) return Finding::kCongestive;
  return Finding::kRandom;
}

}  // namespace sluice::rate
