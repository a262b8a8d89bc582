// SPDX-License-Identifier: Apache-2.0
#include "perf/probe/measures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace sluice::probe {
namespace {

constexpr Pace kMeasuredPace{.rate_bps = 1'000'000'000, .wire_bytes = 10'000};
constexpr uint64_t kMeasuredFrameNs = 80'000;

TEST(Quantiles, AreThoseOfTheSortedValuesWithinABucket) {
  std::mt19937_64 random(7);
  std::vector<uint64_t> values(10'000);
  auto quantiles = std::make_unique<Quantiles>();
  for (auto& value : values) {
    value = random() >> (random() % 60);
    quantiles->add(value);
  }
  std::ranges::sort(values);
  for (const uint32_t per_mille : {1U, 100U, 500U, 990U, 999U, 1000U}) {
    const auto exact = static_cast<double>(values[values.size() * per_mille / 1000 - 1]);
    const auto found = static_cast<double>(quantiles->at(per_mille));
    EXPECT_LE(found, exact);
    EXPECT_GE(found, exact * (1 - 1.0 / 128));
  }
  EXPECT_EQ(quantiles->max(), values.back());
}

TEST(Quantiles, AreExactWhereTheyAreSmallAndZeroWhereThereAreNone) {
  Quantiles quantiles;
  EXPECT_EQ(quantiles.at(500), 0U);
  quantiles.add(1, 99);
  quantiles.add(255);
  quantiles.add(1'000'000, 0);
  EXPECT_EQ(quantiles.at(500), 1U);
  EXPECT_EQ(quantiles.at(990), 1U);
  EXPECT_EQ(quantiles.at(999), 255U);
  EXPECT_EQ(quantiles.max(), 255U);
}

TEST(GapMeter, PerfectGapsHaveNoErrorAndBurstsOfOne) {
  GapMeter meter(kMeasuredPace);
  for (uint64_t i = 0; i < 1000; ++i) meter.add(123 + i * kMeasuredFrameNs, 1);
  meter.end_burst();
  EXPECT_EQ(meter.errors_ns().count(), 999U);
  EXPECT_EQ(meter.errors_ns().max(), 0U);
  EXPECT_EQ(meter.bursts().count(), 1000U);
  EXPECT_EQ(meter.bursts().max(), 1U);
}

TEST(GapMeter, SeesABurstInWhateverPiecesItWasHandedOver) {
  GapMeter meter(kMeasuredPace);
  meter.add(0, 3);
  meter.add(1'000, 2);
  meter.add(1'000 + 5 * kMeasuredFrameNs, 1);
  meter.end_burst();
  EXPECT_EQ(meter.bursts().count(), 2U);
  EXPECT_EQ(meter.bursts().max(), 5U);
  EXPECT_EQ(meter.errors_ns().count(), 5U);
  EXPECT_EQ(meter.errors_ns().max(), 4 * kMeasuredFrameNs);
}

TEST(VirtualQueue, TakesEverythingAtItsRate) {
  VirtualQueue queue(kMeasuredPace, 1);
  for (uint64_t i = 0; i < 10'000; ++i) queue.add(i * kMeasuredFrameNs, 1);
  EXPECT_EQ(queue.accepted(), 10'000U);
}

TEST(VirtualQueue, TakesItsLengthOfABurstAndThenWhatItDrains) {
  VirtualQueue queue(kMeasuredPace, 256);
  queue.add(0, 1000);
  EXPECT_EQ(queue.accepted(), 256U);
  queue.add(10 * kMeasuredFrameNs, 1000);
  EXPECT_EQ(queue.accepted(), 266U);
  queue.add(10'000 * kMeasuredFrameNs, 300);
  EXPECT_EQ(queue.accepted(), 522U);
}

TEST(VirtualQueue, OfTwiceItsRateItTakesHalf) {
  VirtualQueue queue(kMeasuredPace, 256);
  for (uint64_t i = 0; i < 100'000; ++i) queue.add(i * kMeasuredFrameNs / 2, 1);
  EXPECT_NEAR(static_cast<double>(queue.accepted()), 50'000 + 128, 130);
}

}  // namespace
}  // namespace sluice::probe
