// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/sender.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "control/recovery/numbers_for_test.h"

namespace sluice::recovery {
namespace {

using board::CommandKind;
using board::EventKind;

class SenderTest : public testing::Test {
 protected:
  Sender make(std::vector<uint64_t> sizes, uint32_t lanes = 1) {
    Indexed<ObjectId, Layout> layouts;
    for (const uint64_t size : sizes) layouts.push_back(layout_of(size));
    return Sender(layouts, lanes,
                  {.partition_bytes = 2 * kExtent, .short_bytes = 2 * kExtent, .lane_rate_bps = 1'000'000});
  }
  static void begin(Sender& sender) {
    for (ObjectId id; id.value() < sender.objects(); ++id) sender.object_opened(id);
    sender.peer_said_all();
  }
  static board::Event sent(uint64_t extent, uint64_t crc, uint64_t length = kExtent) {
    return {.kind = EventKind::kExtentSent, .offset = extent * kExtent, .length = length, .digest = crc};
  }
  static std::vector<Range> of_kind(const Sender::Actions& actions, CommandKind kind) {
    std::vector<Range> ranges;
    for (const LaneCommand& c : actions.commands) {
      if (c.kind == kind) ranges.push_back(c.range);
    }
    return ranges;
  }
};

TEST_F(SenderTest, GivesNothingBeforeThePeerHasSaidWhatItHolds) {
  Sender sender = make({4 * kExtent});
  sender.object_opened(kFirst);
  sender.peer_has(kFirst, {extents(ExtentId(0))});
  EXPECT_TRUE(sender.take_actions().commands.empty());
  sender.peer_said_all();
  const auto parts = of_kind(sender.take_actions(), CommandKind::kPartition);
  EXPECT_EQ(parts, (std::vector<Range>{extents(ExtentId(1)), extents(ExtentId(2), 2)}));
}

TEST_F(SenderTest, RepairsOnTheLaneThatCarriedTheBytes) {
  Sender sender = make({8 * kExtent}, 2);
  begin(sender);
  sender.take_actions();
  sender.on_event({.kind = EventKind::kExtentSent, .offset = 2 * kExtent, .length = kExtent, .digest = 7},
                  on_lane(1));
  sender.peer_needs(kFirst, std::nullopt, {{.offset = 2 * kExtent + 512, .length = 1024}});
  const Sender::Actions actions = sender.take_actions();
  ASSERT_EQ(actions.commands.size(), 1U);
  EXPECT_EQ(actions.commands[0].kind, CommandKind::kRepair);
  EXPECT_EQ(actions.commands[0].flow, on_lane(1));
  EXPECT_EQ(actions.commands[0].range, (Range{.offset = 2 * kExtent + 512, .length = 1024}));
}

TEST_F(SenderTest, WhatWasNeverSentComesInItsTurnHoweverMuchOfItIsAskedFor) {
  Sender sender = make({1000ULL * kExtent});
  begin(sender);
  sender.take_actions();
  sender.on_event(sent(0, 1), on_lane(0));
  sender.peer_needs(kFirst, on_lane(0), {extents(ExtentId(0), 1000)});
  EXPECT_EQ(of_kind(sender.take_actions(), CommandKind::kRepair), (std::vector<Range>{extents(ExtentId(0))}));
}

TEST_F(SenderTest, APartOfAnExtentWasSentByAnEarlierLifeAndIsRepaired) {
  Sender sender = make({100 * kExtent});  // It was restarted, and knows nothing.
  begin(sender);
  sender.take_actions();
  sender.peer_needs(kFirst, on_lane(0), {{.offset = 50 * kExtent + 4096, .length = 4096}});
  EXPECT_EQ(of_kind(sender.take_actions(), CommandKind::kRepair),
            (std::vector<Range>{{.offset = 50 * kExtent + 4096, .length = 4096}}));
}

TEST_F(SenderTest, AnExtentThatThePeerLostAgainIsRepaired) {
  Sender sender = make({4 * kExtent});
  begin(sender);
  for (uint64_t i = 0; i < 4; ++i) sender.on_event(sent(i, i + 1), on_lane(0));
  sender.peer_has(kFirst, {extents(ExtentId(0), 4)});
  sender.take_actions();
  sender.peer_needs(kFirst, on_lane(0), {extents(ExtentId(1), 2)});  // Its sync failed.
  EXPECT_EQ(of_kind(sender.take_actions(), CommandKind::kRepair),
            (std::vector<Range>{extents(ExtentId(1), 2)}));
}

// Found by the simulator (seed 486): the rest of such an extent lay at the worker of another lane for ever.
TEST_F(SenderTest, WhatThePeerLostAgainIsStillRepairedOnItsLane) {
  Sender sender = make({8 * kExtent}, 2);
  begin(sender);
  sender.take_actions();
  for (const uint64_t extent : {2, 3}) sender.on_event(sent(extent, 7), on_lane(1));
  sender.peer_has(kFirst, {extents(ExtentId(2))});  // It is written, but then a sync fails.
  const uint64_t held = sender.bytes_held();
  sender.peer_needs(kFirst, std::nullopt, {extents(ExtentId(2))});
  EXPECT_EQ(sender.bytes_held(), held - kExtent);
  sender.peer_has(kFirst, {extents(ExtentId(3))});  // That is the rest of the partition.
  sender.take_actions();
  sender.peer_needs(kFirst, std::nullopt, {{.offset = 2 * kExtent + 512, .length = 1024}});
  const Sender::Actions actions = sender.take_actions();
  ASSERT_EQ(actions.commands.size(), 1U);
  EXPECT_EQ(actions.commands[0].kind, CommandKind::kRepair);
  EXPECT_EQ(actions.commands[0].flow, on_lane(1));
}

// Found by the simulator (seed 1307219): only the peer knows where the rest of such an extent lies.
TEST_F(SenderTest, ARestartedSourceRepairsPartsOnTheLaneThatThePeerNames) {
  Sender sender = make({8 * kExtent}, 3);
  begin(sender);
  sender.take_actions();
  sender.peer_needs(kFirst, on_lane(2), {{.offset = 6 * kExtent + 512, .length = 1024}});
  const Sender::Actions actions = sender.take_actions();
  ASSERT_EQ(actions.commands.size(), 1U);
  EXPECT_EQ(actions.commands[0].kind, CommandKind::kRepair);
  EXPECT_EQ(actions.commands[0].flow, on_lane(2));
}

TEST_F(SenderTest, ALaneThatIsNotThereRepairsNothing) {
  Sender sender = make({8 * kExtent}, 2);
  begin(sender);
  sender.take_actions();
  sender.peer_needs(kFirst, on_lane(2), {{.offset = 6 * kExtent + 512, .length = 1024}});
  EXPECT_TRUE(of_kind(sender.take_actions(), CommandKind::kRepair).empty());
}

TEST_F(SenderTest, WithoutFlowsNothingIsRepaired) {
  Sender sender = make({4 * kExtent});
  begin(sender);
  for (uint64_t i = 0; i < 4; ++i) sender.on_event(sent(i, i + 1), on_lane(0));
  // The peer has ended the session, and only its last word is due.
  sender.start_attempt(kLeg, 0, {}, 0);
  sender.peer_needs(kFirst, on_lane(0), {extents(ExtentId(0), 4)});
  EXPECT_TRUE(of_kind(sender.take_actions(), CommandKind::kRepair).empty());
}

TEST_F(SenderTest, EveryLaneLearnsWhatThePeerHasSoThatNoneHoldsItForEver) {
  Sender sender = make({4 * kExtent}, 2);
  begin(sender);
  sender.take_actions();
  sender.peer_has(kFirst, {extents(ExtentId(0))});
  const Sender::Actions actions = sender.take_actions();
  ASSERT_EQ(actions.commands.size(), 2U);
  for (uint32_t lane = 0; lane < 2; ++lane) {
    EXPECT_EQ(actions.commands[lane].kind, CommandKind::kPeerHas);
    EXPECT_EQ(actions.commands[lane].flow, on_lane(lane));
    EXPECT_EQ(actions.commands[lane].range, (extents(ExtentId(0))));
  }
}

// The simulator's seed 3133253: each lane had opened again what the peer had by a repair, and so had no
// credit.
TEST_F(SenderTest, AdoptedLanesLearnWhatThePeerSaysThatItHolds) {
  Sender sender = make({4 * kExtent}, 1);
  sender.adopt({.kind = EventKind::kQueued, .offset = 0, .length = 4 * kExtent}, on_lane(0));
  sender.adopt({.kind = EventKind::kHeld, .offset = 0, .length = kExtent}, on_lane(0));
  // Each comes in a message of its own.
  for (uint64_t extent = 0; extent < 2; ++extent) {
    sender.peer_has(kFirst, {extents(ExtentId(extent))});
    EXPECT_EQ(of_kind(sender.take_actions(), CommandKind::kPeerHas),
              (std::vector<Range>{extents(ExtentId(extent))}));
  }
}

// The simulator's seed 10503291: told while the extent was still in the middle of what the lane had queued,
// the worker did not remember, opened it, and held it for ever.
TEST_F(SenderTest, ALaneThatSentWhatThePeerHadIsToldAgain) {
  Sender sender = make({4 * kExtent}, 1);
  begin(sender);
  sender.peer_has(kFirst, {extents(ExtentId(1))});
  sender.take_actions();
  sender.on_event(sent(0, 10), on_lane(0));
  EXPECT_TRUE(sender.take_actions().commands.empty()) << "the peer does not have this one";
  sender.on_event(sent(1, 11), on_lane(0));
  EXPECT_EQ(of_kind(sender.take_actions(), CommandKind::kPeerHas),
            (std::vector<Range>{extents(ExtentId(1))}));
}

TEST_F(SenderTest, WhatThePeerHasAndNobodyHereKnowsIsReadAgain) {
  Sender sender = make({3 * kExtent});
  sender.peer_has(kFirst, {extents(ExtentId(0), 2)});
  const auto next = sender.take_unknown();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->object, kFirst);
  EXPECT_EQ(next->first, ExtentId(0));
  EXPECT_EQ(next->end, ExtentId(2));
  sender.reread(kFirst, next->first, {11, 12});
  EXPECT_FALSE(sender.take_unknown());
  EXPECT_FALSE(sender.digest_known(kFirst));
  begin(sender);
  sender.on_event(sent(2, 13), on_lane(0));
  EXPECT_TRUE(sender.digest_known(kFirst));
}

// A run ends with its block, with its object, and before what is known by now.
TEST_F(SenderTest, WhatIsReadAgainIsOfOneBlock) {
  constexpr uint64_t kMany = 2 * kBlockExtents;
  Sender sender = make({kMany * kExtent, 2 * kExtent});
  sender.peer_has(kFirst, {extents(ExtentId(10), kMany - 10)});
  sender.peer_has(kSecond, {extents(ExtentId(0), 2)});
  begin(sender);
  sender.on_event(sent(20, 1), on_lane(0));
  std::vector<std::tuple<ObjectId, uint64_t, uint64_t>> runs;
  while (const auto next = sender.take_unknown())
    runs.emplace_back(next->object, next->first.value(), next->end.value());
  EXPECT_EQ(
      runs,
      (std::vector<std::tuple<ObjectId, uint64_t, uint64_t>>{
          {kFirst, 10, 20}, {kFirst, 21, kBlockExtents}, {kFirst, kBlockExtents, kMany}, {kSecond, 0, 2}}));
}

TEST_F(SenderTest, HolesThatThePeerHasAreNotReadAndThoseThatItLacksAreSent) {
  Sender sender = make({4 * kExtent});
  sender.expect_zeros(kFirst, {{.offset = 0, .length = 3 * kExtent}});
  sender.peer_has(kFirst, {{.offset = 0, .length = 2 * kExtent}});
  sender.peer_said_all();
  sender.object_opened(kFirst);
  EXPECT_FALSE(sender.take_unknown());
  const Sender::Actions actions = sender.take_actions();
  uint64_t given = 0;
  for (const LaneCommand& command : actions.commands) given += command.range.length;
  EXPECT_EQ(given, 2 * kExtent);
  EXPECT_TRUE(actions.digests.empty()) << "of its last extent nothing is known";
}

TEST_F(SenderTest, APeerThatChangesItsMindHasNothingReadTwice) {
  Sender sender = make({3 * kExtent});
  begin(sender);
  for (int i = 0; i < 1000; ++i) {
    sender.peer_has(kFirst, {extents(ExtentId(1))});
    sender.peer_needs(kFirst, on_lane(0), {extents(ExtentId(1))});
  }
  ASSERT_TRUE(sender.take_unknown());
  EXPECT_FALSE(sender.take_unknown());
  sender.peer_has(kFirst, {extents(ExtentId(1))});
  EXPECT_TRUE(sender.take_unknown()) << "it may be asked for anew";
}

TEST_F(SenderTest, AnExtentReadTwiceWithAnotherCrcMeansThatTheSourceChanged) {
  Sender sender = make({4 * kExtent});
  begin(sender);
  sender.on_event(sent(0, 1), on_lane(0));
  sender.take_actions();
  sender.on_event(sent(0, 2), on_lane(0));
  EXPECT_EQ(sender.take_actions().changed, std::vector{kFirst});
}

TEST_F(SenderTest, DoneOnlyWithEqualDigests) {
  Sender sender = make({kExtent, kExtent});
  begin(sender);
  sender.on_event(sent(0, 5), on_lane(0));
  sender.on_event({.kind = EventKind::kExtentSent, .object = 1, .length = kExtent, .digest = 6}, on_lane(0));
  EXPECT_TRUE(sender.file_done(kFirst, 5));
  EXPECT_TRUE(sender.file_done(kSecond, 7));
  const Sender::Actions actions = sender.take_actions();
  EXPECT_EQ(actions.done, std::vector{kFirst});
  EXPECT_EQ(actions.differ, std::vector{kSecond});
  EXPECT_FALSE(sender.all_done());
  EXPECT_FALSE(sender.file_done(kNoObject, 0));
}

// The simulator's seed 7212010: what is opened ahead goes by the cursor, and it stood before an empty file.
TEST_F(SenderTest, WhatNeedsNothingDoesNotHoldUpWhatIsFoundBehindIt) {
  Sender sender = make({kExtent});
  begin(sender);
  sender.add(layout_of(0));
  sender.add(layout_of(kExtent));
  sender.peer_knows(3);
  EXPECT_EQ(sender.cursor(), ObjectId(2));
  sender.add(layout_of(kExtent));
  sender.peer_knows(4);
  sender.peer_has(ObjectId(2), {extents(ExtentId(0))});
  sender.tick(1);
  EXPECT_EQ(sender.cursor(), ObjectId(3));
}

// A tree of small files beside large ones took as long as both together: its packs waited behind these.
TEST_F(SenderTest, ShortObjectsAndALongOneTakeTurns) {
  Sender sender = make({1000ULL * kExtent, 1000ULL * kExtent, kExtent, 2 * kExtent, kExtent});
  begin(sender);
  std::vector<uint32_t> order;
  for (int i = 0; i < 8; ++i) {
    for (const LaneCommand& command : sender.take_actions().commands) {
      order.push_back(command.object.value());
      sender.on_event({.kind = EventKind::kPartitionSent,
                       .object = command.object.value(),
                       .offset = command.range.offset,
                       .length = command.range.length},
                      command.flow);
    }
  }
  order.resize(8);
  EXPECT_EQ(order, (std::vector<uint32_t>{2, 0, 3, 0, 4, 0, 0, 0}));
  EXPECT_EQ(sender.cursor(), ObjectId(0));
}

TEST_F(SenderTest, WhatIsShortDoesNotWaitForALongOneThatIsNotOpenYet) {
  Sender sender = make({1000ULL * kExtent, kExtent});
  sender.object_opened(kSecond);
  sender.peer_said_all();
  const Sender::Actions actions = sender.take_actions();
  ASSERT_EQ(actions.commands.size(), 1U);
  EXPECT_EQ(actions.commands[0].object, kSecond);
}

TEST_F(SenderTest, AdoptedWorkIsNotGivenAgainAndIsReported) {
  Sender sender = make({4 * kExtent});
  sender.adopt({.kind = EventKind::kHeld, .offset = 0, .length = kExtent}, on_lane(0));
  sender.adopt({.kind = EventKind::kQueued, .offset = kExtent, .length = kExtent}, on_lane(0));
  begin(sender);
  EXPECT_EQ(of_kind(sender.take_actions(), CommandKind::kPartition),
            (std::vector<Range>{extents(ExtentId(2), 2)}));
  sender.report_again();
  const Sender::Actions actions = sender.take_actions();
  ASSERT_EQ(actions.sent.size(), 1U);
  EXPECT_EQ(actions.sent[0].range, (extents(ExtentId(0))));
}

}  // namespace
}  // namespace sluice::recovery
