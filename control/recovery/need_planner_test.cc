// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/need_planner.h"

#include <gtest/gtest.h>

#include "control/recovery/numbers_for_test.h"
#include "dataplane/base/time_for_test.h"

namespace sluice::recovery {
namespace {

class NeedPlannerTest : public testing::Test {
 protected:
  ExtentMap done_{layout_of(100 * kExtent)};
  NeedPlanner planner_;
};

TEST_F(NeedPlannerTest, NeverAsksForWhatWasNotSent) {
  EXPECT_TRUE(planner_.take_due(done_, 10'000 * kMs).empty());
  planner_.note_sent(done_, on_lane(0), extents(ExtentId(0), 4), 10'000 * kMs);
  for (ExtentId extent; extent < ExtentId(4); ++extent) done_.set(extent);
  EXPECT_TRUE(planner_.take_due(done_, 20'000 * kMs).empty());
}

TEST_F(NeedPlannerTest, AsksTheLaneThatCarriedTheRangeAfterSilence) {
  planner_.note_sent(done_, on_lane(2), extents(ExtentId(8), 4), 1000 * kMs);
  done_.set(ExtentId(9));
  planner_.note_progress(1010 * kMs);
  EXPECT_TRUE(planner_.take_due(done_, 1209 * kMs).empty());
  const std::vector<Query> queries = planner_.take_due(done_, 1210 * kMs);
  ASSERT_EQ(queries.size(), 2U);
  EXPECT_EQ(queries[0].flow, on_lane(2));
  EXPECT_EQ(queries[0].range, (extents(ExtentId(8))));
  EXPECT_EQ(queries[1].range, (extents(ExtentId(10), 2)));
  EXPECT_EQ(planner_.flow_of(8 * kExtent + 5), on_lane(2));
}

TEST_F(NeedPlannerTest, BacksOffWithoutProgressAndStartsAnewWithIt) {
  planner_.note_sent(done_, on_lane(0), extents(ExtentId(0)), 0);
  uint64_t now_ns = 0;
  uint64_t last_ns = 0;
  uint64_t last_wait_ns = 0;
  for (int round = 0; round < 12; ++round) {
    while (planner_.take_due(done_, now_ns).empty()) now_ns += kMs;
    const uint64_t wait_ns = now_ns - last_ns;
    EXPECT_GE(wait_ns, last_wait_ns);
    EXPECT_LE(wait_ns, NeedPlanner::kQuietMaxNs + kMs);
    last_wait_ns = wait_ns;
    last_ns = now_ns;
  }
  EXPECT_GT(last_wait_ns, 10 * NeedPlanner::kQuietNs);
  planner_.note_sent(done_, on_lane(0), extents(ExtentId(1)), now_ns);
  done_.set(ExtentId(1));
  planner_.note_progress(now_ns);
  EXPECT_TRUE(planner_.take_due(done_, now_ns + NeedPlanner::kQuietNs - 1).empty());
  EXPECT_FALSE(planner_.take_due(done_, now_ns + NeedPlanner::kQuietNs).empty());
}

// A slow path: an extent takes 280 ms, and what was lost of several is being sent again.
TEST_F(NeedPlannerTest, WaitsWhileBytesComeForAsLongAsSomeExtentsTake) {
  planner_.note_sent(done_, on_lane(0), extents(ExtentId(0), 4), 0);
  const auto first_asked_ms = [this](uint64_t last_byte_ms) {
    NeedPlanner planner = planner_;
    Arrivals arrivals{.best_bytes_per_s = kExtent * 1000 / 280};
    uint64_t now_ms = 0;
    for (; now_ms < 10'000; now_ms += 20) {
      if (now_ms <= last_byte_ms) arrivals.last_ns = now_ms * kMs;
      if (!planner.take_due(done_, now_ms * kMs, arrivals).empty()) break;
    }
    return now_ms;
  };
  EXPECT_NEAR(static_cast<double>(first_asked_ms(10'000)), NeedPlanner::kQuietExtents * 280.0, 20);
  EXPECT_EQ(first_asked_ms(400), 600U) << "nothing comes any more";
  EXPECT_EQ(first_asked_ms(0), 200U);
}

TEST_F(NeedPlannerTest, RefusesRangesThatLeaveTheObject) {
  EXPECT_FALSE(planner_.note_sent(done_, on_lane(0), {.offset = 0, .length = 0}, 0));
  EXPECT_FALSE(planner_.note_sent(done_, on_lane(0), {.offset = 100 * kExtent, .length = 1}, 0));
  EXPECT_FALSE(planner_.note_sent(done_, on_lane(0), {.offset = kExtent, .length = ~uint64_t{0}}, 0));
  EXPECT_TRUE(planner_.note_sent(done_, on_lane(0), extents(ExtentId(99)), 0));
}

TEST_F(NeedPlannerTest, AsksABoundedNumberOfQuestions) {
  planner_.note_sent(done_, on_lane(0), extents(ExtentId(0), 100), 0);
  for (uint64_t i = 0; i < 100; i += 2) done_.set(ExtentId(i));
  EXPECT_EQ(planner_.take_due(done_, 1000 * kMs).size(), NeedPlanner::kQueriesMax);
}

TEST_F(NeedPlannerTest, AnExtendedReportOfARangeCountsOnce) {
  planner_.note_sent(done_, on_lane(1), extents(ExtentId(0), 2), 0);
  planner_.note_sent(done_, on_lane(1), extents(ExtentId(0), 4), 0);
  const std::vector<Query> queries = planner_.take_due(done_, 1000 * kMs);
  ASSERT_EQ(queries.size(), 1U);
  EXPECT_EQ(queries[0].range, (extents(ExtentId(0), 4)));
}

TEST(NeedPlanner, AsksForEachByteOnceThoughRangesOverlap) {
  NeedPlanner planner;
  const ExtentMap done(layout_of(10 * kExtent));
  planner.note_sent(done, on_lane(1), extents(ExtentId(0), 4), 0);
  planner.note_sent(done, on_lane(2), extents(ExtentId(2), 4), 0);
  const auto queries = planner.take_due(done, NeedPlanner::kQuietNs);
  ASSERT_EQ(queries.size(), 2U);
  EXPECT_EQ(queries[0].flow, on_lane(1));
  EXPECT_EQ(queries[0].range, (extents(ExtentId(0), 4)));
  EXPECT_EQ(queries[1].flow, on_lane(2));
  EXPECT_EQ(queries[1].range, (extents(ExtentId(4), 2)));
}

TEST(NeedPlanner, AsksForAllThatIsMissingWhereNobodyKnowsWhatWasSent) {
  NeedPlanner planner;
  ExtentMap done(layout_of(4 * kExtent));
  done.set(ExtentId(0));
  planner.note_all_maybe_sent(0);
  planner.note_sent(done, on_lane(3), extents(ExtentId(2)), 0);
  const auto queries = planner.take_due(done, NeedPlanner::kQuietNs);
  ASSERT_EQ(queries.size(), 3U);
  EXPECT_EQ(queries[0].range, (extents(ExtentId(1))));
  EXPECT_EQ(queries[1].range, (extents(ExtentId(2))));
  EXPECT_EQ(queries[1].flow, on_lane(3));
  EXPECT_EQ(queries[2].range, (extents(ExtentId(3))));
}

}  // namespace
}  // namespace sluice::recovery
