// What a journal says of a file that was out of hands is read before it counts.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/recovery/numbers_for_test.h"
#include "control/recovery/receiver.h"

namespace sluice::recovery {
namespace {

constexpr uint64_t kCrc = 0x1234;  // of each extent here

board::Event written_whole(uint64_t extent) {
  return {.kind = board::EventKind::kExtentWritten,
          .offset = extent * kExtent,
          .length = kExtent,
          .digest = kCrc};
}

class UnreadTest : public testing::Test {
 protected:
  static Receiver make(uint64_t extents) {
    Indexed<ObjectId, Layout> layouts;
    layouts.push_back(layout_of(extents * kExtent));
    return Receiver(layouts, 1, {.sync_lag_bytes = 1, .sync_lag_ns = 1});
  }
  // What the journal has after these extents became durable.
  static std::vector<Block> rows_of(uint64_t extents, const std::vector<uint64_t>& durable) {
    Receiver receiver = make(extents);
    receiver.start_attempt(kLeg, 1, 0);
    for (const uint64_t extent : durable) receiver.on_event(written_whole(extent));
    EXPECT_EQ(receiver.begin_sync(kFirst), durable.size());
    return receiver.sync_succeeded(kFirst);
  }
  static Receiver restored(uint64_t extents, const std::vector<Block>& rows) {
    Receiver receiver = make(extents);
    for (const Block& row : rows) EXPECT_TRUE(receiver.restore(kFirst, row));
    receiver.finish_restore();
    receiver.distrust(kFirst);
    receiver.start_attempt(kLeg, 1, 0);
    return receiver;
  }
  static uint64_t crc_of(uint64_t extents) {
    uint64_t crc = 0;
    for (uint64_t i = 0; i < extents; ++i) crc = crc::shift(crc::CrcKind::kCrc64Ecma, crc, kExtent) ^ kCrc;
    return crc;
  }
  static std::vector<uint64_t> all(uint64_t extents) {
    std::vector<uint64_t> numbers(extents);
    for (uint64_t i = 0; i < extents; ++i) numbers[i] = i;
    return numbers;
  }
};

TEST_F(UnreadTest, AreReadInRunsAndInFullBlocks) {
  std::vector<uint64_t> durable = all(kBlockExtents);  // a full block
  for (const uint64_t extent : {66U, 67U, 70U}) durable.push_back(extent);
  Receiver receiver = restored(80, rows_of(80, durable));
  EXPECT_EQ(receiver.unread_bytes(), 67U * kExtent);
  const std::vector<Range> expected = {extents(ExtentId(0), kBlockExtents), extents(ExtentId(66), 2),
                                       extents(ExtentId(70))};
  for (const Range& range : expected) {
    const std::optional<Unread> unread = receiver.take_unread(kFirst);
    ASSERT_TRUE(unread);
    EXPECT_EQ(unread->range, range);
    EXPECT_FALSE(receiver.take_unread(kFirst)) << "one at a time";
    EXPECT_EQ(receiver.judge_unread(crc_of(range.length / kExtent)), Judgement::kGood);
  }
  EXPECT_FALSE(receiver.take_unread(kFirst));
  EXPECT_EQ(receiver.unread_bytes(), 0U);
  (void)receiver.take_actions();
}

TEST_F(UnreadTest, NoFileIsFinishedWhileOneIsUnread) {
  Receiver receiver = restored(3, rows_of(3, all(3)));
  ASSERT_TRUE(receiver.file_digest(kFirst, {.size_bytes = 3 * kExtent, .digest = crc_of(3)}));
  EXPECT_TRUE(receiver.take_actions().finished.empty());
  ASSERT_TRUE(receiver.take_unread(kFirst));
  EXPECT_EQ(receiver.judge_unread(crc_of(3)), Judgement::kGood);
  for (const LaneCommand& command : receiver.take_actions().commands) {
    receiver.on_event(
        {.kind = board::EventKind::kGivenUp, .object = command.object.value(), .tag = command.tag});
  }
  EXPECT_EQ(receiver.take_actions().finished, std::vector<ObjectId>{kFirst});
}

TEST_F(UnreadTest, WhatIsNotAsTheJournalSaysComesAgain) {
  for (const bool readable : {true, false}) {
    Receiver receiver = restored(kBlockExtents + 2, rows_of(kBlockExtents + 2, all(kBlockExtents + 2)));
    ASSERT_TRUE(receiver.take_unread(kFirst));
    EXPECT_EQ(receiver.judge_unread(readable ? std::optional(crc_of(1)) : std::nullopt),
              Judgement::kForgotten);
    const Receiver::Actions actions = receiver.take_actions();
    ASSERT_EQ(actions.needs.size(), 1U);
    EXPECT_EQ(actions.needs[0].ranges, (std::vector<Range>{extents(ExtentId(0), kBlockExtents)}));
    ASSERT_EQ(actions.commands.size(), 1U);
    EXPECT_EQ(actions.commands[0].kind, board::CommandKind::kForgetExtents);
    EXPECT_EQ(receiver.bytes_written(), 2U * kExtent);
    EXPECT_EQ(receiver.held(kFirst), (std::vector<Range>{extents(ExtentId(kBlockExtents), 2)}));
    // The journal forgets it, too; a row that says so is read back as nothing.
    const std::vector<Block> rows = receiver.take_changed(kFirst);
    ASSERT_EQ(rows.size(), 1U);
    Receiver again = make(kBlockExtents + 2);
    EXPECT_TRUE(again.restore(kFirst, rows[0]));
    again.finish_restore();
    EXPECT_EQ(again.bytes_written(), 0U);
  }
}

TEST_F(UnreadTest, ABlockThatFillsUpMeanwhileIsReadWhole) {
  Receiver receiver = restored(2, rows_of(2, {0}));
  receiver.on_event(written_whole(1));
  ASSERT_EQ(receiver.begin_sync(kFirst), 1U);
  EXPECT_FALSE(receiver.take_unread(kFirst)) << "what is being synced cannot be forgotten";
  (void)receiver.sync_succeeded(kFirst);
  (void)receiver.journalled(kFirst);
  const std::optional<Unread> unread = receiver.take_unread(kFirst);
  ASSERT_TRUE(unread);
  EXPECT_EQ(unread->range, extents(ExtentId(0), 2));
  EXPECT_EQ(receiver.judge_unread(crc_of(2)), Judgement::kGood);
}

// The rest of its block came and was synced while it was read: only the digest of all of it is known.
TEST_F(UnreadTest, ABadOneTakesItsBlockAlongThatFilledUpMeanwhile) {
  Receiver receiver = restored(kBlockExtents + 1, rows_of(kBlockExtents + 1, {0, 2, kBlockExtents}));
  ASSERT_TRUE(receiver.take_unread(kFirst));
  for (uint64_t extent = 1; extent < kBlockExtents; ++extent) {
    if (extent != 2) receiver.on_event(written_whole(extent));
  }
  ASSERT_EQ(receiver.begin_sync(kFirst), kBlockExtents - 2);
  (void)receiver.sync_succeeded(kFirst);
  (void)receiver.journalled(kFirst);
  EXPECT_EQ(receiver.judge_unread(99), Judgement::kForgotten);
  const Receiver::Actions actions = receiver.take_actions();
  ASSERT_EQ(actions.needs.size(), 1U);
  EXPECT_EQ(actions.needs[0].ranges, (std::vector<Range>{extents(ExtentId(0), kBlockExtents)}));
  EXPECT_EQ(receiver.bytes_written(), uint64_t{kExtent});
  const std::optional<Unread> next = receiver.take_unread(kFirst);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->range, extents(ExtentId(kBlockExtents))) << "extent 2 is not unread any more";
  EXPECT_EQ(receiver.judge_unread(kCrc), Judgement::kGood);
  (void)receiver.take_actions();
}

TEST_F(UnreadTest, ABadOneIsReadAgainWhenASyncHasBegunMeanwhile) {
  Receiver receiver = restored(3, rows_of(3, {0}));
  ASSERT_TRUE(receiver.take_unread(kFirst));
  receiver.on_event(written_whole(1));
  ASSERT_EQ(receiver.begin_sync(kFirst), 1U);
  EXPECT_EQ(receiver.judge_unread(99), Judgement::kLater);
  (void)receiver.sync_succeeded(kFirst);
  (void)receiver.journalled(kFirst);
  ASSERT_TRUE(receiver.take_unread(kFirst));
  EXPECT_EQ(receiver.judge_unread(99), Judgement::kForgotten);
  (void)receiver.take_actions();
}

// Durable, and the journal would not take its row: it waits for the next sync, and may be forgotten before.
TEST_F(UnreadTest, AForgottenOneThatAwaitsItsRowIsInNoSync) {
  Receiver receiver = restored(2, rows_of(2, {0}));
  receiver.on_event(written_whole(1));
  ASSERT_EQ(receiver.begin_sync(kFirst), 1U);
  (void)receiver.sync_succeeded(kFirst);
  receiver.not_journalled(kFirst);
  ASSERT_TRUE(receiver.take_unread(kFirst));
  EXPECT_EQ(receiver.judge_unread(99), Judgement::kForgotten);
  EXPECT_EQ(receiver.unsynced_bytes(), 0U);
  EXPECT_EQ(receiver.begin_sync(kFirst), 0U);
  (void)receiver.take_actions();
}

TEST_F(UnreadTest, AFileThatBeginsAnewOrIsDoneHasNone) {
  Receiver anew = restored(2, rows_of(2, {0}));
  anew.begin_anew(kFirst);
  EXPECT_EQ(anew.unread_bytes(), 0U);
  Receiver done = restored(2, rows_of(2, {0}));
  done.set_done(kFirst, 1);
  EXPECT_EQ(done.unread_bytes(), 0U);
  done.distrust(kFirst);
  EXPECT_EQ(done.unread_bytes(), 0U);
}

}  // namespace
}  // namespace sluice::recovery
