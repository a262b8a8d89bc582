// SPDX-License-Identifier: Apache-2.0
#include "control/leg/watch.h"

#include <gtest/gtest.h>

namespace sluice::transfer {
namespace {

constexpr uint64_t kBegin = 50 * kSecondNs;

TEST(Watch, LooksNoMoreOftenThanItsInterval) {
  Watch watch;
  const Job job;
  board::FlowFigures figures;
  watch.start(job, figures, kBegin);
  EXPECT_EQ(watch.due_ns(), kBegin + Watch::kIntervalNs);
  figures.bytes = 1;
  EXPECT_FALSE(watch.look(job, figures, watch.due_ns() - 1));
  EXPECT_TRUE(watch.look(job, figures, watch.due_ns()));
  EXPECT_EQ(watch.due_ns(), kBegin + 2 * Watch::kIntervalNs);
}

TEST(Watch, WhatMovesIsNotStill) {
  Watch watch;
  const Job job;
  board::FlowFigures figures;
  watch.start(job, figures, kBegin);
  uint64_t now_ns = kBegin;
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
  watch.start(job, {}, kBegin);
  EXPECT_EQ(watch.still_ns(kBegin + 9 * kSecondNs), 9 * kSecondNs);
  watch.start(job, {}, kBegin + 9 * kSecondNs);
  EXPECT_EQ(watch.still_ns(kBegin + 9 * kSecondNs), 0U);
}

}  // namespace
}  // namespace sluice::transfer
