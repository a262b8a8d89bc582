// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/receiver.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::recovery {
namespace {

using board::CommandKind;
using board::EventKind;

constexpr uint32_t kExtent = 65536;
constexpr uint64_t kMs = 1'000'000;

class ReceiverTest : public testing::Test {
 protected:
  Receiver make(std::vector<uint64_t> sizes) {
    std::vector<Layout> layouts;
    for (const uint64_t size : sizes) layouts.push_back({size, kExtent, crc::CrcKind::kCrc64Ecma});
    return Receiver(layouts, {.sync_lag_bytes = 1 << 20, .sync_lag_ns = 100 * kMs});
  }
  static board::Event written(uint32_t object, uint64_t extent, uint64_t crc = 1) {
    return {.kind = EventKind::kExtentWritten,
            .object = object,
            .offset = extent * kExtent,
            .length = kExtent,
            .digest = crc};
  }
  static board::Event missing(uint32_t object, Range range, uint32_t tag) {
    return {.kind = EventKind::kMissing,
            .object = object,
            .tag = tag,
            .offset = range.offset,
            .length = range.length};
  }
  static board::Event end(uint32_t object, uint32_t tag) {
    return {.kind = EventKind::kMissingEnd, .object = object, .tag = tag};
  }
};

TEST_F(ReceiverTest, DurableOnlyAfterSyncAndJournal) {
  Receiver receiver = make({2 * kExtent});
  receiver.start_attempt(0);
  receiver.on_event(written(0, 0, 11));
  EXPECT_TRUE(receiver.ledger(0).map().missing(0, 2 * kExtent, 9).front().length == 2 * kExtent);
  EXPECT_EQ(receiver.begin_sync(0), 1U);
  EXPECT_EQ(receiver.begin_sync(0), 0U) << "one at a time";
  receiver.on_event(written(0, 1, 12));  // while the sync is under way: not of this batch
  const std::vector<Block> rows = receiver.synced(0);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(receiver.durable(0), (std::vector<Range>{{0, kExtent}}));
  EXPECT_EQ(receiver.unsynced_bytes(), kExtent);

  Receiver again = make({2 * kExtent});
  ASSERT_TRUE(again.restore(0, rows[0]));
  again.restored();
  EXPECT_EQ(again.held(0), (std::vector<Range>{{0, kExtent}}));
}

TEST_F(ReceiverTest, AnAdoptionForgetsWhatOnlyTheDeadControlKnew) {
  Receiver receiver = make({4 * kExtent});
  receiver.adopt(2, {0}, 0);
  Receiver::Out out = receiver.take();
  ASSERT_EQ(out.commands.size(), 1U);
  // Of an extent that is being written an event will come: it counts as missing.
  EXPECT_EQ(out.commands[0].kind, CommandKind::kQueryUnwritten);
  receiver.on_event(written(0, 0));
  receiver.on_event(missing(0, {2 * kExtent, 2 * kExtent}, Receiver::kAdoptTag));
  receiver.on_event(end(0, Receiver::kAdoptTag));
  EXPECT_EQ(receiver.take().commands.size(), 2U) << "an answer from every lane";
  receiver.on_event(end(0, Receiver::kAdoptTag));
  receiver.on_event(end(0, Receiver::kAdoptTag));
  out = receiver.take();
  ASSERT_EQ(out.needs.size(), 1U);
  EXPECT_EQ(out.needs[0].ranges, (std::vector<Range>{{kExtent, kExtent}}));
  EXPECT_EQ(out.commands[0].kind, CommandKind::kForgetExtents);
  EXPECT_TRUE(receiver.adopting());
  receiver.on_event(end(0, Receiver::kAdoptTag));
  receiver.on_event(end(0, Receiver::kAdoptTag));
  EXPECT_FALSE(receiver.adopting());
}

TEST_F(ReceiverTest, AnAdoptionEndsThoughAFileBecomesDoneMeanwhile) {
  Receiver receiver = make({kExtent});
  receiver.adopt(1, {0}, 0);
  receiver.on_event(written(0, 0));
  receiver.set_done(0, 1);
  receiver.on_event(end(0, Receiver::kAdoptTag));
  receiver.on_event(end(0, Receiver::kAdoptTag));
  EXPECT_FALSE(receiver.adopting());
  EXPECT_TRUE(receiver.take().needs.empty());
}

// The source was told of bytes that were written and never durable; it will not send them by itself.
TEST_F(ReceiverTest, AfterAnAdoptionWhateverStaysMissingIsAskedFor) {
  Receiver receiver = make({2 * kExtent});
  receiver.adopt(1, {0}, kMs);
  receiver.on_event(missing(0, {0, 2 * kExtent}, Receiver::kAdoptTag));
  receiver.on_event(end(0, Receiver::kAdoptTag));
  receiver.on_event(end(0, Receiver::kAdoptTag));
  ASSERT_FALSE(receiver.adopting());
  receiver.take();
  receiver.tick(kMs + NeedPlanner::kQuietNs + 1);
  const Receiver::Out asked = receiver.take();
  ASSERT_EQ(asked.commands.size(), 1U);
  EXPECT_EQ(asked.commands[0].kind, CommandKind::kQueryMissing);
  EXPECT_EQ(asked.commands[0].range, (Range{0, 2 * kExtent}));
  receiver.on_event(missing(0, {0, kExtent}, asked.commands[0].tag));
  receiver.on_event(end(0, asked.commands[0].tag));
  const Receiver::Out out = receiver.take();
  ASSERT_EQ(out.needs.size(), 1U);
  EXPECT_EQ(out.needs[0].ranges, (std::vector<Range>{{0, kExtent}}));
}

TEST_F(ReceiverTest, ANeedNamesTheLaneWhoseWorkerLacksTheBytes) {
  Receiver receiver = make({4 * kExtent});
  receiver.start_attempt(0);
  ASSERT_TRUE(receiver.partition_sent(0, 1, {0, kExtent}));
  ASSERT_TRUE(receiver.partition_sent(0, 2, {2 * kExtent, kExtent}));
  receiver.tick(NeedPlanner::kQuietNs + 1);
  const Receiver::Out asked = receiver.take();
  ASSERT_EQ(asked.commands.size(), 2U);
  const uint32_t tag = asked.commands[0].tag;
  receiver.on_event(missing(0, {2 * kExtent + 512, 512}, tag));
  receiver.on_event(missing(0, {512, 512}, tag));
  receiver.on_event(missing(0, {3 * kExtent, 512}, tag));  // nobody was asked for that
  receiver.on_event(end(0, tag));
  receiver.on_event(end(0, tag));
  const Receiver::Out out = receiver.take();
  ASSERT_EQ(out.needs.size(), 2U);
  EXPECT_EQ(out.needs[0].lane, 1U);
  EXPECT_EQ(out.needs[0].ranges, (std::vector<Range>{{512, 512}}));
  EXPECT_EQ(out.needs[1].lane, 2U);
  EXPECT_EQ(out.needs[1].ranges, (std::vector<Range>{{2 * kExtent + 512, 512}}));
}

TEST_F(ReceiverTest, FinishesAFileOnceItIsCompleteAndItsDigestIsTheSources) {
  Receiver receiver = make({kExtent, kExtent});
  receiver.start_attempt(0);
  receiver.on_event(written(0, 0, 5));
  receiver.on_event(written(1, 0, 6));
  EXPECT_FALSE(receiver.file_digest(0, kExtent + 1, 5));
  EXPECT_TRUE(receiver.file_digest(0, kExtent, 5));
  EXPECT_TRUE(receiver.file_digest(1, kExtent, 7));
  const Receiver::Out out = receiver.take();
  EXPECT_EQ(out.finished, std::vector<uint32_t>{0});
  EXPECT_EQ(out.differ, std::vector<uint32_t>{1});
}

}  // namespace
}  // namespace sluice::recovery
