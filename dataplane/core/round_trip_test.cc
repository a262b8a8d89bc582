// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/round_trip.h"

#include <gtest/gtest.h>

#include "dataplane/base/time_for_test.h"

namespace sluice {
namespace {

TEST(RoundTrip, RefusesEchoesOfWhatWasNotSent) {
  const uint64_t opened_ns = 1000 * kMs;
  const uint64_t now_ns = 30'000 * kMs;
  RoundTrip trip(opened_ns);
  EXPECT_TRUE(trip.echoed(0, 77, now_ns)) << "nothing arrived there yet";
  EXPECT_FALSE(trip.echoed(opened_ns - 1, 0, now_ns)) << "before the flow";
  EXPECT_FALSE(trip.echoed(now_ns, 0, now_ns)) << "in no time";
  EXPECT_FALSE(trip.echoed(now_ns + kMs, 0, now_ns)) << "not sent yet";
  EXPECT_FALSE(trip.echoed(now_ns - kMs, 7 * kMs, now_ns)) << "held for longer than it was there";
  EXPECT_FALSE(trip.echoed(now_ns - kMs, UINT64_MAX, now_ns));
  EXPECT_FALSE(trip.echoed(now_ns - 20'000 * kMs, 0, now_ns)) << "longer than a sender waits";
  EXPECT_EQ(trip.smoothed_ns(), 0U);
  EXPECT_EQ(trip.shortest_ns(), 0U);
  EXPECT_TRUE(trip.echoed(now_ns - 20'000 * kMs, 19'990 * kMs, now_ns)) << "held long is no round trip";
  EXPECT_EQ(trip.smoothed_ns(), 10 * kMs);
}

// So it was in a virtual machine, where a turn took longer than a datagram on its way: all echoes seemed
// false.
TEST(RoundTrip, OneThatIsShorterThanAReceiversTurnIsKnown) {
  RoundTrip trip(0);
  const uint64_t now_ns = 1000 * kMs;
  EXPECT_TRUE(trip.echoed(now_ns - kMs, 3 * kMs, now_ns));
  EXPECT_EQ(trip.smoothed_ns(), RoundTrip::kUnseenNs);
  EXPECT_TRUE(trip.echoed(now_ns - 8 * kMs, 0, now_ns));
  const uint64_t smoothed_ns = trip.smoothed_ns();
  EXPECT_TRUE(trip.echoed(now_ns - kMs, kMs, now_ns));
  EXPECT_EQ(trip.smoothed_ns(), smoothed_ns) << "it says nothing where the round trip is known";
  EXPECT_EQ(trip.shortest_ns(), 8 * kMs);
}

TEST(RoundTrip, AFalseEchoThatCouldBeIsForgotten) {
  RoundTrip trip(0);
  uint64_t now_ns = 20'000 * kMs;
  const auto honest = [&](int count) {
    for (int i = 0; i < count; ++i) {
      now_ns += kMs;
      ASSERT_TRUE(trip.echoed(now_ns - kMs, 0, now_ns));
    }
  };
  honest(10);
  ASSERT_TRUE(trip.echoed(now_ns - 9000 * kMs, 0, now_ns));
  ASSERT_TRUE(trip.echoed(now_ns - 1, 0, now_ns));
  EXPECT_EQ(trip.shortest_ns(), 1U);
  honest(100);
  EXPECT_LT(trip.smoothed_ns(), 2 * kMs);
  honest(20'000);
  EXPECT_EQ(trip.shortest_ns(), kMs);
}

}  // namespace
}  // namespace sluice
