// What a failed sync takes back.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/recovery/numbers_for_test.h"
#include "control/recovery/receiver.h"

namespace sluice::recovery {
namespace {

constexpr uint64_t kSize = 100 * kExtent;

board::Event written(uint64_t extent, uint64_t crc) {
  return {
      .kind = board::EventKind::kExtentWritten, .offset = extent * kExtent, .length = kExtent, .digest = crc};
}

class SyncTest : public testing::Test {
 protected:
  Receiver receiver_{{layout_of(kSize)}, 1, {.sync_lag_bytes = 1, .sync_lag_ns = 1}};
};

TEST_F(SyncTest, AFailedSyncTakesBackEverythingSinceTheLastGoodOne) {
  receiver_.on_event(written(0, 10));
  ASSERT_EQ(receiver_.begin_sync(kFirst), 1U);
  receiver_.sync_succeeded(kFirst);
  EXPECT_EQ(receiver_.journalled(kFirst), (std::vector<Range>{extents(ExtentId(0))}));
  const uint64_t digest = receiver_.digest(kFirst);

  receiver_.on_event(written(1, 11));
  ASSERT_EQ(receiver_.begin_sync(kFirst), 1U);
  // Written while the sync runs, it is as uncertain: the error may be that of this write.
  receiver_.on_event(written(2, 12));
  receiver_.take_actions();
  EXPECT_TRUE(receiver_.sync_failed(kFirst));
  const Receiver::Actions actions = receiver_.take_actions();
  ASSERT_EQ(actions.needs.size(), 1U);
  EXPECT_EQ(actions.needs[0].ranges, (std::vector<Range>{extents(ExtentId(1), 2)}));
  ASSERT_EQ(actions.commands.size(), 1U);
  EXPECT_EQ(actions.commands[0].kind, board::CommandKind::kForgetExtents);
  EXPECT_TRUE(receiver_.written(kFirst).is_set(ExtentId(0)));
  EXPECT_FALSE(receiver_.written(kFirst).is_set(ExtentId(1)));
  EXPECT_FALSE(receiver_.written(kFirst).is_set(ExtentId(2)));
  EXPECT_EQ(receiver_.digest(kFirst), digest);
  EXPECT_EQ(receiver_.unsynced_bytes(), 0U);
  EXPECT_EQ(receiver_.bytes_written(), kExtent);
}

TEST_F(SyncTest, ASecondFailureMeansThatTheDiskIsBad) {
  for (const bool first : {true, false}) {
    receiver_.on_event(written(1, 11));
    ASSERT_EQ(receiver_.begin_sync(kFirst), 1U);
    EXPECT_EQ(receiver_.sync_failed(kFirst), first);
  }
}

TEST_F(SyncTest, WhatTheJournalDidNotTakeIsSyncedAndJournalledAgain) {
  receiver_.on_event(written(1, 11));
  ASSERT_EQ(receiver_.begin_sync(kFirst), 1U);
  EXPECT_EQ(receiver_.sync_succeeded(kFirst).size(), 1U);
  receiver_.not_journalled(kFirst);
  EXPECT_TRUE(receiver_.written(kFirst).is_set(ExtentId(1)));
  ASSERT_EQ(receiver_.begin_sync(kFirst), 1U);
  EXPECT_EQ(receiver_.sync_succeeded(kFirst).size(), 1U);
  EXPECT_EQ(receiver_.journalled(kFirst), (std::vector<Range>{extents(ExtentId(1))}));
}

}  // namespace
}  // namespace sluice::recovery
