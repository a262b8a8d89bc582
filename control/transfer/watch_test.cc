// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/watch.h"

#include <gtest/gtest.h>

namespace sluice::transfer {
namespace {

constexpr uint64_t kNow = 50 * kSecondNs;

TEST(Watch, LooksNoMoreOftenThanItsInterval) {
  Watch watch;
  const Job job;
  control::FlowFigures figures;
  watch.start(job, figures, kNow);
  EXPECT_EQ(watch.due_ns(), kNow + Watch::kIntervalNs);
  figures.bytes = 1;
  EXPECT_FALSE(watch.look(job, figures, watch.due_ns() - 1));
  EXPECT_TRUE(watch.look(job, figures, watch.due_ns()));
  EXPECT_EQ(watch.due_ns(), kNow + 2 * Watch::kIntervalNs);
}

TEST(Watch, WhatMovesIsNotStill) {
  Watch watch;
  const Job job;
  control::FlowFigures figures;
  watch.start(job, figures, kNow);
  uint64_t now_ns = kNow;
  for (int i = 0; i < 10; ++i) {
    ++(i % 2 == 0 ? figures.bytes : figures.bytes_done);
    now_ns = watch.due_ns();
    EXPECT_TRUE(watch.look(job, figures, now_ns));
    EXPECT_EQ(watch.still_ns(now_ns), 0U);
  }
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(watch.look(job, figures, watch.due_ns()));
  EXPECT_EQ(watch.still_ns(now_ns + 5), 5U);
}

TEST(Watch, ANewAttemptBeginsToStandStillAnew) {
  Watch watch;
  const Job job;
  watch.start(job, {}, kNow);
  EXPECT_EQ(watch.still_ns(kNow + 9 * kSecondNs), 9 * kSecondNs);
  watch.start(job, {}, kNow + 9 * kSecondNs);
  EXPECT_EQ(watch.still_ns(kNow + 9 * kSecondNs), 0U);
}

}  // namespace
}  // namespace sluice::transfer
