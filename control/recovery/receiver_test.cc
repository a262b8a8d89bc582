// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/receiver.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "control/recovery/numbers_for_test.h"
#include "dataplane/base/time_for_test.h"

namespace sluice::recovery {
namespace {

using board::CommandKind;
using board::EventKind;

constexpr uint32_t kLanes = 3;

class ReceiverTest : public testing::Test {
 protected:
  Receiver make(std::vector<uint64_t> sizes) {
    Indexed<ObjectId, Layout> layouts;
    for (const uint64_t size : sizes) layouts.push_back(layout_of(size));
    return Receiver(layouts, kLanes, {.sync_lag_bytes = 1 << 20, .sync_lag_ns = 100 * kMs});
  }
  static board::Event written(ObjectId object, uint64_t extent, uint64_t crc = 1) {
    return {.kind = EventKind::kExtentWritten,
            .object = object.value(),
            .offset = extent * kExtent,
            .length = kExtent,
            .digest = crc};
  }
  static board::Event missing(ObjectId object, Range range, uint32_t tag) {
    return {.kind = EventKind::kMissing,
            .object = object.value(),
            .tag = tag,
            .offset = range.offset,
            .length = range.length};
  }
  static board::Event end(ObjectId object, uint32_t tag) {
    return {.kind = EventKind::kMissingEnd, .object = object.value(), .tag = tag};
  }
  // What the workers answer to the commands to give files up, in their order.
  static void answer_give_ups(Receiver* receiver, const std::vector<LaneCommand>& commands,
                              const std::vector<uint64_t>& writing_bytes = {0, 0, 0}) {
    size_t answered = 0;
    for (const LaneCommand& command : commands) {
      if (command.kind != CommandKind::kGiveUp) continue;
      receiver->on_event({.kind = EventKind::kGivenUp,
                          .object = command.object.value(),
                          .tag = command.tag,
                          .length = writing_bytes[answered++ % kLanes]});
    }
  }
};

TEST_F(ReceiverTest, DurableOnlyAfterSyncAndJournal) {
  Receiver receiver = make({2 * kExtent});
  receiver.start_attempt(kLeg, kLanes, 0);
  receiver.on_event(written(kFirst, 0, 11));
  EXPECT_TRUE(receiver.ledger(kFirst).map().set_extents() == 0);
  EXPECT_EQ(receiver.begin_sync(kFirst), 1U);
  EXPECT_EQ(receiver.begin_sync(kFirst), 0U) << "one at a time";
  receiver.on_event(written(kFirst, 1, 12));  // It comes too late for this batch.
  const std::vector<Block> rows = receiver.sync_succeeded(kFirst);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(receiver.journalled(kFirst), (std::vector<Range>{extents(ExtentId(0))}));
  EXPECT_EQ(receiver.unsynced_bytes(), kExtent);

  Receiver again = make({2 * kExtent});
  ASSERT_TRUE(again.restore(kFirst, rows[0]));
  again.finish_restore();
  EXPECT_EQ(again.held(kFirst), (std::vector<Range>{extents(ExtentId(0))}));
}

TEST_F(ReceiverTest, OfWhatHasFailedEachWorkerIsToldToDropItsParts) {
  Receiver receiver = make({4 * kExtent, kExtent});
  receiver.start_attempt(kLeg, kLanes, 0);
  receiver.on_event(written(kFirst, 1));
  const auto given_up = [&receiver] {
    uint32_t lanes = 0;
    for (const LaneCommand& command : receiver.take_actions().commands) {
      if (command.kind != board::CommandKind::kGiveUp) continue;
      EXPECT_EQ(command.object, kFirst);
      EXPECT_EQ(command.range.length, 4 * kExtent);
      ++lanes;
    }
    return lanes;
  };
  receiver.failed(kFirst);
  EXPECT_EQ(given_up(), kLanes);
  EXPECT_TRUE(receiver.done(kFirst));
  EXPECT_EQ(receiver.unsynced_bytes(), 0U);
  receiver.adopt(kLeg, kLanes, {kFirst}, 0);
  EXPECT_EQ(given_up(), kLanes) << "the former control may have died before it came to that";
}

TEST_F(ReceiverTest, HolesOfANewFileNeedNotComeAndAreInItsDigest) {
  Receiver receiver = make({5 * kExtent});
  receiver.put_zeros(
      kFirst, {{.offset = kExtent, .length = 2 * kExtent}, {.offset = 4 * kExtent, .length = kExtent}});
  EXPECT_EQ(receiver.bytes_written(), 3 * kExtent);
  EXPECT_EQ(receiver.held(kFirst), (std::vector<Range>{{kExtent, 2 * kExtent}, {4 * kExtent, kExtent}}));
  EXPECT_FALSE(receiver.take_changed(kFirst).empty()) << "a restart knows them from the journal";
  receiver.start_attempt(kLeg, kLanes, 0);
  receiver.on_event(written(kFirst, 0, 7));
  receiver.on_event(written(kFirst, 3, 8));
  const auto shifted = [](uint64_t crc, uint64_t behind) {
    return crc::shift(layout_of(1).crc_kind, crc, behind * kExtent);
  };
  const uint64_t zeros = crc::of_zeros(layout_of(1).crc_kind, kExtent);
  const uint64_t digest = shifted(7, 4) ^ shifted(zeros, 3) ^ shifted(zeros, 2) ^ shifted(8, 1) ^ zeros;
  ASSERT_TRUE(receiver.file_digest(kFirst, {.size_bytes = 5 * kExtent, .digest = digest}));
  EXPECT_TRUE(receiver.take_actions().differ.empty());
  EXPECT_EQ(receiver.begin_sync(kFirst), 2U) << "what came, and no more, is to be made durable";
}

TEST_F(ReceiverTest, AFileThatIsOneHoleIsFinishedWithItsDigest) {
  Receiver receiver = make({3 * kExtent});
  receiver.put_zeros(kFirst, {{.offset = 0, .length = 3 * kExtent}});
  receiver.start_attempt(kLeg, kLanes, 0);
  const uint64_t digest = crc::of_zeros(layout_of(1).crc_kind, 3 * kExtent);
  ASSERT_TRUE(receiver.file_digest(kFirst, {.size_bytes = 3 * kExtent, .digest = digest}));
  answer_give_ups(&receiver, receiver.take_actions().commands);
  EXPECT_EQ(receiver.take_actions().finished, std::vector<ObjectId>{kFirst});
}

// A second copy of the last extent, from another lane or of a hole, would make a file longer that was cut to
// its size already.
TEST_F(ReceiverTest, NoFileIsFinishedWhileAWorkerStillWritesOfIt) {
  Receiver receiver = make({kExtent});
  receiver.start_attempt(kLeg, kLanes, 0);
  receiver.on_event(written(kFirst, 0, 5));
  ASSERT_TRUE(receiver.file_digest(kFirst, {.size_bytes = kExtent, .digest = 5}));
  Receiver::Actions asked = receiver.take_actions();
  EXPECT_EQ(asked.commands.size(), kLanes);
  EXPECT_TRUE(asked.finished.empty());
  EXPECT_EQ(receiver.begin_sync(kFirst), 0U) << "its last sync comes when it is finished";
  answer_give_ups(&receiver, asked.commands, {0, kExtent, 0});
  EXPECT_TRUE(receiver.take_actions().finished.empty());
  EXPECT_TRUE(receiver.awaits_writes());
  receiver.tick(100 * kMs);
  const Receiver::Actions again = receiver.take_actions();
  EXPECT_EQ(again.commands.size(), kLanes);
  answer_give_ups(&receiver, asked.commands);
  EXPECT_TRUE(receiver.take_actions().finished.empty()) << "the answers of an earlier round count no more";
  answer_give_ups(&receiver, again.commands);
  EXPECT_EQ(receiver.take_actions().finished, std::vector<ObjectId>{kFirst});
  EXPECT_FALSE(receiver.awaits_writes());
}

TEST_F(ReceiverTest, WhatIsOnlyBeingOpenedIsGivenUpLater) {
  Receiver receiver = make({kExtent});
  receiver.put_zeros(kFirst, {{.offset = 0, .length = kExtent}});
  receiver.start_attempt(kLeg, kLanes, 0);
  const uint64_t digest = crc::of_zeros(layout_of(1).crc_kind, kExtent);
  ASSERT_TRUE(receiver.file_digest(kFirst, {.size_bytes = kExtent, .digest = digest}));
  const Receiver::Actions early = receiver.take_actions();
  receiver.give_up_later(kFirst);
  answer_give_ups(&receiver, early.commands);
  EXPECT_TRUE(receiver.take_actions().finished.empty()) << "nobody was asked";
  receiver.tick(100 * kMs);
  answer_give_ups(&receiver, receiver.take_actions().commands);
  EXPECT_EQ(receiver.take_actions().finished, std::vector<ObjectId>{kFirst});
}

// A file that lacks its last sync alone is finished at a pause, too.
TEST_F(ReceiverTest, WhereFlowsHaveEndedNobodyIsAsked) {
  Receiver receiver = make({kExtent, kExtent});
  receiver.start_attempt(kLeg, kLanes, 0);
  receiver.on_event(written(kFirst, 0, 5));
  receiver.on_event(written(kSecond, 0, 6));
  ASSERT_TRUE(receiver.file_digest(kFirst, {.size_bytes = kExtent, .digest = 5}));
  receiver.take_actions();
  EXPECT_EQ(receiver.begin_sync(kFirst), 0U);
  receiver.flows_ended();  // and with them the answers
  EXPECT_EQ(receiver.begin_sync(kFirst), 1U);
  ASSERT_TRUE(receiver.file_digest(kSecond, {.size_bytes = kExtent, .digest = 6}));
  const Receiver::Actions actions = receiver.take_actions();
  EXPECT_TRUE(actions.commands.empty());
  EXPECT_EQ(actions.finished, std::vector<ObjectId>{kSecond});
}

TEST_F(ReceiverTest, AFileWhoseLastSyncFailedIsGivenUpAnewBeforeItIsFinished) {
  Receiver receiver = make({kExtent});
  receiver.start_attempt(kLeg, kLanes, 0);
  receiver.on_event(written(kFirst, 0, 5));
  ASSERT_TRUE(receiver.file_digest(kFirst, {.size_bytes = kExtent, .digest = 5}));
  answer_give_ups(&receiver, receiver.take_actions().commands);
  ASSERT_EQ(receiver.take_actions().finished.size(), 1U);
  ASSERT_TRUE(receiver.sync_failed(kFirst));
  receiver.take_actions();
  receiver.on_event(written(kFirst, 0, 5));
  const Receiver::Actions again = receiver.take_actions();
  EXPECT_TRUE(again.finished.empty());
  answer_give_ups(&receiver, again.commands);
  EXPECT_EQ(receiver.take_actions().finished.size(), 1U);
}

TEST_F(ReceiverTest, WhatIsCompleteBeforeAnAdoptionEndsIsFinishedBehindIt) {
  Receiver receiver = make({kExtent});
  receiver.adopt(kLeg, 1, {kFirst}, 0);
  receiver.on_event(written(kFirst, 0, 5));
  ASSERT_TRUE(receiver.file_digest(kFirst, {.size_bytes = kExtent, .digest = 5}));
  for (const LaneCommand& command : receiver.take_actions().commands)
    EXPECT_NE(command.kind, CommandKind::kGiveUp) << "the former control's answers may still come";
  receiver.on_event(end(kFirst, Receiver::kAdoptTag));
  receiver.on_event(end(kFirst, Receiver::kAdoptTag));
  ASSERT_FALSE(receiver.adopting());
  answer_give_ups(&receiver, receiver.take_actions().commands);
  EXPECT_EQ(receiver.take_actions().finished, std::vector<ObjectId>{kFirst});
}

TEST_F(ReceiverTest, AnAdoptionForgetsWhatOnlyTheDeadControlKnew) {
  Receiver receiver = make({4 * kExtent});
  receiver.adopt(kLeg, 2, {kFirst}, 0);
  Receiver::Actions actions = receiver.take_actions();
  ASSERT_EQ(actions.commands.size(), 1U);
  // An event will come of an extent that is being written: it counts as missing.
  EXPECT_EQ(actions.commands[0].kind, CommandKind::kQueryUnwritten);
  receiver.on_event(written(kFirst, 0));
  receiver.on_event(missing(kFirst, extents(ExtentId(2), 2), Receiver::kAdoptTag));
  receiver.on_event(end(kFirst, Receiver::kAdoptTag));
  EXPECT_EQ(receiver.take_actions().commands.size(), 2U) << "an answer from every lane";
  receiver.on_event(end(kFirst, Receiver::kAdoptTag));
  receiver.on_event(end(kFirst, Receiver::kAdoptTag));
  actions = receiver.take_actions();
  ASSERT_EQ(actions.needs.size(), 1U);
  EXPECT_EQ(actions.needs[0].ranges, (std::vector<Range>{extents(ExtentId(1))}));
  EXPECT_EQ(actions.commands[0].kind, CommandKind::kForgetExtents);
  EXPECT_TRUE(receiver.adopting());
  receiver.on_event(end(kFirst, Receiver::kAdoptTag));
  receiver.on_event(end(kFirst, Receiver::kAdoptTag));
  EXPECT_FALSE(receiver.adopting());
}

TEST_F(ReceiverTest, AnAdoptionEndsThoughAFileBecomesDoneMeanwhile) {
  Receiver receiver = make({kExtent});
  receiver.adopt(kLeg, 1, {kFirst}, 0);
  receiver.on_event(written(kFirst, 0));
  receiver.set_done(kFirst, 1);
  receiver.on_event(end(kFirst, Receiver::kAdoptTag));
  receiver.on_event(end(kFirst, Receiver::kAdoptTag));
  EXPECT_FALSE(receiver.adopting());
  EXPECT_TRUE(receiver.take_actions().needs.empty());
}

// The source was told of bytes that were written and never durable; it will not send them by itself.
TEST_F(ReceiverTest, AfterAnAdoptionWhateverStaysMissingIsAskedFor) {
  Receiver receiver = make({2 * kExtent});
  receiver.adopt(kLeg, 1, {kFirst}, kMs);
  receiver.on_event(missing(kFirst, extents(ExtentId(0), 2), Receiver::kAdoptTag));
  receiver.on_event(end(kFirst, Receiver::kAdoptTag));
  receiver.on_event(end(kFirst, Receiver::kAdoptTag));
  ASSERT_FALSE(receiver.adopting());
  receiver.take_actions();
  receiver.tick(kMs + NeedPlanner::kQuietNs + 1);
  const Receiver::Actions asked = receiver.take_actions();
  ASSERT_EQ(asked.commands.size(), 1U);
  EXPECT_EQ(asked.commands[0].kind, CommandKind::kQueryMissing);
  EXPECT_EQ(asked.commands[0].range, (extents(ExtentId(0), 2)));
  receiver.on_event(missing(kFirst, extents(ExtentId(0)), asked.commands[0].tag));
  receiver.on_event(end(kFirst, asked.commands[0].tag));
  const Receiver::Actions actions = receiver.take_actions();
  ASSERT_EQ(actions.needs.size(), 1U);
  EXPECT_EQ(actions.needs[0].ranges, (std::vector<Range>{extents(ExtentId(0))}));
}

TEST_F(ReceiverTest, ANeedNamesTheLaneWhoseWorkerLacksTheBytes) {
  Receiver receiver = make({4 * kExtent});
  receiver.start_attempt(kLeg, kLanes, 0);
  ASSERT_TRUE(receiver.partition_sent(kFirst, on_lane(1), extents(ExtentId(0))));
  ASSERT_TRUE(receiver.partition_sent(kFirst, on_lane(2), extents(ExtentId(2))));
  receiver.tick(NeedPlanner::kQuietNs + 1);
  const Receiver::Actions asked = receiver.take_actions();
  ASSERT_EQ(asked.commands.size(), 2U);
  const uint32_t tag = asked.commands[0].tag;
  receiver.on_event(missing(kFirst, {.offset = 2 * kExtent + 512, .length = 512}, tag));
  receiver.on_event(missing(kFirst, {.offset = 512, .length = 512}, tag));
  receiver.on_event(missing(kFirst, {.offset = 3 * kExtent, .length = 512}, tag));  // Nobody asked for that.
  receiver.on_event(end(kFirst, tag));
  receiver.on_event(end(kFirst, tag));
  const Receiver::Actions actions = receiver.take_actions();
  ASSERT_EQ(actions.needs.size(), 2U);
  EXPECT_EQ(actions.needs[0].flow, on_lane(1));
  EXPECT_EQ(actions.needs[0].ranges, (std::vector<Range>{{.offset = 512, .length = 512}}));
  EXPECT_EQ(actions.needs[1].flow, on_lane(2));
  EXPECT_EQ(actions.needs[1].ranges, (std::vector<Range>{{.offset = 2 * kExtent + 512, .length = 512}}));
}

TEST_F(ReceiverTest, FinishesAFileOnceItIsCompleteAndItsDigestIsTheSources) {
  Receiver receiver = make({kExtent, kExtent});
  receiver.start_attempt(kLeg, kLanes, 0);
  receiver.on_event(written(kFirst, 0, 5));
  receiver.on_event(written(kSecond, 0, 6));
  EXPECT_FALSE(receiver.file_digest(kFirst, {.size_bytes = kExtent + 1, .digest = 5}));
  EXPECT_TRUE(receiver.file_digest(kFirst, {.size_bytes = kExtent, .digest = 5}));
  EXPECT_TRUE(receiver.file_digest(kSecond, {.size_bytes = kExtent, .digest = 7}));
  const Receiver::Actions actions = receiver.take_actions();
  EXPECT_EQ(actions.differ, std::vector{kSecond});
  answer_give_ups(&receiver, actions.commands);
  EXPECT_EQ(receiver.take_actions().finished, std::vector{kFirst});
}

}  // namespace
}  // namespace sluice::recovery
