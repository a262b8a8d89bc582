// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/delay.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tools/wire/statistics_for_test.h"

namespace sluice::emulator {
namespace {

constexpr uint64_t kSeed = 6;
constexpr size_t kFrames = 100'000;
constexpr DelaySettings kHipster{.exponential_us_over_ln = 1'024'000};

// Delays in microseconds, of frames that start one second apart.
std::vector<double> delays(const DelaySettings& settings, uint32_t length, size_t frames = kFrames) {
  Delay delay(settings);
  std::vector<double> found;
  for (uint64_t i = 1; i <= frames; ++i) {
    const uint64_t start_ns = i * 1'000'000'000;
    const uint64_t arrives_ns = delay.arrives_ns(Draws(kSeed, i, Stage::kDelay), length, start_ns);
    EXPECT_GE(arrives_ns, start_ns);
    found.push_back(static_cast<double>(arrives_ns - start_ns) / 1000);
  }
  return found;
}

auto exponential_law(double mean) {
  return [mean](double x) { return -std::expm1(-x / mean); };
}

// HIPSTER's Figure 6: the distribution for payloads of 1012 bytes.
TEST(Delay, IsExponentialAsInHipster) {
  const std::vector<double> sample = delays(kHipster, 1012);
  const double mean_us = 1'024'000 / std::log(1012);
  EXPECT_TRUE(fits_law(sample, exponential_law(mean_us)));
  EXPECT_FALSE(fits_law(sample, exponential_law(mean_us * 1.03)));
  EXPECT_FALSE(fits_law(sample, exponential_law(mean_us * 0.97)));
}

// HIPSTER's Figure 5: means for payloads of 12 to 1012 bytes; each mean deviates by 1/sqrt(n) of itself.
TEST(Delay, HasTheMeansOfHipster) {
  for (uint32_t length = 12; length <= 1012; length += 100) {
    double sum_us = 0;
    for (const double each : delays(kHipster, length)) sum_us += each;
    const double mean_us = 1'024'000 / std::log(length);
    EXPECT_NEAR(sum_us / kFrames / mean_us, 1, 4 / std::sqrt(kFrames)) << length;
  }
}

TEST(Delay, OfAnEmptyDatagramIsThatOfTwoBytes) {
  EXPECT_EQ(delays(kHipster, 0, 100), delays(kHipster, 2, 100));
  EXPECT_EQ(delays(kHipster, 1, 100), delays(kHipster, 2, 100));
}

TEST(Delay, MeanGrowsLinearlyWithTheLength) {
  const DelaySettings settings{.exponential_us = 100, .exponential_us_per_byte = 0.5};
  const std::vector<double> sample = delays(settings, 8192);
  EXPECT_TRUE(fits_law(sample, exponential_law(100 + 4096)));
  EXPECT_FALSE(fits_law(sample, exponential_law((100 + 4096) * 1.03)));
  EXPECT_FALSE(fits_law(sample, exponential_law(100)));
}

TEST(Delay, UniformJitterIsUniform) {
  const std::vector<double> sample = delays({.fixed_us = 500, .uniform_us = 200}, 100);
  const auto law = [](double from, double to) {
    return [=](double x) { return std::clamp((x - from) / (to - from), 0.0, 1.0); };
  };
  EXPECT_TRUE(fits_law(sample, law(300, 700)));
  EXPECT_FALSE(fits_law(sample, law(295, 705)));
  EXPECT_FALSE(fits_law(sample, law(305, 705)));
}

TEST(Delay, NormalJitterIsNormal) {
  const std::vector<double> sample = delays({.fixed_us = 1000, .normal_us = 100}, 100);
  const auto law = [](double mean, double deviation) {
    return [=](double x) { return std::erfc((mean - x) / deviation / std::sqrt(2)) / 2; };
  };
  EXPECT_TRUE(fits_law(sample, law(1000, 100)));
  EXPECT_FALSE(fits_law(sample, law(1000, 105)));
  EXPECT_FALSE(fits_law(sample, law(1003, 100)));
}

TEST(Delay, FixedIsExact) {
  for (const double each : delays({.fixed_us = 12'345.678}, 100, 10)) EXPECT_DOUBLE_EQ(each, 12'345.678);
  for (const double each : delays({}, 100, 10)) EXPECT_EQ(each, 0);
}

TEST(Delay, KeepsOrderOnlyWhenAsked) {
  DelaySettings settings{.exponential_us = 1000};
  for (const bool keep : {false, true}) {
    settings.keep_order = keep;
    Delay delay(settings);
    size_t back = 0;
    uint64_t last_ns = 0;
    for (uint64_t i = 1; i <= 10'000; ++i) {
      const uint64_t arrives_ns = delay.arrives_ns(Draws(kSeed, i, Stage::kDelay), 100, i * 1000);
      back += arrives_ns < last_ns ? 1 : 0;
      last_ns = arrives_ns;
    }
    if (keep) {
      EXPECT_EQ(back, 0U);
    } else {
      EXPECT_GT(back, 1000U);
    }
  }
}

}  // namespace
}  // namespace sluice::emulator
