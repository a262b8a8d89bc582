// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tools/wire/statistics_for_test.h"

namespace sluice::emulator {
namespace {

constexpr uint64_t kLossSeed = 20;

std::vector<bool> decisions(const LossSettings& settings, size_t frames, uint32_t length = 1000,
                            uint64_t seed = kLossSeed) {
  Loss loss(settings);
  std::vector<bool> lost;
  for (size_t i = 1; i <= frames; ++i) lost.push_back(loss.decide(seed, i, length) != kLossNone);
  return lost;
}

// Numbers of losses in blocks of 100, so that also their independence shows.
std::vector<double> losses_in_blocks(const std::vector<bool>& lost) {
  std::vector<double> counts(101);
  for (size_t block = 0; block + 100 <= lost.size(); block += 100) {
    ++counts[static_cast<size_t>(std::count(lost.begin() + static_cast<ptrdiff_t>(block),
                                            lost.begin() + static_cast<ptrdiff_t>(block + 100), true))];
  }
  return counts;
}

std::vector<double> binomial(double p, double blocks) {
  std::vector<double> expected;
  for (int k = 0; k <= 100; ++k) {
    const double choose = std::lgamma(101.0) - std::lgamma(k + 1.0) - std::lgamma(101.0 - k);
    expected.push_back(blocks * std::exp(choose + k * std::log(p) + (100 - k) * std::log1p(-p)));
  }
  return expected;
}

// Lengths of the runs of `value`, up to 200.
std::vector<double> runs(const std::vector<bool>& lost, bool value) {
  std::vector<double> counts(201);
  size_t length = 0;
  for (const bool each : lost) {
    if (each == value) {
      ++length;
    } else if (length > 0) {
      ++counts[std::min<size_t>(length, 200)];
      length = 0;
    }
  }
  return counts;
}

// Runs that end with probability `end` at each frame.
std::vector<double> geometric(double end, const std::vector<double>& like) {
  double all = 0;
  for (const double each : like) all += each;
  std::vector<double> expected(201);
  for (int k = 1; k < 200; ++k) expected[static_cast<size_t>(k)] = all * end * std::pow(1 - end, k - 1);
  expected[200] = all * std::pow(1 - end, 199);
  return expected;
}

TEST(Loss, IndependentLossesAreBinomial) {
  constexpr double kP = 0.02;
  const std::vector<double> counts = losses_in_blocks(decisions({.probability = kP}, 2'000'000));
  EXPECT_TRUE(fits_counts(counts, binomial(kP, 20'000)));
  EXPECT_FALSE(fits_counts(counts, binomial(kP * 1.05, 20'000)));
  EXPECT_FALSE(fits_counts(counts, binomial(kP * 0.95, 20'000)));
}

TEST(Loss, BurstsAndGapsOfGilbertElliottAreGeometric) {
  constexpr double kP = 0.05;
  constexpr double kR = 0.2;
  const std::vector<bool> lost = decisions({.burst = {.p = kP, .r = kR}}, 2'000'000);
  const std::vector<double> bursts = runs(lost, true);
  const std::vector<double> gaps = runs(lost, false);
  EXPECT_TRUE(fits_counts(bursts, geometric(kR, bursts)));
  EXPECT_FALSE(fits_counts(bursts, geometric(kR * 1.04, bursts)));
  EXPECT_FALSE(fits_counts(bursts, geometric(kR * 0.96, bursts)));
  EXPECT_TRUE(fits_counts(gaps, geometric(kP, gaps)));
  EXPECT_FALSE(fits_counts(gaps, geometric(kP * 1.04, gaps)));
}

TEST(Loss, EachStateOfGilbertElliottHasItsProbability) {
  const BurstSettings burst{.p = 0.02, .r = 0.1, .loss_bad = 0.5, .loss_good = 0.01};
  const std::vector<bool> lost = decisions({.burst = burst}, 4'000'000);
  const double bad = burst.p / (burst.p + burst.r);
  const double rate = bad * burst.loss_bad + (1 - bad) * burst.loss_good;
  const auto measured = static_cast<double>(std::ranges::count(lost, true)) / 4'000'000;
  EXPECT_NEAR(measured / rate, 1, 0.02);
}

// HIPSTER's Figure 4: payloads from an acknowledgement's 12 bytes to a data packet's 1012.
TEST(Loss, GrowsWithTheLengthAsInHipster) {
  constexpr double kDecisions = 100'000;
  constexpr int kLengths = 21;
  const auto expected = [&](double l0_bytes) {
    std::vector<double> counts;
    for (double length = 12; length <= 1012; length += 50) {
      const double p = 1 - std::exp(-(length / l0_bytes));
      counts.push_back(kDecisions * p);
      counts.push_back(kDecisions * (1 - p));
    }
    return counts;
  };
  std::vector<double> counts;
  for (uint32_t length = 12; length <= 1012; length += 50) {
    const std::vector<bool> lost =
        decisions({.length_l0_bytes = 1024}, static_cast<size_t>(kDecisions), length, length);
    counts.push_back(static_cast<double>(std::ranges::count(lost, true)));
    counts.push_back(kDecisions - counts.back());
  }
  EXPECT_TRUE(fits_counts(counts, expected(1024), kLengths));
  EXPECT_FALSE(fits_counts(counts, expected(1024 * 1.02), kLengths));
  EXPECT_FALSE(fits_counts(counts, expected(1024 * 0.98), kLengths));
}

std::vector<size_t> numbers(const std::vector<bool>& lost) {
  std::vector<size_t> found;
  for (size_t i = 0; i < lost.size(); ++i) {
    if (lost[i]) found.push_back(i + 1);
  }
  return found;
}

TEST(Loss, TakesEveryNthAndThoseOfTheList) {
  EXPECT_EQ(numbers(decisions({.every_nth = 4}, 13)), (std::vector<size_t>{4, 8, 12}));
  EXPECT_EQ(numbers(decisions({.every_nth = 1}, 3)), (std::vector<size_t>{1, 2, 3}));
  EXPECT_EQ(numbers(decisions({.packets = {7, 1, 2}}, 10)), (std::vector<size_t>{1, 2, 7}));
  EXPECT_EQ(numbers(decisions({}, 1000)), std::vector<size_t>{});
}

TEST(Loss, CountsAnewOnlyWhenItsSettingsChange) {
  Loss loss({.packets = {3, 2}});
  uint64_t frame = 0;
  const auto next = [&] { return loss.decide(kLossSeed, ++frame, 100); };
  EXPECT_EQ(next(), kLossNone);
  loss.set({.packets = {3, 2}});
  EXPECT_EQ(next(), kLossPackets);
  loss.set({.packets = {2}});
  EXPECT_EQ(next(), kLossNone);
  EXPECT_EQ(next(), kLossPackets);
  EXPECT_EQ(next(), kLossNone);
}

TEST(Loss, OneModelDoesNotMoveTheDrawsOfAnother) {
  const LossSettings alone{.probability = 0.1};
  LossSettings both = alone;
  both.burst = {.p = 0.1, .r = 0.3};
  Loss one(alone);
  Loss two(both);
  uint64_t by_probability = 0;
  for (uint64_t frame = 1; frame <= 10'000; ++frame) {
    const LossReason expected = one.decide(kLossSeed, frame, 100);
    const LossReason seen = two.decide(kLossSeed, frame, 100);
    EXPECT_TRUE(seen == kLossBurst || seen == expected) << frame;
    by_probability += seen == kLossProbability ? 1 : 0;
  }
  EXPECT_GT(by_probability, 0U);
}

}  // namespace
}  // namespace sluice::emulator
