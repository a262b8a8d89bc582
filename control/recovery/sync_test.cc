// What a failed sync takes back.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/recovery/receiver.h"

namespace sluice::recovery {
namespace {

constexpr uint32_t kExtent = 65536;
constexpr uint64_t kSize = 100 * kExtent;

board::Event written(uint64_t extent, uint64_t crc) {
  return {
      .kind = board::EventKind::kExtentWritten, .offset = extent * kExtent, .length = kExtent, .digest = crc};
}

class SyncTest : public testing::Test {
 protected:
  Receiver receiver_{{{kSize, kExtent, crc::CrcKind::kCrc64Ecma}}, {.sync_lag_bytes = 1, .sync_lag_ns = 1}};
};

TEST_F(SyncTest, AFailedSyncTakesBackEverythingSinceTheLastGoodOne) {
  receiver_.on_event(written(0, 10));
  ASSERT_EQ(receiver_.begin_sync(0), 1U);
  receiver_.synced(0);
  EXPECT_EQ(receiver_.durable(0), (std::vector<Range>{{0, kExtent}}));
  const uint64_t digest = receiver_.digest(0);

  receiver_.on_event(written(1, 11));
  ASSERT_EQ(receiver_.begin_sync(0), 1U);
  receiver_.on_event(written(2, 12));  // while the sync runs: the error may be that of this write
  receiver_.take();
  EXPECT_TRUE(receiver_.sync_failed(0));
  const Receiver::Out out = receiver_.take();
  ASSERT_EQ(out.needs.size(), 1U);
  EXPECT_EQ(out.needs[0].ranges, (std::vector<Range>{{kExtent, 2 * kExtent}}));
  ASSERT_EQ(out.commands.size(), 1U);
  EXPECT_EQ(out.commands[0].kind, board::CommandKind::kForgetExtents);
  EXPECT_TRUE(receiver_.written(0).is_set(0));
  EXPECT_FALSE(receiver_.written(0).is_set(1));
  EXPECT_FALSE(receiver_.written(0).is_set(2));
  EXPECT_EQ(receiver_.digest(0), digest);
  EXPECT_EQ(receiver_.unsynced_bytes(), 0U);
  EXPECT_EQ(receiver_.bytes_written(), kExtent);
}

TEST_F(SyncTest, ASecondFailureMeansThatTheDiskIsBad) {
  for (const bool first : {true, false}) {
    receiver_.on_event(written(1, 11));
    ASSERT_EQ(receiver_.begin_sync(0), 1U);
    EXPECT_EQ(receiver_.sync_failed(0), first);
  }
}

TEST_F(SyncTest, WhatTheJournalDidNotTakeIsSyncedAndJournalledAgain) {
  receiver_.on_event(written(1, 11));
  ASSERT_EQ(receiver_.begin_sync(0), 1U);
  EXPECT_EQ(receiver_.synced(0).size(), 1U);
  receiver_.not_journalled(0);
  EXPECT_TRUE(receiver_.written(0).is_set(1));
  ASSERT_EQ(receiver_.begin_sync(0), 1U);
  EXPECT_EQ(receiver_.synced(0).size(), 1U);
  EXPECT_EQ(receiver_.durable(0), (std::vector<Range>{{kExtent, kExtent}}));
}

}  // namespace
}  // namespace sluice::recovery
