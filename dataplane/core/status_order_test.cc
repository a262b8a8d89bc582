// Which status counts as the newest, on paths that disorder them and among forged ones.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/status_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace sluice {
namespace {

constexpr uint64_t kFarAhead = 1ULL << 40;

// HIPSTER's channel: delays of an exponential law, with hundreds of statuses under way.
TEST(StatusOrder, DisorderIsNoLie) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> delay(1.0 / 600);  // in intervals between statuses
  std::vector<std::pair<double, uint64_t>> arrivals;
  for (uint64_t number = 0; number < 100'000; ++number) {
    arrivals.emplace_back(static_cast<double>(number) + delay(random), number);
  }
  std::sort(arrivals.begin(), arrivals.end());
  StatusOrder order;
  uint64_t highest = 0;
  for (const auto& [at, number] : arrivals) {
    ASSERT_EQ(order.newest(number), number >= highest) << number;
    highest = std::max(highest, number);
  }
}

TEST(StatusOrder, ANumberThatLiedIsForgottenAfterAFewInOrder) {
  StatusOrder order;
  EXPECT_TRUE(order.newest(7));
  EXPECT_TRUE(order.newest(kFarAhead));
  uint64_t number = 8;
  while (!order.newest(number)) ++number;
  EXPECT_EQ(number, 8 + StatusOrder::kInOrderMax);
  EXPECT_TRUE(order.newest(number + 1));
  EXPECT_FALSE(order.newest(number));
}

TEST(StatusOrder, ANumberThatLiedIsForgottenAfterManyInDisorder) {
  StatusOrder order;
  EXPECT_TRUE(order.newest(kFarAhead));
  uint32_t others = 0;
  while (!order.newest(1000 + (others ^ 1))) ++others;
  EXPECT_EQ(others, StatusOrder::kOvertakenMax);
}

}  // namespace
}  // namespace sluice
