// The sums of an object are whole when all that is written came with its own, or was read again.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/recovery/numbers_for_test.h"
#include "control/recovery/receiver.h"

namespace sluice::recovery {
namespace {

constexpr sums::Mask kWanted = board::kSumCrc32c | board::kSumAdler32;

sums::ExtentSums sums_of(uint64_t first, uint64_t length, bool whole = false) {
  sums::Summer summer;
  summer.begin(kWanted, first * kExtent, whole);
  for (uint64_t i = 0; i * kExtent < length; ++i) {
    const std::vector<uint8_t> extent(kExtent, static_cast<uint8_t>(first + i + 1));
    summer.add(extent.data(), kExtent);
  }
  return summer.value();
}

board::Event with_sums(uint64_t extent, sums::Mask summed = kWanted) {
  return {.kind = board::EventKind::kExtentWritten,
          .tag = summed,
          .offset = extent * kExtent,
          .length = kExtent,
          .digest = 0x77,
          .sums = sums_of(extent, kExtent)};
}

Receiver of_extents(uint64_t count) {
  Indexed<ObjectId, Layout> layouts;
  layouts.push_back(layout_of(count * kExtent));
  Receiver receiver(layouts, 1, {.sync_lag_bytes = 1, .sync_lag_ns = 1});
  receiver.sum(kFirst, kWanted);
  receiver.start_attempt(kLeg, 1, 0);
  return receiver;
}

TEST(ReceiverSums, AreWholeOnceAllIsWritten) {
  Receiver receiver = of_extents(5);
  for (const uint64_t extent : {3, 0, 4, 1}) receiver.on_event(with_sums(extent));
  EXPECT_FALSE(receiver.sums(kFirst).whole());
  receiver.on_event(with_sums(2));
  ASSERT_TRUE(receiver.sums(kFirst).whole());
  EXPECT_EQ(*receiver.sums(kFirst).whole(), sums_of(0, 5 * kExtent, true));
}

TEST(ReceiverSums, AnExtentWithoutItsSumsLeavesThemIncomplete) {
  Receiver receiver = of_extents(2);
  receiver.on_event(with_sums(0));
  receiver.on_event(with_sums(1, board::kSumCrc32c));
  EXPECT_TRUE(receiver.written(kFirst).complete());
  EXPECT_FALSE(receiver.sums(kFirst).whole());
}

// What a failed sync takes back comes again, maybe with other bytes.
TEST(ReceiverSums, WhatIsForgottenIsSummedAnew) {
  Receiver receiver = of_extents(3);
  for (const uint64_t extent : {0, 1}) receiver.on_event(with_sums(extent));
  ASSERT_EQ(receiver.begin_sync(kFirst), 2U);
  ASSERT_TRUE(receiver.sync_failed(kFirst));
  (void)receiver.take_actions();
  EXPECT_EQ(receiver.sums(kFirst).entries(), 0U);
  for (const uint64_t extent : {2, 1, 0}) receiver.on_event(with_sums(extent));
  ASSERT_TRUE(receiver.sums(kFirst).whole());
  EXPECT_EQ(*receiver.sums(kFirst).whole(), sums_of(0, 3 * kExtent, true));
  receiver.begin_anew(kFirst);
  EXPECT_FALSE(receiver.sums(kFirst).whole());
  EXPECT_EQ(receiver.sums(kFirst).wanted(), kWanted);
}

// As after a restart of control: workers may tell what they have written before the journal's extents are
// distrusted.
TEST(ReceiverSums, WhatIsReadAgainIsSummedAsItIsRead) {
  Receiver before = of_extents(3);
  for (const uint64_t extent : {0, 1}) before.on_event(with_sums(extent));
  ASSERT_EQ(before.begin_sync(kFirst), 2U);
  const std::vector<Block> rows = before.sync_succeeded(kFirst);
  Receiver receiver = of_extents(3);
  for (const Block& row : rows) ASSERT_TRUE(receiver.restore(kFirst, row));
  receiver.finish_restore();
  receiver.on_event(with_sums(2));
  receiver.distrust(kFirst);
  EXPECT_EQ(receiver.sums(kFirst).entries(), 1U);
  const std::optional<Unread> unread = receiver.take_unread(kFirst);
  ASSERT_TRUE(unread);
  EXPECT_EQ(unread->range.length, 2 * kExtent);
  const uint64_t crc = crc::shift(crc::CrcKind::kCrc64Ecma, 0x77, kExtent) ^ 0x77;
  const sums::Summed read{.subtree = {.first = 0, .height = 1}, .sums = sums_of(0, 2 * kExtent)};
  EXPECT_EQ(receiver.judge_unread(crc, {read}), Judgement::kGood);
  ASSERT_TRUE(receiver.sums(kFirst).whole());
  EXPECT_EQ(*receiver.sums(kFirst).whole(), sums_of(0, 3 * kExtent, true));
  (void)receiver.take_actions();
}

// What it had been joined with, too.
TEST(ReceiverSums, WhatIsDistrustedIsNotTrusted) {
  Receiver receiver = of_extents(4);
  for (const uint64_t extent : {0, 1}) receiver.on_event(with_sums(extent));
  ASSERT_EQ(receiver.begin_sync(kFirst), 2U);
  (void)receiver.sync_succeeded(kFirst);
  (void)receiver.journalled(kFirst);
  for (const uint64_t extent : {2, 3}) receiver.on_event(with_sums(extent));
  ASSERT_TRUE(receiver.sums(kFirst).whole());
  receiver.distrust(kFirst);
  EXPECT_EQ(receiver.sums(kFirst).entries(), 0U);
  (void)receiver.take_actions();
}

}  // namespace
}  // namespace sluice::recovery
