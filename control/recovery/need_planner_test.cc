// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/need_planner.h"

#include <gtest/gtest.h>

namespace sluice::recovery {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint32_t kExtent = 65536;

class NeedPlannerTest : public testing::Test {
 protected:
  ExtentMap done_{100 * kExtent, kExtent};
  NeedPlanner planner_;
};

TEST_F(NeedPlannerTest, NeverAsksForWhatWasNotSent) {
  EXPECT_TRUE(planner_.due(done_, 10'000 * kMs).empty());
  planner_.sent(done_, 0, {0, 4 * kExtent}, 10'000 * kMs);
  for (uint64_t i = 0; i < 4; ++i) done_.set(i);
  EXPECT_TRUE(planner_.due(done_, 20'000 * kMs).empty());
  EXPECT_FALSE(planner_.awaiting(done_));
}

TEST_F(NeedPlannerTest, AsksTheLaneThatCarriedTheRangeAfterSilence) {
  planner_.sent(done_, 2, {8 * kExtent, 4 * kExtent}, 1000 * kMs);
  done_.set(9);
  planner_.progress(1010 * kMs);
  EXPECT_TRUE(planner_.due(done_, 1209 * kMs).empty());
  const std::vector<Query> queries = planner_.due(done_, 1210 * kMs);
  ASSERT_EQ(queries.size(), 2U);
  EXPECT_EQ(queries[0].lane, 2U);
  EXPECT_EQ(queries[0].range, (Range{8 * kExtent, kExtent}));
  EXPECT_EQ(queries[1].range, (Range{10 * kExtent, 2 * kExtent}));
  EXPECT_EQ(planner_.lane_of(8 * kExtent + 5), 2U);
}

TEST_F(NeedPlannerTest, BacksOffWithoutProgressAndStartsAnewWithIt) {
  planner_.sent(done_, 0, {0, kExtent}, 0);
  uint64_t now_ns = 0;
  uint64_t last_ns = 0;
  uint64_t last_wait_ns = 0;
  for (int round = 0; round < 12; ++round) {
    while (planner_.due(done_, now_ns).empty()) now_ns += kMs;
    const uint64_t wait_ns = now_ns - last_ns;
    EXPECT_GE(wait_ns, last_wait_ns);
    EXPECT_LE(wait_ns, NeedPlanner::kQuietMaxNs + kMs);
    last_wait_ns = wait_ns;
    last_ns = now_ns;
  }
  EXPECT_GT(last_wait_ns, 10 * NeedPlanner::kQuietNs);
  planner_.sent(done_, 0, {kExtent, kExtent}, now_ns);
  done_.set(1);
  planner_.progress(now_ns);
  EXPECT_TRUE(planner_.due(done_, now_ns + NeedPlanner::kQuietNs - 1).empty());
  EXPECT_FALSE(planner_.due(done_, now_ns + NeedPlanner::kQuietNs).empty());
}

TEST_F(NeedPlannerTest, RefusesRangesThatLeaveTheObject) {
  EXPECT_FALSE(planner_.sent(done_, 0, {0, 0}, 0));
  EXPECT_FALSE(planner_.sent(done_, 0, {100 * kExtent, 1}, 0));
  EXPECT_FALSE(planner_.sent(done_, 0, {kExtent, ~uint64_t{0}}, 0));
  EXPECT_TRUE(planner_.sent(done_, 0, {99 * kExtent, kExtent}, 0));
}

TEST_F(NeedPlannerTest, AsksABoundedNumberOfQuestions) {
  planner_.sent(done_, 0, {0, 100 * kExtent}, 0);
  for (uint64_t i = 0; i < 100; i += 2) done_.set(i);
  EXPECT_EQ(planner_.due(done_, 1000 * kMs).size(), NeedPlanner::kQueriesMax);
}

TEST_F(NeedPlannerTest, AnExtendedReportOfARangeCountsOnce) {
  planner_.sent(done_, 1, {0, 2 * kExtent}, 0);
  planner_.sent(done_, 1, {0, 4 * kExtent}, 0);
  const std::vector<Query> queries = planner_.due(done_, 1000 * kMs);
  ASSERT_EQ(queries.size(), 1U);
  EXPECT_EQ(queries[0].range, (Range{0, 4 * kExtent}));
}

TEST(NeedPlanner, AsksForEachByteOnceThoughRangesOverlap) {
  NeedPlanner planner;
  const ExtentMap done(10 * 4096, 4096);
  planner.sent(done, 1, {0, 4 * 4096}, 0);
  planner.sent(done, 2, {2 * 4096, 4 * 4096}, 0);
  const auto queries = planner.due(done, NeedPlanner::kQuietNs);
  ASSERT_EQ(queries.size(), 2U);
  EXPECT_EQ(queries[0].lane, 1U);
  EXPECT_EQ(queries[0].range, (Range{0, 4 * 4096}));
  EXPECT_EQ(queries[1].lane, 2U);
  EXPECT_EQ(queries[1].range, (Range{4 * 4096, 2 * 4096}));
}

TEST(NeedPlanner, AsksForAllThatIsMissingWhereNobodyKnowsWhatWasSent) {
  NeedPlanner planner;
  ExtentMap done(4 * 4096, 4096);
  done.set(0);
  planner.sent_unknown(0);
  planner.sent(done, 3, {2 * 4096, 4096}, 0);
  EXPECT_TRUE(planner.awaiting(done));
  const auto queries = planner.due(done, NeedPlanner::kQuietNs);
  ASSERT_EQ(queries.size(), 3U);
  EXPECT_EQ(queries[0].range, (Range{4096, 4096}));
  EXPECT_EQ(queries[1].range, (Range{2 * 4096, 4096}));
  EXPECT_EQ(queries[1].lane, 3U);
  EXPECT_EQ(queries[2].range, (Range{3 * 4096, 4096}));
}

}  // namespace
}  // namespace sluice::recovery
