// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/loss_estimate.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(LossEstimate, ExpectsALittleBeforeAnythingIsKnown) {
  const LossEstimate none;
  EXPECT_EQ(none.counted(), 0);
  EXPECT_GT(none.expected(), 0.001);
  EXPECT_LT(none.expected(), 0.01);
}

TEST(LossEstimate, ExpectsLessTheMoreCameWithoutALoss) {
  LossEstimate clean;
  double before = clean.expected();
  for (const uint64_t sent : {100U, 1000U, 5000U}) {
    clean.update(sent, 0);
    EXPECT_LT(clean.expected(), before);
    before = clean.expected();
  }
  EXPECT_LT(before, 1e-4);
  EXPECT_EQ(clean.counted(), 0);
}

// A file of 10 MB has some 1,200 datagrams: half of them must tell what the other half may lose.
TEST(LossEstimate, FollowsWhatWasCountedWithinAShortFile) {
  LossEstimate some;
  some.update(600, 6);
  EXPECT_NEAR(some.expected(), 0.01, 0.001);
  EXPECT_DOUBLE_EQ(some.counted(), 0.01);
  some.update(1000, 126);
  EXPECT_NEAR(some.expected(), 0.126, 0.01);
}

TEST(LossEstimate, ForgetsWhatWasLongAgo) {
  LossEstimate changed;
  uint64_t sent = 0;
  for (int i = 0; i < 20; ++i) changed.update(sent += 1000, 0);
  uint64_t lost = 0;
  for (int i = 0; i < 20; ++i) changed.update(sent += 1000, lost += 100);
  EXPECT_NEAR(changed.counted(), 0.1, 0.03);
}

// A start that sends 1500 datagrams to a path that takes 500. The file goes on for 6000.
TEST(LossEstimate, AStartThatOvershotIsNotExpectedOfWhatComesNext) {
  LossEstimate file;
  file.update(1500, 1000);
  EXPECT_GT(file.expected_now(), 0.5);
  uint64_t sent = 1500;
  for (int i = 0; i < 10; ++i) file.update(sent += 100, 1000);
  EXPECT_GT(file.expected(), 0.2);
  EXPECT_LT(file.expected_now(), 0.05);
}

TEST(LossEstimate, ALossThatStaysIsExpectedOfWhatComesNext) {
  LossEstimate path;
  uint64_t lost = 0;
  for (uint64_t sent = 100; sent <= 5000; sent += 100) path.update(sent, lost += 25);
  EXPECT_NEAR(path.expected(), 0.25, 0.01);
  EXPECT_NEAR(path.expected_now(), 0.25, 0.03);
}

// Statuses come out of order, and one may say less than one before.
TEST(LossEstimate, TakesNoOldCounts) {
  LossEstimate some;
  some.update(1000, 10);
  some.update(900, 500);
  some.update(1000, 500);
  EXPECT_DOUBLE_EQ(some.counted(), 0.01);
  some.update(2000, 5);
  EXPECT_DOUBLE_EQ(some.counted(), 0.005);
  LossEstimate all;
  all.update(100, 100);
  EXPECT_LT(all.expected(), 1);
}

}  // namespace
}  // namespace sluice
