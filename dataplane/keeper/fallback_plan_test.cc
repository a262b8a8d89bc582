// SPDX-License-Identifier: Apache-2.0
#include "dataplane/keeper/fallback_plan.h"

#include <gtest/gtest.h>

namespace sluice::keeper {
namespace {

constexpr uint64_t kS = 1'000'000'000;

TEST(FallbackPlan, ReturnsOnceTheDeviceHasBeenThereForTheWholeWait) {
  FallbackPlan plan(30 * kS);
  plan.fell(100 * kS);
  EXPECT_FALSE(plan.may_return(false, 200 * kS));
  EXPECT_FALSE(plan.may_return(true, 201 * kS));
  EXPECT_FALSE(plan.may_return(true, 230 * kS));
  EXPECT_TRUE(plan.may_return(true, 231 * kS));
}

TEST(FallbackPlan, AGapStartsTheWaitAgain) {
  FallbackPlan plan(30 * kS);
  plan.fell(0);
  EXPECT_FALSE(plan.may_return(true, 1 * kS));
  EXPECT_FALSE(plan.may_return(false, 30 * kS));
  EXPECT_FALSE(plan.may_return(true, 32 * kS));
  EXPECT_FALSE(plan.may_return(true, 61 * kS));
  EXPECT_TRUE(plan.may_return(true, 62 * kS));
}

TEST(FallbackPlan, ADeviceThatFallsAgainSoonWaitsTwiceAsLongUpToABound) {
  FallbackPlan plan(30 * kS);
  uint64_t now_ns = 0;
  for (const uint64_t wait : {1, 2, 4, 8, 16, 16, 16}) {
    plan.fell(now_ns);
    EXPECT_EQ(plan.wait_ns(), wait * 30 * kS);
    EXPECT_FALSE(plan.may_return(true, now_ns + 1));
    now_ns += 1 + plan.wait_ns();
    EXPECT_TRUE(plan.may_return(true, now_ns));
    plan.served(now_ns);
    now_ns += FallbackPlan::kGoodNs - 1;
  }
}

TEST(FallbackPlan, ADeviceThatServedLongIsTrustedAgain) {
  FallbackPlan plan(30 * kS);
  plan.served(1);
  plan.fell(2);
  plan.served(3);
  plan.fell(4);
  EXPECT_EQ(plan.wait_ns(), 60 * kS);
  plan.served(5);
  plan.fell(5 + FallbackPlan::kGoodNs);
  EXPECT_EQ(plan.wait_ns(), 30 * kS);
}

TEST(FallbackPlan, ADeviceThatDoesNotStartCountsAsAFall) {
  FallbackPlan plan(30 * kS);
  plan.fell(1);
  plan.fell(2);
  EXPECT_EQ(plan.wait_ns(), 60 * kS);
}

}  // namespace
}  // namespace sluice::keeper
