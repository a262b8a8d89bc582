// SPDX-License-Identifier: Apache-2.0
#include "control/rate/loss_law.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace sluice::rate {
namespace {

constexpr uint32_t kOverhead = 100;
constexpr uint32_t kWire = 38;

// Probes of eight sizes over a channel of that law.
std::vector<SizeSample> probed(double kept, double loss_length_bytes, uint64_t each = 64,
                               uint32_t carries = 100'000, uint64_t seed = 5) {
  std::mt19937_64 random(seed);
  std::vector<SizeSample> samples;
  for (const uint32_t bytes : {256U, 424U, 704U, 1168U, 1940U, 3224U, 5356U, 8904U}) {
    SizeSample sample{.chunk_bytes = bytes, .sent = each};
    const double length = bytes + kOverhead;
    const double arrives = length > carries ? 0 : kept * std::exp(-length / loss_length_bytes);
    for (uint64_t i = 0; i < each; ++i) {
      sample.arrived += std::uniform_real_distribution<>(0, 1)(random) < arrives ? 1 : 0;
    }
    samples.push_back(sample);
  }
  return samples;
}

TEST(LossLaw, WhereNothingIsLostTheLongestWins) {
  const SizeCurve curve = curve_of(probed(1, 1e12), kOverhead, kWire);
  EXPECT_EQ(curve.best_chunk_bytes, 8904U);
  EXPECT_EQ(curve.law.per_byte, 0);
  EXPECT_NEAR(curve.law.arrives(8904), 1, 0.01);
  EXPECT_FALSE(curve.cut);
}

TEST(LossLaw, LossThatTakesAllSizesAlikeChangesNothing) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const SizeCurve curve = curve_of(probed(0.6, 1e12, 64, 100'000, seed), kOverhead, kWire);
    EXPECT_EQ(curve.best_chunk_bytes, 8904U) << seed;
    EXPECT_NEAR(curve.law.kept, 0.6, 0.1);
  }
}

TEST(LossLaw, FindsTheLengthAtWhichLossSetsIn) {
  for (const double length : {500.0, 1000.0, 3000.0}) {
    for (const double kept : {1.0, 0.7}) {
      const SizeCurve curve = curve_of(probed(kept, length), kOverhead, kWire);
      EXPECT_NEAR(1 / curve.law.per_byte / length, 1, 0.25) << length << " " << kept;
      EXPECT_NEAR(curve.law.kept, kept, 0.3);
      EXPECT_FALSE(curve.cut);
    }
  }
}

// c exp(-c / L0) / (c + H) is largest where c^2 + H c = H L0.
TEST(LossLaw, TheBestSizeIsThatOfBytesOnTheWire) {
  const SizeCurve curve = curve_of(probed(1, 1000, 100'000), kOverhead, kWire);
  const double h = kOverhead + kWire;
  const double expected = (std::sqrt(h * h + 4 * h * 1000) - h) / 2;
  EXPECT_NEAR(curve.best_chunk_bytes, expected, 20);
  EXPECT_GT(curve.gain, 100);
  ASSERT_EQ(curve.points.size(), 8U);
  EXPECT_NEAR(curve.points[0].arrives, std::exp(-0.348), 0.01);
  EXPECT_NEAR(curve.points[0].goodput, std::exp(-0.348) * 256 / 394, 0.01);
  EXPECT_NEAR(curve.points[0].payload_bytes, std::exp(-0.348) * 256, 3);
}

TEST(LossLaw, APathThatCarriesNoLongerOnesIsNoLaw) {
  const SizeCurve curve = curve_of(probed(1, 1e12, 64, 1500), kOverhead, kWire);
  EXPECT_TRUE(curve.cut);
  EXPECT_EQ(curve.law.per_byte, 0);
}

TEST(LossLaw, NothingThatCameDecidesNothing) {
  const SizeCurve curve = curve_of(probed(0, 1e12), kOverhead, kWire);
  EXPECT_FALSE(curve.cut);
  EXPECT_EQ(curve.best_chunk_bytes, 8904U);
  EXPECT_EQ(curve_of({}, kOverhead, kWire).best_chunk_bytes, 0U);
}

}  // namespace
}  // namespace sluice::rate
