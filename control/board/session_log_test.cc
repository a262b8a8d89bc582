// What workers note comes to control in order and bounded, whatever stands in the memory that both share.
// SPDX-License-Identifier: Apache-2.0
#include "control/board/session_log.h"

#include <gtest/gtest.h>

#include <memory>

namespace sluice::board {
namespace {

constexpr LogTime kNow{.monotonic_ns = 5'000'000'000, .unix_ns = 1'700'000'000'000'000'000};

class SessionLogTest : public testing::Test {
 protected:
  static bool note(FlowSlot& flow, uint64_t time_ns, LogKind kind = LogKind::kGap, uint64_t tx_seq = 0) {
    return flow.log.push({.time_ns = time_ns, .tx_seq = tx_seq, .kind = kind});
  }
  void look() { log_.look({{0, first_.get()}, {1, second_.get()}}, kNow); }
  const LogRecord& at(uint64_t number) const { return log_.at(number); }

  const std::unique_ptr<FlowSlot> first_ = std::make_unique<FlowSlot>();
  const std::unique_ptr<FlowSlot> second_ = std::make_unique<FlowSlot>();
  SessionLog log_{LogLevel::kEvents};
};

TEST_F(SessionLogTest, RecordsOfAllLanesStandInTheOrderOfTheirTimes) {
  ASSERT_TRUE(note(*first_, kNow.monotonic_ns - 300) && note(*first_, kNow.monotonic_ns - 100) &&
              note(*second_, kNow.monotonic_ns - 200, LogKind::kRate));
  look();
  ASSERT_EQ(log_.end(), 3U);
  EXPECT_EQ(at(0).unix_ns, kNow.unix_ns - 300);
  EXPECT_EQ(at(1).lane, 1U);
  EXPECT_EQ(at(1).event.kind, LogKind::kRate);
  EXPECT_EQ(at(2).unix_ns, kNow.unix_ns - 100);
}

TEST_F(SessionLogTest, NothingWasNotedInTheFuture) {
  ASSERT_TRUE(note(*first_, UINT64_MAX));
  look();
  EXPECT_EQ(at(0).unix_ns, kNow.unix_ns);
}

TEST_F(SessionLogTest, WorkersAreToldTheLevel) {
  look();
  EXPECT_EQ(first_->control.log_level.load(), 1U);
  log_.set_level(LogLevel::kPackets);
  look();
  EXPECT_EQ(second_->control.log_level.load(), 2U);
}

TEST_F(SessionLogTest, WhatIsNoNoteIsCountedAsMissing) {
  ASSERT_TRUE(note(*second_, 1, static_cast<LogKind>(0)) && note(*second_, 2, static_cast<LogKind>(77)) &&
              note(*second_, 3));
  look();
  ASSERT_EQ(log_.end(), 2U);
  EXPECT_EQ(at(0).event.time_ns, 3U);
  EXPECT_EQ(at(1).dropped, 2U);
  EXPECT_EQ(at(1).lane, 1U);
}

TEST_F(SessionLogTest, WhatFoundTheRingFullIsToldOnceBehindWhatIsInIt) {
  ASSERT_TRUE(note(*first_, 10));
  first_->state.log_dropped = 7;
  look();
  look();
  ASSERT_EQ(log_.end(), 2U);
  EXPECT_EQ(at(1).dropped, 7U);
  first_->state.log_dropped = 2;  // of the next flow in the slot, which counts from 0
  look();
  EXPECT_EQ(at(2).dropped, 2U);
  EXPECT_EQ(log_.dropped(), 9U);
}

TEST_F(SessionLogTest, TheNewestAreKept) {
  uint64_t number = 0;
  while (log_.end() < SessionLog::kRecordsKept + 100) {
    for (int n = 0; n < 1000; ++n, ++number) ASSERT_TRUE(note(*first_, number, LogKind::kGap, number));
    look();
  }
  EXPECT_EQ(log_.end() - log_.begin(), SessionLog::kRecordsKept);
  EXPECT_EQ(at(log_.end() - 1).event.tx_seq, number - 1);
  EXPECT_EQ(at(log_.begin()).event.tx_seq, number - SessionLog::kRecordsKept);
}

TEST_F(SessionLogTest, LevelsHaveNames) {
  for (const auto level : {LogLevel::kOff, LogLevel::kEvents, LogLevel::kPackets})
    EXPECT_EQ(log_level_of(log_level_name(level)), level);
  EXPECT_FALSE(log_level_of("loud"));
  EXPECT_EQ(log_kind_name(kLogKindLast), "received");
  EXPECT_EQ(log_kind_name(static_cast<LogKind>(99)), "unknown");
}

}  // namespace
}  // namespace sluice::board
