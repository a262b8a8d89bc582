// Random loss and loss of one's own making are told apart.
// SPDX-License-Identifier: Apache-2.0
#include "control/rate/loss_trial.h"

#include <gtest/gtest.h>

#include <functional>

namespace sluice::rate {
namespace {

// `loss_at(rate)`: of the path. A round has as many datagrams as the rate says.
LossTrial::Finding verdict(double rate_bps, const std::function<double(double)>& loss_at,
                           double datagrams = 1000) {
  LossTrial trial;
  trial.begin(rate_bps);
  for (int i = 0; i < 100; ++i) {
    const double rate = trial.rate_bps();
    const auto answer = trial.take({.datagrams = datagrams * rate / rate_bps, .loss = loss_at(rate)});
    if (answer != LossTrial::Finding::kRunning) return answer;
  }
  return LossTrial::Finding::kRunning;
}

std::function<double(double)> full_at(double capacity_bps) {
  return [capacity_bps](double rate) { return rate > capacity_bps ? 1 - capacity_bps / rate : 0.0; };
}

TEST(LossTrial, LossThatDoesNotDependOnTheRateIsRandom) {
  for (const double loss : {0.01, 0.05, 0.15, 0.6})
    EXPECT_EQ(verdict(1e9, [loss](double) { return loss; }), LossTrial::Finding::kRandom) << loss;
}

TEST(LossTrial, OfAFullPathIsCongestive) {
  for (const double over : {1.02, 1.1, 1.5, 4.0})
    EXPECT_EQ(verdict(over * 1e9, full_at(1e9)), LossTrial::Finding::kCongestive) << over;
}

TEST(LossTrial, BothTogetherAreCongestive) {
  const auto path = [](double rate) { return 1 - (1 - 0.05) * (1 - full_at(1e9)(rate)); };
  EXPECT_EQ(verdict(1.2e9, path), LossTrial::Finding::kCongestive);
}

TEST(LossTrial, TheFirstRoundOfAHalfDoesNotCount) {
  LossTrial trial;
  trial.begin(1e9);
  EXPECT_DOUBLE_EQ(trial.rate_bps(), 0.8e9);
  EXPECT_EQ(trial.take({.datagrams = 1000, .loss = 0.9}), LossTrial::Finding::kRunning);
  for (int i = 0; i < 100 && trial.rate_bps() < 1e9; ++i) (void)trial.take({.datagrams = 1000, .loss = 0.02});
  EXPECT_EQ(trial.take({.datagrams = 1000, .loss = 0.9}), LossTrial::Finding::kRunning);
  LossTrial::Finding last = LossTrial::Finding::kRunning;
  for (int i = 0; i < 100 && last == LossTrial::Finding::kRunning; ++i)
    last = trial.take({.datagrams = 1000, .loss = 0.02});
  EXPECT_EQ(last, LossTrial::Finding::kRandom);
  EXPECT_NEAR(trial.loss(), 0.02, 1e-9);
}

// What made it begin would have been lost again, were it random.
TEST(LossTrial, EndsSoonWhereLossThatWasSuspectedIsGone) {
  const auto rounds_of_first_half = [](double suspect_loss) {
    LossTrial trial;
    trial.begin(1e9, LossTrial::kSureDeviations, suspect_loss);
    int rounds = 0;
    for (; trial.rate_bps() < 1e9; ++rounds) (void)trial.take({.datagrams = 1000, .loss = 0});
    return rounds;
  };
  EXPECT_LE(rounds_of_first_half(0.05), 3);
  EXPECT_GT(rounds_of_first_half(0), 20);
}

}  // namespace
}  // namespace sluice::rate
