// SPDX-License-Identifier: Apache-2.0
#include "control/parts/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "dataplane/base/check.h"

namespace sluice::parts {
namespace {

constexpr uint32_t kPieceBytes = 1U << 20;
constexpr uint64_t kMs = 1'000'000;
constexpr ObjectId kMain{0};
constexpr ObjectId kOther{1};
constexpr LegId kFast{0};
constexpr LegId kSlow{1};

class Planning : public testing::Test {
 protected:
  void join(LegId leg, uint64_t rate_bps, uint64_t rtt_ms = 10) {
    planner.join(leg, {.rtt_ns = rtt_ms * kMs, .expected_rate_bps = rate_bps, .lanes = 1}, now);
  }
  void tick(uint64_t ms = 10) {
    now += ms * kMs;
    planner.tick(now);
    heed(planner.take_actions());
  }
  // What each leg is asked for, as its source understands it.
  void heed(Planner::Actions actions) {
    for (const Want& want : actions.wants) {
      for (const Range& range : want.portion.ranges) {
        for (uint64_t offset = range.offset; offset < range.end(); offset += kPieceBytes) {
          const Place place{.object = want.portion.object, .extent = ExtentId(offset / kPieceBytes)};
          if (want.withdrawn) {
            asked[want.portion.leg].erase(place);
          } else {
            asked[want.portion.leg].insert(place);
          }
        }
      }
    }
    last = std::move(actions);
  }
  bool bring(LegId leg, uint64_t extent, ObjectId object = kMain) {
    planner.received(leg, kPieceBytes, now);
    return planner.arrived(leg, object, ExtentId(extent), now);
  }
  bool is_asked(LegId leg, uint64_t extent, ObjectId object = kMain) {
    return asked[leg].contains({.object = object, .extent = ExtentId(extent)});
  }

  Planner planner{{.extent_bytes = kPieceBytes}};
  uint64_t now = 1000 * kMs;
  std::map<LegId, std::set<Place>> asked;
  Planner::Actions last;
};

TEST_F(Planning, OneExtentGoesToWhoeverBringsItFirst) {
  planner.add(kMain, 1'000'000, Planner::Kind::kDivisible);
  join(kSlow, 10'000'000, 1);
  join(kFast, 1'000'000'000, 10);
  tick();
  EXPECT_TRUE(is_asked(kFast, 0));
  EXPECT_TRUE(asked[kSlow].empty());
  EXPECT_EQ(planner.outstanding_bytes(kFast), 1'000'000U);
  EXPECT_TRUE(bring(kFast, 0));
  EXPECT_TRUE(planner.complete(kMain));
  EXPECT_EQ(planner.missing_bytes(), 0U);
  EXPECT_FALSE(bring(kFast, 0));
}

TEST_F(Planning, WhileOthersAreAboutToJoinTheFirstBeginsWithAnExtent) {
  planner.add(kMain, 100ULL * kPieceBytes, Planner::Kind::kDivisible);
  planner.expect_others(true);
  join(kFast, 1'000'000'000);
  tick();
  EXPECT_EQ(planner.outstanding_bytes(kFast), kPieceBytes);
  EXPECT_TRUE(bring(kFast, 0));
  tick();
  EXPECT_EQ(planner.outstanding_bytes(kFast), kPieceBytes) << "it is not held up";
  planner.expect_others(false);
  tick();
  EXPECT_GT(planner.outstanding_bytes(kFast), kPieceBytes);
}

TEST_F(Planning, ASecondLegGetsNothingOfAnObjectBeforeItIsCompared) {
  planner.add(kMain, 100ULL * kPieceBytes, Planner::Kind::kDivisible);
  join(kFast, 100'000'000);
  join(kSlow, 100'000'000);
  tick();
  EXPECT_EQ(last.compare, std::vector<ObjectId>{kMain});
  tick();
  EXPECT_TRUE(last.compare.empty());
  EXPECT_TRUE(asked[kSlow].empty());
  EXPECT_FALSE(bring(kSlow, 99));  // nor does it count
  planner.open_to(kSlow, kMain);
  tick();
  // It takes a long run of its own, not what the first one is about to go on with.
  ASSERT_FALSE(asked[kSlow].empty());
  EXPECT_GE(asked[kSlow].begin()->extent.value(), 40U);
  EXPECT_TRUE(is_asked(kFast, 0));
}

TEST_F(Planning, EachLegHasAnObjectOfItsOwnWhileThereAreEnough) {
  for (uint32_t object = 0; object < 10; ++object)
    planner.add(ObjectId(object), 4ULL * kPieceBytes, Planner::Kind::kDivisible);
  join(kFast, 100'000'000);
  join(kSlow, 100'000'000);
  tick();
  EXPECT_TRUE(last.compare.empty());
  for (const Place& place : asked[kSlow]) EXPECT_FALSE(is_asked(kFast, 0, place.object));
}

TEST_F(Planning, WhatALegLeavesIsAskedOfTheOthers) {
  planner.add(kMain, 4ULL * kPieceBytes, Planner::Kind::kDivisible);
  join(kFast, 1'000'000'000);
  tick();
  EXPECT_EQ(asked[kFast].size(), 4U);
  EXPECT_TRUE(bring(kFast, 1));
  join(kSlow, 100'000'000);
  planner.leave(kFast);
  tick();
  EXPECT_EQ(last.compare, std::vector<ObjectId>{kMain});
  planner.open_to(kSlow, kMain);
  tick();
  EXPECT_EQ(asked[kSlow].size(), 3U);
  EXPECT_FALSE(is_asked(kSlow, 1));
  // On a new stream all of it is said again.
  const std::vector<Portion> again = planner.outstanding(kSlow);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].ranges, (std::vector<Range>{{.offset = 2ULL * kPieceBytes, .length = 2ULL * kPieceBytes},
                                                 {.offset = 0, .length = kPieceBytes}}));
}

TEST_F(Planning, ASilentLegGivesAllBackAndIsTriedAgain) {
  planner.add(kMain, 1000ULL * kPieceBytes, Planner::Kind::kDivisible);
  join(kFast, 100'000'000);
  join(kSlow, 100'000'000);
  tick();
  planner.open_to(kSlow, kMain);
  tick();
  EXPECT_FALSE(asked[kSlow].empty());
  const auto others_go_on = [&](uint64_t ms) {
    for (uint64_t step = 0; step < ms / 10; ++step) {
      planner.received(kFast, 1000, now);
      tick();
    }
  };
  others_go_on(400);
  EXPECT_FALSE(planner.silent(kSlow));
  others_go_on(200);
  EXPECT_TRUE(planner.silent(kSlow));
  EXPECT_TRUE(asked[kSlow].empty());
  EXPECT_FALSE(planner.silent(kFast));
  others_go_on(1100);  // it is tried again by itself,
  EXPECT_EQ(asked[kSlow].size(), 1U);
  others_go_on(600);
  EXPECT_TRUE(asked[kSlow].empty());
  planner.received(kSlow, 10, now);  // and once it speaks
  tick();
  ASSERT_EQ(asked[kSlow].size(), 1U);
  EXPECT_TRUE(bring(kSlow, asked[kSlow].begin()->extent.value()));
  EXPECT_FALSE(planner.silent(kSlow));
  tick();
  EXPECT_GT(planner.outstanding_bytes(kSlow), kPieceBytes);
}

TEST_F(Planning, AProcessThatStoodStillDoesNotBlameItsPeers) {
  planner.add(kMain, 100ULL * kPieceBytes, Planner::Kind::kDivisible);
  join(kFast, 100'000'000);
  tick();
  tick(10'000);
  EXPECT_FALSE(planner.silent(kFast));
}

TEST_F(Planning, ALegWhoseExtentsAreNeverConfirmedIsSilentAtLast) {
  planner.add(kMain, 1000ULL * kPieceBytes, Planner::Kind::kDivisible);
  join(kFast, 100'000'000);
  uint64_t most = 0;
  for (int step = 0; step < 3000 && !planner.silent(kFast); ++step) {
    planner.received(kFast, 125'000, now);
    tick();
    most = std::max(most, planner.outstanding_bytes(kFast));
  }
  EXPECT_TRUE(planner.silent(kFast));
  EXPECT_LT(most, 100ULL * kPieceBytes);
}

TEST_F(Planning, AWholeObjectBeginsAnewAtAnotherLeg) {
  planner.add(kMain, 4ULL * kPieceBytes, Planner::Kind::kWhole);
  join(kFast, 1'000'000'000);
  join(kSlow, 100'000'000);
  tick();
  EXPECT_EQ(asked[kFast].size(), 4U);
  EXPECT_TRUE(asked[kSlow].empty());
  EXPECT_TRUE(bring(kFast, 0));
  planner.leave(kFast);
  tick();
  EXPECT_EQ(last.begin_anew, std::vector<ObjectId>{kMain});
  EXPECT_EQ(asked[kSlow].size(), 4U);
  EXPECT_EQ(planner.missing_bytes(), 4ULL * kPieceBytes);
  join(kFast, 1'000'000'000);
  EXPECT_FALSE(bring(kFast, 1));
  EXPECT_TRUE(bring(kSlow, 1));
}

// All of it came from that leg.
TEST_F(Planning, AWholeObjectOfOneExtentCountsWhoeverBringsIt) {
  planner.add(kMain, kPieceBytes, Planner::Kind::kWhole);
  join(kFast, 1'000'000'000);
  join(kSlow, 100'000'000);
  tick();
  ASSERT_TRUE(is_asked(kFast, 0));
  planner.leave(kFast);
  tick();
  ASSERT_TRUE(is_asked(kSlow, 0));
  join(kFast, 1'000'000'000);
  EXPECT_TRUE(bring(kFast, 0));
  EXPECT_TRUE(planner.complete(kMain));
}

// Whoever is done takes whole objects that another leg has not begun, but none of which it has another
// version.
TEST_F(Planning, AWholeObjectIsNotTakenByWhoHasItOtherwise) {
  constexpr uint32_t kObjects = 20;
  for (uint32_t each = 0; each < kObjects; ++each)
    planner.add(ObjectId(each), kPieceBytes, Planner::Kind::kWhole);
  join(kSlow, 20'000'000'000);
  tick();
  ASSERT_EQ(asked[kSlow].size(), kObjects) << "nothing is left for anybody else";
  const auto slowly = [&] {
    planner.received(kSlow, 2000, now);
    tick();
  };
  for (int i = 0; i < 200; ++i) slowly();
  for (uint32_t each = 0; each < kObjects - 1; ++each) planner.close_to(kFast, ObjectId(each));
  join(kFast, 10'000'000'000);
  for (int i = 0; i < 20; ++i) slowly();
  for (const Place& place : asked[kFast]) EXPECT_EQ(place.object, ObjectId(kObjects - 1));
  EXPECT_EQ(asked[kFast].size(), 1U) << "the one that it may";
}

TEST_F(Planning, WhatIsHeldIsNotAskedFor) {
  planner.add(kMain, 10ULL * kPieceBytes - 5, Planner::Kind::kDivisible);
  planner.holds(kMain, {{.offset = 0, .length = 3ULL * kPieceBytes},
                        {.offset = 9ULL * kPieceBytes, .length = kPieceBytes - 5}});
  EXPECT_EQ(planner.missing_bytes(), 6ULL * kPieceBytes);
  join(kFast, 1'000'000'000);
  tick();
  EXPECT_EQ(last.compare, std::vector<ObjectId>{kMain});  // nobody knows who brought that
  planner.open_to(kFast, kMain);
  tick();
  EXPECT_EQ(asked[kFast].size(), 6U);
  EXPECT_FALSE(is_asked(kFast, 9));
}

TEST_F(Planning, WhatIsForgottenIsAskedForAgain) {
  planner.add(kMain, 2ULL * kPieceBytes, Planner::Kind::kDivisible);
  join(kFast, 1'000'000'000);
  tick();
  bring(kFast, 0);
  bring(kFast, 1);
  EXPECT_TRUE(planner.complete(kMain));
  asked.clear();
  planner.forgotten(kMain, {.first = ExtentId(1), .end = ExtentId(2)});
  EXPECT_FALSE(planner.complete(kMain));
  tick();
  EXPECT_TRUE(is_asked(kFast, 1));
  EXPECT_FALSE(is_asked(kFast, 0));
  planner.remove(kMain);
  tick();
  EXPECT_TRUE(asked[kFast].empty());
  EXPECT_EQ(planner.missing_bytes(), 0U);
}

// 100 TB in extents of 4 MB.
TEST_F(Planning, TwentyFiveMillionExtentsCostNoMoreThanAFew) {
  planner.add(kMain, 25'000'000ULL * kPieceBytes, Planner::Kind::kDivisible);
  join(kFast, 10'000'000'000);
  join(kSlow, 10'000'000'000);
  tick();
  planner.open_to(kSlow, kMain);
  base::set_dchecks(false);  // they look at every run, not at every extent, but also at the map
  for (int step = 0; step < 2000; ++step) {
    tick();
    for (const LegId leg : {kFast, kSlow}) {
      for (int count = 0; count < 12 && !asked[leg].empty(); ++count) {
        const uint64_t extent = asked[leg].begin()->extent.value();
        asked[leg].erase(asked[leg].begin());
        EXPECT_TRUE(bring(leg, extent));
      }
    }
  }
  base::set_dchecks(true);
  planner.check_invariants();
  EXPECT_LE(planner.outstanding(kFast)[0].ranges.size(), 2U);
}

}  // namespace
}  // namespace sluice::parts
