// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/wake_delay.h"

#include <gtest/gtest.h>

#include "dataplane/base/time_for_test.h"

namespace sluice {
namespace {

TEST(WakeDelay, IsWhatSleepsAreLateByOnAverage) {
  WakeDelay delay;
  for (int i = 0; i < 200; ++i) delay.woke(i % 2 == 0 ? 30'000 : 50'000, 0);
  EXPECT_NEAR(static_cast<double>(delay.ns()), 40'000, 3'000);
}

// As by the most of late: 200 us with the first thread that had the core, and frames of 90 us are waited for
// awake.
TEST(WakeDelay, OneLateSleepAmongManyCountsLittle) {
  WakeDelay delay;
  for (int i = 0; i < 200; ++i) delay.woke(i % 16 == 0 ? 3 * kMs : 15'000, 0);
  EXPECT_LT(delay.ns(), 40'000U);
}

TEST(WakeDelay, IsForgottenByWhoNeverSleepsForIt) {
  WakeDelay delay;
  for (int i = 0; i < 100; ++i) delay.woke(WakeDelay::kNsMax, kMs);
  EXPECT_GT(delay.ns(), WakeDelay::kNsMax * 9 / 10);
  for (uint64_t ns = kMs; ns < 2 * kMs; ns += 1000) delay.stayed_awake(ns);
  EXPECT_GT(delay.ns(), WakeDelay::kNsMax * 9 / 10) << "not with every turn";
  for (uint64_t ns = 2 * kMs; ns < 50 * kMs; ns += 1000) delay.stayed_awake(ns);
  EXPECT_LT(delay.ns(), 1'000U);
}

}  // namespace
}  // namespace sluice
