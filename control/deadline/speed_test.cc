// SPDX-License-Identifier: Apache-2.0
#include "control/deadline/speed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace sluice::deadline {
namespace {

constexpr double kMbit = 1e6;

// Seconds of a path of 100 Mbit/s; each resembles the one before it.
class Path {
 public:
  Path(uint64_t seed, double deviation, double resembles)
      : random_(seed), deviation_(deviation), resembles_(resembles) {
    for (int i = 0; i < 100; ++i) (void)second();
  }
  double second() {
    std::normal_distribution<double> normal;
    now_ = resembles_ * now_ + std::sqrt(1 - resembles_ * resembles_) * normal(random_);
    return (100 + deviation_ * now_) * kMbit;
  }

 private:
  std::mt19937_64 random_;
  double deviation_;
  double resembles_;
  double now_ = 0;
};

Speed steady(double mean_bps, double deviation_bps, double samples = 30) {
  return {.mean_bps = mean_bps, .deviation_bps = deviation_bps, .samples = samples};
}

TEST(Chance, GrowsWithTimeAndSpeedAndFallsWithBytes) {
  double before = 0;
  for (double seconds = 1; seconds < 200; seconds += 1) {
    const double now = chance(steady(100, 30), 5000, seconds);
    EXPECT_GE(now, before);
    EXPECT_LE(now, 1);
    before = now;
  }
  EXPECT_GT(before, 0.99);
  for (double bits = 1000; bits < 9000; bits += 500) {
    EXPECT_LE(chance(steady(100, 30), bits + 500, 50), chance(steady(100, 30), bits, 50));
    EXPECT_LE(chance(steady(100, 30), bits, 50), chance(steady(110, 30), bits, 50));
  }
  EXPECT_NEAR(chance(steady(100, 30), 5000, 50), 0.5, 1e-9);
}

TEST(Chance, OfNothingLeftIsCertainAndOfAMomentThatHasPassedIsNone) {
  EXPECT_EQ(chance(steady(100, 30), 0, 10), 1);
  EXPECT_EQ(chance(steady(100, 30), 0, 0), 1);
  EXPECT_EQ(chance(steady(100, 30), 1, 0), 0);
  EXPECT_EQ(chance(steady(100, 30), 1, -5), 0);
  EXPECT_EQ(chance(steady(0, 0), 1, 5), 0) << "what stands still arrives never";
}

TEST(Chance, IsAsOftenKeptAsItSays) {
  for (const double resembles : {0.0, 0.5}) {
    for (const double wanted : {0.1, 0.3, 0.5, 0.7, 0.9}) {
      constexpr int kRounds = 4000;
      int kept = 0;
      for (int round = 0; round < kRounds; ++round) {
        Path path(static_cast<uint64_t>(round) + 1, 20, resembles);
        std::vector<double> samples;
        for (int i = 0; i < 40; ++i) samples.push_back(path.second());
        const Speed speed = *speed_of(samples);
        // As many bits as arrive within a minute with the wanted chance.
        double low = 0, high = 60 * 300 * kMbit;
        for (int i = 0; i < 60; ++i)
          ((chance(speed, (low + high) / 2, 60) > wanted) ? low : high) = (low + high) / 2;
        double bits = 0;
        for (int i = 0; i < 60; ++i) bits += path.second();
        kept += bits >= low;
      }
      EXPECT_NEAR(static_cast<double>(kept) / kRounds, wanted, resembles > 0 ? 0.05 : 0.035)
          << "of samples that resemble each other by " << resembles;
    }
  }
}

TEST(Chance, IsCarefulWithFewSamples) {
  EXPECT_LT(chance(steady(100, 10, 3), 9500, 100), chance(steady(100, 10, 60), 9500, 100));
  EXPECT_LT(chance(steady(100, 0, 60), 9990, 100), 0.9) << "however even it was";
  EXPECT_GT(chance(steady(100, 0, 60), 9000, 100), 0.99);
}

TEST(SpeedOf, KnowsMeanAndDeviationOfEnoughSamples) {
  EXPECT_FALSE(speed_of({}));
  const std::vector<double> two{1, 2};
  EXPECT_FALSE(speed_of(two));
  const std::vector<double> three{1, 2, 3};
  EXPECT_DOUBLE_EQ(speed_of(three)->mean_bps, 2);
  EXPECT_DOUBLE_EQ(speed_of(three)->deviation_bps, 1);
  EXPECT_DOUBLE_EQ(speed_of(three)->samples, 3);
  std::vector<double> slow_then_fast(10, 100);
  slow_then_fast.insert(slow_then_fast.end(), 10, 200);
  EXPECT_LT(speed_of(slow_then_fast)->samples, 4) << "that is one change, not twenty samples";
}

TEST(SecondsFor, GivesTheTimeOfThatChance) {
  const Speed speed = steady(100, 30);
  for (const double wanted : {0.1, 0.5, 0.9}) {
    const auto seconds = seconds_for(speed, 5000, wanted);
    ASSERT_TRUE(seconds);
    EXPECT_NEAR(chance(speed, 5000, *seconds), wanted, 1e-3);
  }
  EXPECT_EQ(seconds_for(speed, 0, 0.9), 0);
  EXPECT_FALSE(seconds_for(steady(0, 0), 5000, 0.9));
  EXPECT_FALSE(seconds_for(steady(100, 500, 2), 5000, 0.9)) << "nobody knows whether it moves at all";
}

}  // namespace
}  // namespace sluice::deadline
