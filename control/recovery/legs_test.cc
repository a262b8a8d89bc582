// Flows of several legs in one Sender and one Receiver: legs join while others go on, and end.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "control/recovery/numbers_for_test.h"
#include "control/recovery/receiver.h"
#include "control/recovery/sender.h"
#include "dataplane/base/time_for_test.h"

namespace sluice::recovery {
namespace {

using board::CommandKind;
using board::EventKind;

constexpr Sender::Options kOptions{
    .partition_bytes = kExtent, .short_bytes = 2 * kExtent, .lane_rate_bps = 1'000'000};

// Which flow was told to send which extents, in order.
std::vector<std::pair<FlowRef, uint64_t>> given_to(const Sender::Actions& actions) {
  std::vector<std::pair<FlowRef, uint64_t>> given;
  for (const LaneCommand& command : actions.commands) {
    if (command.kind != CommandKind::kPartition) continue;
    for (uint64_t at = command.range.offset; at < command.range.end(); at += kExtent)
      given.emplace_back(command.flow, at / kExtent);
  }
  return given;
}

// One file, one lane a leg. The second leg has not joined.
class SenderLegs : public testing::Test {
 protected:
  SenderLegs() : sender_({layout_of(8 * kExtent)}, 1, kOptions) { sender_.object_opened(kFirst); }

  void sent(FlowRef flow, uint64_t extent) {
    sender_.on_event(
        {.kind = EventKind::kExtentSent, .offset = extent * kExtent, .length = kExtent, .digest = extent + 1},
        flow);
    sender_.on_event({.kind = EventKind::kPartitionSent, .offset = extent * kExtent, .length = kExtent},
                     flow);
  }

  Sender sender_;
};

TEST_F(SenderLegs, ALegThatJoinsGetsItsShareOnceThePeerHasSaidThereWhatItHolds) {
  sender_.peer_said_all();
  EXPECT_EQ(given_to(sender_.take_actions()),
            (std::vector<std::pair<FlowRef, uint64_t>>{{on_lane(0), 0}, {on_lane(0), 1}}));
  sender_.add_leg(kSecondLeg, 1, kOptions);
  sender_.tick(1);
  EXPECT_TRUE(given_to(sender_.take_actions()).empty());
  sender_.peer_said_all(kSecondLeg);
  EXPECT_EQ(given_to(sender_.take_actions()), (std::vector<std::pair<FlowRef, uint64_t>>{
                                                  {on_lane(0, kSecondLeg), 2}, {on_lane(0, kSecondLeg), 3}}));
}

TEST_F(SenderLegs, WhatALegHadGoesToTheOthersAndWhatThePeerHasDoesNot) {
  sender_.peer_said_all();
  sender_.add_leg(kSecondLeg, 1, kOptions);
  sender_.peer_said_all(kSecondLeg);
  (void)sender_.take_actions();
  sent(on_lane(0, kSecondLeg), 2);
  sent(on_lane(0, kSecondLeg), 3);
  sender_.peer_has(kFirst, {extents(ExtentId(2))});
  (void)sender_.take_actions();
  sender_.drop_leg(kSecondLeg);
  sent(on_lane(0), 0);
  sent(on_lane(0), 1);
  std::vector<uint64_t> again;
  for (const auto& [flow, extent] : given_to(sender_.take_actions())) {
    EXPECT_EQ(flow, on_lane(0));
    again.push_back(extent);
  }
  EXPECT_EQ(again.front(), 3U) << "the second had sent it, and nobody knows whether it came";
  EXPECT_EQ(std::ranges::count(again, 2U), 0);
}

TEST_F(SenderLegs, ReportsAgainOnAStreamOnlyWhatItsOwnFlowsSent) {
  sender_.peer_said_all();
  sender_.add_leg(kSecondLeg, 1, kOptions);
  sender_.peer_said_all(kSecondLeg);
  (void)sender_.take_actions();
  sent(on_lane(0), 0);
  sent(on_lane(0, kSecondLeg), 2);
  (void)sender_.take_actions();
  sender_.report_again(kSecondLeg);
  const Sender::Actions actions = sender_.take_actions();
  ASSERT_EQ(actions.sent.size(), 1U);
  EXPECT_EQ(actions.sent[0].flow, on_lane(0, kSecondLeg));
}

TEST_F(SenderLegs, WhatAPeerHadToldAndDoesNotListOnANewLegIsSentAgain) {
  sender_.peer_has(kFirst, {extents(ExtentId(0), 8)});
  sender_.peer_said_all();
  EXPECT_TRUE(given_to(sender_.take_actions()).empty());
  sender_.note_told(kSecondLeg);
  sender_.add_leg(kSecondLeg, 1, kOptions);
  sender_.peer_lists(kSecondLeg, kFirst, {extents(ExtentId(0), 3), extents(ExtentId(4), 4)});
  sender_.peer_said_all(kSecondLeg);
  const auto again = given_to(sender_.take_actions());
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].second, 3U);
  EXPECT_EQ(sender_.bytes_held(), 7U * kExtent);
}

// A lane has a part of several extents. The second leg joins, and the peer has lost some of what it told.
class SenderLoses : public SenderLegs {
 protected:
  SenderLoses() {
    sender_.start_attempt(kLeg, 1, {.partition_bytes = 4 * kExtent, .short_bytes = 0, .lane_rate_bps = 1}, 0);
    sender_.object_opened(kFirst);
    sender_.peer_said_all();
    (void)sender_.take_actions();
  }
  void extent_sent(FlowRef flow, uint64_t extent) {
    sender_.on_event(
        {.kind = EventKind::kExtentSent, .offset = extent * kExtent, .length = kExtent, .digest = extent + 1},
        flow);
  }
  std::vector<std::pair<FlowRef, uint64_t>> second_joins_and_peer_lost(ExtentId extent) {
    sender_.peer_has(kFirst, {extents(extent)});
    sender_.note_told(kSecondLeg);
    sender_.add_leg(kSecondLeg, 1, kOptions);
    sender_.peer_said_all(kSecondLeg);
    return given_to(sender_.take_actions());
  }
};

TEST_F(SenderLoses, OfAPartThatALaneHasOnlyWhatIsLostIsGivenAgain) {
  extent_sent(on_lane(0), 0);
  extent_sent(on_lane(0), 1);
  EXPECT_EQ(second_joins_and_peer_lost(ExtentId(1)),
            (std::vector<std::pair<FlowRef, uint64_t>>{{on_lane(0, kSecondLeg), 1}}));
  // The rest stays with its lane, whatever other legs do, and goes to others when its own leg ends.
  sender_.drop_leg(kSecondLeg);
  sender_.add_leg(kSecondLeg, 1, kOptions);
  sender_.peer_said_all(kSecondLeg);
  EXPECT_EQ(given_to(sender_.take_actions()),
            (std::vector<std::pair<FlowRef, uint64_t>>{{on_lane(0, kSecondLeg), 1}}));
  sender_.drop_leg(kLeg);
  EXPECT_EQ(given_to(sender_.take_actions()),
            (std::vector<std::pair<FlowRef, uint64_t>>{{on_lane(0, kSecondLeg), 0}}));
}

TEST_F(SenderLoses, ALaneThatStandsStillReportsWhatLeftOnBothSidesOfWhatIsLost) {
  for (uint64_t extent = 0; extent < 3; ++extent) extent_sent(on_lane(0), extent);
  (void)second_joins_and_peer_lost(ExtentId(1));
  sender_.tick(1'000'000'000);
  const Sender::Actions actions = sender_.take_actions();
  ASSERT_EQ(actions.sent.size(), 1U);
  EXPECT_EQ(actions.sent[0].flow, on_lane(0));
  EXPECT_EQ(actions.sent[0].range, extents(ExtentId(0), 3));
}

TEST_F(SenderLoses, ALaneThatStandsStillDoesNotReportWhatAnotherSent) {
  EXPECT_EQ(second_joins_and_peer_lost(ExtentId(0)),
            (std::vector<std::pair<FlowRef, uint64_t>>{{on_lane(0, kSecondLeg), 0}}));
  extent_sent(on_lane(0, kSecondLeg), 0);
  sender_.tick(1'000'000'000);
  const Sender::Actions actions = sender_.take_actions();
  ASSERT_EQ(actions.sent.size(), 1U);
  EXPECT_EQ(actions.sent[0].flow, on_lane(0, kSecondLeg));
}

TEST_F(SenderLoses, WhatThePeerAskedForAgainBeforeALegJoinedStaysWithItsLane) {
  extent_sent(on_lane(0), 0);
  sender_.peer_has(kFirst, {extents(ExtentId(0))});
  sender_.note_told(kSecondLeg);
  sender_.peer_needs(kFirst, on_lane(0), {extents(ExtentId(0))});
  sender_.add_leg(kSecondLeg, 1, kOptions);
  sender_.peer_said_all(kSecondLeg);
  EXPECT_TRUE(given_to(sender_.take_actions()).empty());
  sender_.drop_leg(kSecondLeg);
  sender_.add_leg(kSecondLeg, 1, kOptions);
  sender_.peer_said_all(kSecondLeg);
  EXPECT_TRUE(given_to(sender_.take_actions()).empty()) << "its lane repairs it";
}

TEST_F(SenderLoses, WhatIsRepairedIsNotGivenAgainForWhatIsLostBesideIt) {
  sender_.peer_has(kFirst, {extents(ExtentId(0), 8)});
  sender_.note_told(kSecondLeg);
  sender_.peer_needs(kFirst, on_lane(0), {extents(ExtentId(2))});
  sender_.add_leg(kSecondLeg, 1, kOptions);
  sender_.peer_lists(kSecondLeg, kFirst, {extents(ExtentId(0), 2), extents(ExtentId(3), 4)});
  sender_.peer_said_all(kSecondLeg);
  EXPECT_EQ(given_to(sender_.take_actions()),
            (std::vector<std::pair<FlowRef, uint64_t>>{{on_lane(0, kSecondLeg), 7}}));
}

// Two workers that were found have the same extent, one of them also what follows.
TEST_F(SenderLegs, WhatAFoundWorkerHasQueuedIsNotGivenAgainWhenAnotherLegEnds) {
  sender_.start_attempt(kLeg, 2, kOptions, 0);
  sender_.adopt({.kind = EventKind::kQueued, .offset = 0, .length = 8 * kExtent}, on_lane(0));
  sender_.adopt({.kind = EventKind::kHeld, .offset = 0, .length = kExtent}, on_lane(1));
  sender_.object_opened(kFirst);
  sender_.peer_said_all();
  sender_.add_leg(kSecondLeg, 1, kOptions);
  sender_.peer_said_all(kSecondLeg);
  sender_.drop_leg(kSecondLeg);
  EXPECT_TRUE(given_to(sender_.take_actions()).empty());
}

TEST_F(SenderLegs, WhatAPeerTellsWhileALegJoinsItNeedNotListThere) {
  sender_.peer_said_all();
  sender_.note_told(kSecondLeg);
  sender_.peer_has(kFirst, {extents(ExtentId(0))});
  sender_.add_leg(kSecondLeg, 1, kOptions);
  sender_.peer_said_all(kSecondLeg);
  EXPECT_EQ(sender_.bytes_held(), 1U * kExtent);
}

class ReceiverLegs : public testing::Test {
 protected:
  ReceiverLegs() : receiver_({layout_of(kExtent)}, 1, {.sync_lag_bytes = 1 << 20, .sync_lag_ns = 100 * kMs}) {
    receiver_.start_attempt(kLeg, 1, 0);
    receiver_.add_leg(kSecondLeg, 1);
  }

  std::vector<LaneCommand> take(CommandKind kind) {
    std::vector<LaneCommand> commands = receiver_.take_actions().commands;
    std::erase_if(commands, [kind](const LaneCommand& each) { return each.kind != kind; });
    return commands;
  }
  void complete() {
    receiver_.on_event({.kind = EventKind::kExtentWritten, .length = kExtent, .digest = 5});
    ASSERT_TRUE(receiver_.file_digest(kFirst, {.size_bytes = kExtent, .digest = receiver_.digest(kFirst)}));
  }
  void given_up(uint32_t tag) { receiver_.on_event({.kind = EventKind::kGivenUp, .tag = tag}); }

  Receiver receiver_;
};

TEST_F(ReceiverLegs, AFileIsFinishedOnceTheWorkersOfAllLegsHaveGivenItUp) {
  complete();
  const std::vector<LaneCommand> asked = take(CommandKind::kGiveUp);
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0].flow, on_lane(0));
  EXPECT_EQ(asked[1].flow, on_lane(0, kSecondLeg));
  given_up(asked[0].tag);
  EXPECT_TRUE(receiver_.take_actions().finished.empty());
  given_up(asked[1].tag);
  EXPECT_EQ(receiver_.take_actions().finished, std::vector{kFirst});
}

TEST_F(ReceiverLegs, ALegThatEndsIsNotWaitedFor) {
  complete();
  const std::vector<LaneCommand> asked = take(CommandKind::kGiveUp);
  given_up(asked.front().tag);
  receiver_.drop_leg(kLeg);
  const std::vector<LaneCommand> again = take(CommandKind::kGiveUp);
  ASSERT_EQ(again.size(), 1U) << "whose answer had come is not known";
  EXPECT_EQ(again[0].flow, on_lane(0, kSecondLeg));
  given_up(asked.back().tag);
  EXPECT_TRUE(receiver_.take_actions().finished.empty()) << "that was of the former round";
  given_up(again[0].tag);
  EXPECT_EQ(receiver_.take_actions().finished, std::vector{kFirst});
}

TEST_F(ReceiverLegs, NeedsWhatIsMissingOnTheLegThatCarriedIt) {
  ASSERT_TRUE(receiver_.partition_sent(kFirst, on_lane(0, kSecondLeg), extents(ExtentId(0))));
  EXPECT_FALSE(receiver_.partition_sent(kFirst, on_lane(1, kSecondLeg), extents(ExtentId(0))));
  receiver_.tick(1000 * kMs);
  const std::vector<LaneCommand> asked = take(CommandKind::kQueryMissing);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].flow, on_lane(0, kSecondLeg));
  // Should the leg end before its worker answers, nobody is asked for what its source gives to others.
  receiver_.drop_leg(kSecondLeg);
  receiver_.tick(10'000 * kMs);
  EXPECT_TRUE(take(CommandKind::kQueryMissing).empty());
}

}  // namespace
}  // namespace sluice::recovery
