// SPDX-License-Identifier: Apache-2.0
#include "control/leg/siblings.h"

#include <gtest/gtest.h>

namespace sluice::transfer {
namespace {

using Stage = Siblings::Stage;
constexpr LegId kOne(0);
constexpr LegId kOther(1);

class SiblingsTest : public testing::Test {
 protected:
  SiblingsTest() {
    siblings_.add(lanes_);
    siblings_.add(other_lanes_);
  }
  void come_to(Stage one, Stage other) {
    siblings_.set(kOne, one);
    siblings_.set(kOther, other);
  }

  LaneSet lanes_{kOne};
  LaneSet other_lanes_{kOther};
  Siblings siblings_;
};

TEST_F(SiblingsTest, OneLegAtATimeBegins) {
  come_to(Stage::kBegins, Stage::kWaits);
  EXPECT_TRUE(siblings_.may_begin(kOne));
  EXPECT_FALSE(siblings_.may_begin(kOther));
  come_to(Stage::kMoves, Stage::kWaits);
  EXPECT_TRUE(siblings_.may_begin(kOther));
}

TEST_F(SiblingsTest, WhoOnlySpeaksWithItsPeerIsInNobodysWay) {
  come_to(Stage::kCalls, Stage::kWaits);
  EXPECT_TRUE(siblings_.may_begin(kOther));
  come_to(Stage::kCalls, Stage::kBegins);
  EXPECT_FALSE(siblings_.may_begin(kOne)) << "it waits for its turn to agree";
  come_to(Stage::kDue, Stage::kMoves);
  EXPECT_TRUE(siblings_.some_join());
  come_to(Stage::kCalls, Stage::kMoves);
  EXPECT_FALSE(siblings_.some_join()) << "nobody knows when its peer answers";
  EXPECT_TRUE(siblings_.some_come()) << "it may have what nobody else has";
  EXPECT_TRUE(siblings_.may_begin(kOne));
  EXPECT_FALSE(siblings_.is_last(kOther)) << "it is about to need the data end";
  EXPECT_FALSE(siblings_.alone(kOther)) << "it holds flows";
}

TEST_F(SiblingsTest, OnlyWhoMayBeFasterIsWaitedFor) {
  come_to(Stage::kMoves, Stage::kDue);
  EXPECT_TRUE(siblings_.faster_joins(kOne)) << "nothing is known of either";
  siblings_.expect(kOne, 40'000'000);
  EXPECT_TRUE(siblings_.faster_joins(kOne)) << "nothing is known of the other";
  siblings_.expect(kOther, 30'000'000);
  EXPECT_FALSE(siblings_.faster_joins(kOne));
  siblings_.expect(kOther, 50'000'000);
  EXPECT_TRUE(siblings_.faster_joins(kOne));
  come_to(Stage::kMoves, Stage::kCalls);
  EXPECT_FALSE(siblings_.faster_joins(kOne)) << "nobody knows when its peer answers";
  EXPECT_TRUE(siblings_.faster_calls(kOne));
  siblings_.expect(kOther, 0);
  EXPECT_FALSE(siblings_.faster_calls(kOne));
  come_to(Stage::kMoves, Stage::kMoves);
  EXPECT_FALSE(siblings_.faster_joins(kOne)) << "it has joined";
  EXPECT_FALSE(siblings_.some_come());
}

TEST_F(SiblingsTest, TheFastestHasItsTurnFirst) {
  EXPECT_EQ(siblings_.in_order(), (std::vector{kOne, kOther}));
  siblings_.expect(kOther, 30'000'000);
  EXPECT_EQ(siblings_.in_order(), (std::vector{kOther, kOne})) << "of the first nothing is known";
  siblings_.expect(kOne, 40'000'000);
  EXPECT_EQ(siblings_.in_order(), (std::vector{kOne, kOther}));
}

TEST_F(SiblingsTest, NobodyComesWhileTheDataEndIsClosed) {
  come_to(Stage::kClosesEnd, Stage::kWaits);
  EXPECT_FALSE(siblings_.may_begin(kOther));
  come_to(Stage::kCloses, Stage::kWaits);
  EXPECT_TRUE(siblings_.may_begin(kOther)) << "a leg that leaves others is in nobody's way";
}

TEST_F(SiblingsTest, OnlyOneIsTheLast) {
  come_to(Stage::kMoves, Stage::kMoves);
  EXPECT_FALSE(siblings_.is_last(kOne));
  siblings_.set(kOne, Stage::kCloses);
  EXPECT_TRUE(siblings_.is_last(kOther));
  EXPECT_FALSE(siblings_.alone(kOther)) << "the flows of the first are still to end";
  siblings_.set(kOther, Stage::kClosesEnd);
  EXPECT_FALSE(siblings_.is_last(kOne));
  siblings_.set(kOne, Stage::kAway);
  EXPECT_TRUE(siblings_.alone(kOther));
  // Two that wait and are stopped at once would otherwise wait for each other.
  come_to(Stage::kClosesEnd, Stage::kWaits);
  EXPECT_FALSE(siblings_.is_last(kOther));
}

TEST_F(SiblingsTest, WhoHasMovedDataWasHeard) {
  come_to(Stage::kAway, Stage::kAway);
  EXPECT_FALSE(siblings_.some_unreached()) << "nobody is on its way";
  come_to(Stage::kMoves, Stage::kCalls);
  EXPECT_TRUE(siblings_.some_unreached());
  EXPECT_FALSE(siblings_.near_unheard());
  siblings_.reached(kOther, Siblings::kNearNs);
  EXPECT_FALSE(siblings_.some_unreached());
  EXPECT_TRUE(siblings_.near_unheard());
  siblings_.reached(kOther, Siblings::kNearNs + 1);
  EXPECT_FALSE(siblings_.near_unheard()) << "it is far";
  siblings_.reached(kOther, 0);
  come_to(Stage::kMoves, Stage::kBegins);
  EXPECT_TRUE(siblings_.near_unheard());
  come_to(Stage::kMoves, Stage::kMoves);
  EXPECT_FALSE(siblings_.near_unheard());
  come_to(Stage::kMoves, Stage::kCalls);
  EXPECT_FALSE(siblings_.near_unheard()) << "it comes back";
}

TEST_F(SiblingsTest, CountsWhatChanges) {
  const uint64_t before = siblings_.changes();
  come_to(Stage::kWaits, Stage::kAway);
  EXPECT_EQ(siblings_.changes(), before + 1);
  EXPECT_TRUE(siblings_.some_go_on());
  EXPECT_FALSE(siblings_.all_away());
}

}  // namespace
}  // namespace sluice::transfer
