// The delay of an empty path, as rounds show it.
// SPDX-License-Identifier: Apache-2.0
#include "control/rate/delay_base.h"

#include <gtest/gtest.h>

#include "dataplane/base/time_for_test.h"

namespace sluice::rate {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

TEST(DelayBase, IsTheLeastOfTheLastWhileWhateverTheClocksSay) {
  for (const int64_t clocks : {int64_t{0}, -900 * kMillisecond, 1'000'000'000 * kMillisecond}) {
    DelayBase base;
    EXPECT_FALSE(base.known());
    for (const int64_t delay : {13, 11, 10, 10, 15}) base.take(clocks + delay * kMillisecond, 0, kSecond);
    EXPECT_TRUE(base.known());
    EXPECT_NEAR(base.queue_s(clocks + 15 * kMillisecond), 0.005, 1e-9);
    EXPECT_EQ(base.queue_s(clocks + 9 * kMillisecond), 0);
  }
}

TEST(DelayBase, OneRoundAloneIsNotBelieved) {
  DelayBase base;
  for (int i = 0; i < 10; ++i) base.take(10 * kMillisecond, 0, kSecond);
  base.take(-100'000 * kMillisecond, 0, kSecond);
  EXPECT_EQ(base.queue_s(10 * kMillisecond), 0);
}

TEST(DelayBase, NoQueueIsLongerThanARoundTrip) {
  const uint64_t round_trip_ns = 20 * kMillisecond;
  DelayBase base;
  for (const int64_t delay : {10, 10, -100'000, -100'000})
    base.take(delay * kMillisecond, round_trip_ns, kSecond);
  EXPECT_GT(base.queue_s(10 * kMillisecond), 0) << "two agree";
  base.take(10 * kMillisecond, round_trip_ns, kSecond);
  EXPECT_EQ(base.queue_s(10 * kMillisecond), 0) << "but the round trip does not";
  base.take(30 * kMillisecond, 3 * round_trip_ns, kSecond);
  EXPECT_NEAR(base.queue_s(30 * kMillisecond), 0.02, 1e-9) << "a queue shows in the round trip as well";
}

TEST(DelayBase, ForgetsAfterTwoWindows) {
  DelayBase base;
  for (int i = 0; i < 3; ++i) base.take(10 * kMillisecond, 0, kSecond);
  for (int i = 0; i < 3; ++i) base.take(30 * kMillisecond, 0, 7 * kSecond);
  EXPECT_NEAR(base.queue_s(30 * kMillisecond), 0.02, 1e-9);
  for (int i = 0; i < 3; ++i) base.take(30 * kMillisecond, 0, 13 * kSecond);
  EXPECT_EQ(base.queue_s(30 * kMillisecond), 0);
}

TEST(DelayBase, IsSetByADrain) {
  DelayBase base;
  for (int i = 0; i < 3; ++i) base.take(10 * kMillisecond, 0, kSecond);
  base.set(12 * kMillisecond, kSecond);
  EXPECT_NEAR(base.queue_s(15 * kMillisecond), 0.003, 1e-9);
}

TEST(DelayBase, NoQueueIsLongerThanAnyRouterHas) {
  DelayBase base;
  for (int i = 0; i < 3; ++i) base.take(INT64_MIN, 0, kSecond);
  EXPECT_EQ(base.queue_s(INT64_MAX - 1), DelayBase::kQueueMaxS);
}

}  // namespace
}  // namespace sluice::rate
