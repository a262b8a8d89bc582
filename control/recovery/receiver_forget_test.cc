// What a receiver is told to forget: extents of which it turned out that they are worth nothing.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/recovery/numbers_for_test.h"
#include "control/recovery/receiver.h"

namespace sluice::recovery {
namespace {

constexpr uint64_t kExtents = 100;

board::Event written(uint64_t extent) {
  return {.kind = board::EventKind::kExtentWritten,
          .offset = extent * kExtent,
          .length = kExtent,
          .digest = 10 + extent};
}

class ForgetTest : public testing::Test {
 protected:
  ForgetTest() { receiver_.start_attempt(kLeg, 1, 0); }
  void write(uint64_t first, uint64_t end) {
    for (uint64_t extent = first; extent < end; ++extent) receiver_.on_event(written(extent));
  }
  void sync() {
    ASSERT_NE(receiver_.begin_sync(kFirst), 0U);
    (void)receiver_.sync_succeeded(kFirst);
    (void)receiver_.journalled(kFirst);
  }
  bool forget(uint64_t first, uint64_t end) {
    return receiver_.forget(kFirst, {.first = ExtentId(first), .end = ExtentId(end)});
  }
  // What the workers are told to take again.
  std::vector<Range> forgotten() {
    std::vector<Range> ranges;
    for (const LaneCommand& command : receiver_.take_actions().commands)
      if (command.kind == board::CommandKind::kForgetExtents) ranges.push_back(command.range);
    return ranges;
  }

  Receiver receiver_{{layout_of(kExtents * kExtent)}, 1, {.sync_lag_bytes = 1, .sync_lag_ns = 1}};
};

TEST_F(ForgetTest, WhatIsNotDurableYet) {
  write(0, 1);
  const uint64_t digest = receiver_.digest(kFirst);
  write(1, 3);
  ASSERT_TRUE(forget(1, 3));
  EXPECT_EQ(receiver_.digest(kFirst), digest);
  EXPECT_EQ(receiver_.bytes_written(), kExtent);
  EXPECT_EQ(receiver_.unsynced_bytes(), kExtent);
  EXPECT_EQ(forgotten(), (std::vector<Range>{extents(ExtentId(1), 2)}));
  EXPECT_EQ(receiver_.forgettings(), 1U);
}

TEST_F(ForgetTest, WhatAWorkerWroteAndNobodyCounted) {
  ASSERT_TRUE(forget(5, 6));
  EXPECT_EQ(forgotten(), (std::vector<Range>{extents(ExtentId(5))}));
  EXPECT_EQ(receiver_.bytes_written(), 0U);
}

TEST_F(ForgetTest, WhatIsDurableAndTheJournalHearsOfIt) {
  write(0, 1);
  sync();
  const uint64_t digest = receiver_.digest(kFirst);
  write(1, 2);
  sync();
  (void)receiver_.take_changed(kFirst);
  ASSERT_TRUE(forget(1, 2));
  EXPECT_EQ(receiver_.digest(kFirst), digest);
  EXPECT_EQ(receiver_.bytes_written(), kExtent);
  EXPECT_EQ(forgotten(), (std::vector<Range>{extents(ExtentId(1))}));
  EXPECT_EQ(receiver_.take_changed(kFirst).size(), 1U);
}

// Only the common digest of a full block is known.
TEST_F(ForgetTest, AFullBlockGoesAsAWhole) {
  write(0, kBlockExtents + 1);
  sync();
  write(kBlockExtents + 1, kBlockExtents + 2);
  ASSERT_TRUE(forget(3, 5));
  EXPECT_EQ(receiver_.bytes_written(), 2 * kExtent);
  EXPECT_EQ(forgotten(), (std::vector<Range>{extents(ExtentId(0), kBlockExtents)}));
}

TEST_F(ForgetTest, AFileThatIsGoneIsForgotten) {
  write(0, 3);
  const uint64_t before = receiver_.forgettings();
  receiver_.begin_anew(kFirst);
  EXPECT_NE(receiver_.forgettings(), before);
}

TEST_F(ForgetTest, NothingThatASyncConcerns) {
  write(0, 2);
  ASSERT_NE(receiver_.begin_sync(kFirst), 0U);
  EXPECT_FALSE(forget(0, 1));
  EXPECT_TRUE(forget(7, 8)) << "of this the sync knows nothing";
  (void)receiver_.sync_succeeded(kFirst);
  (void)receiver_.journalled(kFirst);
  EXPECT_TRUE(forget(0, 1));
  EXPECT_EQ(receiver_.bytes_written(), kExtent);
}

TEST_F(ForgetTest, WhatNobodyHasReadAgainNeedNotBeRead) {
  write(0, 3);
  sync();
  receiver_.distrust(kFirst);
  EXPECT_EQ(receiver_.unread_bytes(), 3 * kExtent);
  ASSERT_TRUE(forget(0, 2));
  EXPECT_EQ(receiver_.unread_bytes(), kExtent);
  const std::optional<Unread> unread = receiver_.take_unread(kFirst);
  ASSERT_TRUE(unread);
  EXPECT_EQ(unread->range, extents(ExtentId(2)));
}

}  // namespace
}  // namespace sluice::recovery
