// SPDX-License-Identifier: Apache-2.0
#include "control/lease/lease_claims.h"

#include <gtest/gtest.h>

namespace sluice::lease {
namespace {

using transfer::Lease;
using Next = LeaseClaims::Next;

constexpr int64_t kClaimedUnixNs = 1'000'000;

class LeaseClaimsTest : public testing::Test {
 protected:
  Result<LeaseClaims::Step> claim(uint64_t epoch, const std::string& holder, bool goes_on = false) {
    const Lease lease{.name = name_, .epoch = epoch};
    return claims_.claim(
        {.lease = lease, .holder = holder, .goes_on = goes_on, .now_unix_ns = kClaimedUnixNs});
  }
  Next next(uint64_t epoch, const std::string& holder, bool goes_on = false) {
    const Result<LeaseClaims::Step> step = claim(epoch, holder, goes_on);
    EXPECT_TRUE(step) << step.error().message;
    return step->next;
  }
  void written(uint64_t epoch) { claims_.written({.name = name_, .epoch = epoch}); }

  const std::string name_ = "0123456789abcdef";
  LeaseClaims claims_;
};

TEST_F(LeaseClaimsTest, NothingBeginsBeforeTheJournalHasIt) {
  const Result<LeaseClaims::Step> step = claim(1, "alpha");
  ASSERT_TRUE(step);
  EXPECT_EQ(step->next, Next::kWrite);
  EXPECT_EQ(step->row,
            (transfer::LeaseRow{
                .lease = {.name = name_, .epoch = 1}, .holder = "alpha", .used_unix_ns = kClaimedUnixNs}));
  EXPECT_EQ(next(1, "alpha"), Next::kLater);
  written(1);
  EXPECT_EQ(next(1, "alpha"), Next::kLook);
}

TEST_F(LeaseClaimsTest, AHigherEpochCountsFromTheMomentOnAtWhichItIsClaimed) {
  ASSERT_EQ(next(1, "alpha"), Next::kWrite);
  written(1);
  ASSERT_EQ(next(2, "beta"), Next::kWrite);
  const Result<LeaseClaims::Step> late = claim(1, "alpha", true);
  ASSERT_FALSE(late) << "also while the journal does not have it";
  EXPECT_EQ(late.error().code, ErrorCode::kSuperseded);
  ASSERT_TRUE(claims_.over({.name = name_, .epoch = 1}));
  EXPECT_EQ(claims_.over({.name = name_, .epoch = 1})->code, ErrorCode::kSuperseded);
  EXPECT_FALSE(claims_.over({.name = name_, .epoch = 2}));
}

TEST_F(LeaseClaimsTest, WhoeverIsRefusedTakesNothing) {
  ASSERT_EQ(next(2, "alpha"), Next::kWrite);
  written(2);
  EXPECT_FALSE(claim(2, "beta")) << "another node under the same epoch";
  EXPECT_FALSE(claim(1, "beta"));
  EXPECT_EQ(next(2, "alpha"), Next::kLook);
}

TEST_F(LeaseClaimsTest, OnlyWhatRunsUnderALowerEpochOfTheSameEnds) {
  const Lease claimed{.name = name_, .epoch = 2};
  EXPECT_TRUE(LeaseClaims::ends(Lease{.name = name_, .epoch = 1}, claimed));
  EXPECT_FALSE(LeaseClaims::ends(Lease{.name = name_, .epoch = 2}, claimed));
  EXPECT_FALSE(LeaseClaims::ends(Lease{.name = "another one of 16", .epoch = 1}, claimed));
  EXPECT_FALSE(LeaseClaims::ends(std::nullopt, claimed));
}

TEST_F(LeaseClaimsTest, TheNextLifeKnowsWhatTheJournalHas) {
  claims_.restore({.lease = {.name = name_, .epoch = 5}, .holder = "alpha", .used_unix_ns = kClaimedUnixNs});
  EXPECT_FALSE(claim(4, "alpha"));
  EXPECT_EQ(next(5, "alpha"), Next::kLook);
  EXPECT_TRUE(claims_.over({.name = name_, .epoch = 4}));
}

}  // namespace
}  // namespace sluice::lease
