// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/padded_probes.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice {
namespace {

TEST(PaddedQueue, SizesTakeTurnsUntilEachIsUsedUp) {
  PaddedQueue queue;
  ASSERT_TRUE(queue.add(8000, 1));
  ASSERT_TRUE(queue.add(1200, 3));
  ASSERT_TRUE(queue.add(4000, 2));
  std::vector<uint32_t> sent;
  for (; !queue.empty(); queue.pop()) sent.push_back(queue.front());
  EXPECT_EQ(sent, (std::vector<uint32_t>{8000, 1200, 4000, 1200, 4000, 1200}));
}

TEST(PaddedQueue, ANewRoundTakesThePlaceOfTheOneBefore) {
  PaddedQueue queue;
  queue.begin(1);
  for (uint32_t i = 0; i < wire::kPaddedSizesMax; ++i) ASSERT_TRUE(queue.add(1000 + i, 6));
  queue.pop();
  queue.begin(1);
  EXPECT_EQ(queue.front(), 1001U) << "of the same round";
  queue.begin(2);
  EXPECT_TRUE(queue.empty());
  ASSERT_TRUE(queue.add(8000, 2));
  EXPECT_EQ(queue.front(), 8000U);
}

TEST(PaddedQueue, RefusesMoreSizesOrProbesThanItHasRoomFor) {
  PaddedQueue queue;
  for (uint32_t i = 0; i < wire::kPaddedSizesMax; ++i) EXPECT_TRUE(queue.add(1000 + i, 1));
  EXPECT_FALSE(queue.add(5000, 1));
  EXPECT_TRUE(queue.add(1000, PaddedQueue::kCountMax - 1));
  EXPECT_FALSE(queue.add(1000, 1));
  EXPECT_FALSE(PaddedQueue().add(1000, 0));
}

TEST(PaddedCount, CountsBySizeAndForgetsWhatCameLongestAgo) {
  PaddedCount count;
  EXPECT_TRUE(count.told(1).empty());
  count.came(100, 1);
  for (uint32_t i = 1; i < wire::kPaddedSizesMax; ++i) count.came(100 + i, 1);
  count.came(100, 2);
  count.came(9000, 3);
  const auto told = count.told(4);
  ASSERT_EQ(told.size(), wire::kPaddedSizesMax);
  EXPECT_EQ(told[0].bytes, 9000U);
  EXPECT_EQ(told[1].bytes, 100U);
  EXPECT_EQ(told[1].count, 2U);
  for (const wire::PaddedSize& each : told) EXPECT_NE(each.bytes, 101U);
}

TEST(PaddedCount, IsToldForAWhile) {
  PaddedCount count;
  count.came(100, 1);
  EXPECT_EQ(count.told(PaddedCount::kToldNs).size(), 1U);
  EXPECT_TRUE(count.told(PaddedCount::kToldNs + 1).empty());
  count.came(100, PaddedCount::kToldNs + 2);
  EXPECT_EQ(count.told(PaddedCount::kToldNs + 2)[0].count, 2U);
}

}  // namespace
}  // namespace sluice
