// SPDX-License-Identifier: Apache-2.0
#include "control/board/flow_set.h"

#include <gtest/gtest.h>

namespace sluice::board {
namespace {

FlowSet three_lanes() {
  FlowSet set;
  set.granted({.session = SessionSlotId(9),
               .flows = {{.slot = FlowSlotId(40), .worker = 0, .local_port = 47000},
                         {.slot = FlowSlotId(7), .worker = 1, .local_port = 47001},
                         {.slot = FlowSlotId(127), .worker = 2, .local_port = 47002}}});
  return set;
}

TEST(FlowSet, LanesAreCountedInTheOrderInWhichTheyWereGranted) {
  const FlowSet set = three_lanes();
  EXPECT_EQ(set.session(), SessionSlotId(9));
  EXPECT_EQ(set.size(), 3U);
  EXPECT_EQ(set.slot(LaneId(0)), FlowSlotId(40));
  EXPECT_EQ(set.slot(LaneId(2)), FlowSlotId(127));
  EXPECT_EQ(set.lane_of(FlowSlotId(7)), LaneId(1));
  EXPECT_EQ(set.lane_of(FlowSlotId(0)), std::nullopt) << "the slot of another transfer";
  EXPECT_TRUE(set.contains(LaneId(2)));
  EXPECT_FALSE(set.contains(LaneId(3)));
  ASSERT_EQ(set.grants().size(), 3U);
  EXPECT_EQ(set.grants()[1].local_port, 47001);
}

TEST(FlowSet, ShrinkingGivesBackTheLastLanes) {
  FlowSet set = three_lanes();
  EXPECT_TRUE(set.shrink(3).empty());
  EXPECT_TRUE(set.shrink(16).empty());
  EXPECT_EQ(set.shrink(1), (std::vector<FlowSlotId>{FlowSlotId(127), FlowSlotId(7)}));
  EXPECT_EQ(set.size(), 1U);
  EXPECT_EQ(set.slot(LaneId(0)), FlowSlotId(40));
  EXPECT_EQ(set.lane_of(FlowSlotId(7)), std::nullopt);
  EXPECT_EQ(set.session(), SessionSlotId(9)) << "the session stays";
}

TEST(FlowSet, ACommandGoesToTheSlotOfItsLane) {
  const Command command = three_lanes().command({.kind = CommandKind::kRepair,
                                                 .flow = {.leg = {}, .lane = LaneId(1)},
                                                 .object = ObjectId(3),
                                                 .range = {.offset = 1ULL << 40, .length = 9},
                                                 .tag = 5});
  EXPECT_EQ(command.kind, CommandKind::kRepair);
  EXPECT_EQ(command.flow, 7U);
  EXPECT_EQ(command.object, 3U);
  EXPECT_EQ(command.tag, 5U);
  EXPECT_EQ(command.offset, 1ULL << 40);
  EXPECT_EQ(command.length, 9U);
}

TEST(FlowSet, HasNothingOnceItIsCleared) {
  FlowSet set = three_lanes();
  set.clear();
  EXPECT_EQ(set.size(), 0U);
  EXPECT_EQ(set.session(), std::nullopt);
  EXPECT_EQ(set.lane_of(FlowSlotId(40)), std::nullopt);
  EXPECT_TRUE(set.grants().empty());
  // The next attempt gets others.
  set.granted({.session = SessionSlotId(1), .flows = {{.slot = FlowSlotId(2)}}});
  EXPECT_EQ(set.slot(LaneId(0)), FlowSlotId(2));
  EXPECT_EQ(set.session(), SessionSlotId(1));
}

}  // namespace
}  // namespace sluice::board
