// The network log: what two workers note of a transfer is what happened to it, and costs the transfer
// nothing.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "dataplane/lane/lane_fixture_for_test.h"

namespace sluice::lane::testing {
namespace {

using board::LogKind;

class FlowLogTest : public Lane {
 protected:
  void note(board::LogLevel level) {
    a_.board().flows[kTxSlot].control.log_level = static_cast<uint64_t>(level);
    b_.board().flows[kRxSlot].control.log_level = static_cast<uint64_t>(level);
  }
  // As control takes them, before each turn.
  void take() {
    board::LogEvent event;
    while (a_.board().flows[kTxSlot].log.pop(&event)) sent_[event.kind].push_back(event);
    while (b_.board().flows[kRxSlot].log.pop(&event)) received_[event.kind].push_back(event);
  }
  void run(const std::vector<uint8_t>& data, const Faults& faults, bool fast_recovery = true) {
    on_the_way = [this](Frame&, bool) {
      take();
      return true;
    };
    transfer(data.size(), faults, fast_recovery, 2'000'000);
    expect_identical(data);
    close_flows();
    take();
  }
  static uint64_t sum(const std::vector<board::LogEvent>& events, uint64_t board::LogEvent::*field) {
    uint64_t total = 0;
    for (const board::LogEvent& event : events) total += event.*field;
    return total;
  }

  std::map<LogKind, std::vector<board::LogEvent>> sent_;
  std::map<LogKind, std::vector<board::LogEvent>> received_;
};

TEST_F(FlowLogTest, GapsAndWhatIsSentAgainForThemAreNotedAtBothEnds) {
  const auto data = make_source(4'000'000);
  note(board::LogLevel::kEvents);
  open_flows(crc_, 8192);
  run(data, {.loss = 0.05, .to_sender_too = false});
  const board::FlowState& tx = a_.board().flows[kTxSlot].state;
  const board::FlowState& rx = b_.board().flows[kRxSlot].state;
  EXPECT_GT(sent_[LogKind::kRetransmission].size(), 10U);
  EXPECT_EQ(sent_[LogKind::kRetransmission].size(), tx.retransmitted_chunks);
  EXPECT_EQ(sum(sent_[LogKind::kGap], &board::LogEvent::value), tx.gaps_reported);
  EXPECT_EQ(sum(received_[LogKind::kGap], &board::LogEvent::value), rx.gaps_reported);
  EXPECT_EQ(sum(received_[LogKind::kCompletion], &board::LogEvent::length), data.size());
  EXPECT_GT(received_[LogKind::kReport].size(), 0U);
  EXPECT_EQ(sent_[LogKind::kRate].front().value, 20'000'000'000U);
  EXPECT_EQ(received_[LogKind::kOpened].size(), 1U);
  EXPECT_EQ(sent_[LogKind::kClosed].size() + received_[LogKind::kClosed].size(), 2U);
  EXPECT_TRUE(sent_[LogKind::kSent].empty() && received_[LogKind::kReceived].empty())
      << "no packets at this level";
  EXPECT_EQ(tx.log_dropped + rx.log_dropped, 0U);
}

TEST_F(FlowLogTest, NeedAndRepairsAreNoted) {
  const auto data = make_source(1'000'000);
  note(board::LogLevel::kEvents);
  open_flows(crc_, 8192);
  run(data, {.loss = 0.2}, false);
  EXPECT_GT(received_[LogKind::kNeed].size(), 0U);
  EXPECT_EQ(sum(sent_[LogKind::kNeed], &board::LogEvent::length),
            sum(received_[LogKind::kNeed], &board::LogEvent::length));
  EXPECT_EQ(sent_[LogKind::kRepair].size(), a_.board().flows[kTxSlot].state.repaired_chunks);
}

TEST_F(FlowLogTest, PacketsAreEachDatagramWithData) {
  const auto data = make_source(500'000);
  note(board::LogLevel::kPackets);
  open_flows(crc_, 8192);
  run(data, {});
  EXPECT_EQ(sent_[LogKind::kSent].size(), a_.board().flows[kTxSlot].state.chunks);
  EXPECT_EQ(sum(received_[LogKind::kReceived], &board::LogEvent::length), data.size());
  for (size_t n = 0; n < sent_[LogKind::kSent].size(); ++n) EXPECT_EQ(sent_[LogKind::kSent][n].tx_seq, n);
}

TEST_F(FlowLogTest, OffNothingIsNoted) {
  const auto data = make_source(1'000'000);
  open_flows(crc_, 8192);
  run(data, {.loss = 0.05});
  EXPECT_TRUE(sent_.empty() && received_.empty());
}

TEST_F(FlowLogTest, AFullRingHoldsUpNothingAndCountsWhatItLoses) {
  const auto data = make_source(30'000'000);
  note(board::LogLevel::kPackets);
  open_flows(crc_, 8192);
  transfer(data.size(), {}, true);  // nobody takes anything
  expect_identical(data);
  const board::FlowState& tx = a_.board().flows[kTxSlot].state;
  EXPECT_GT(tx.log_dropped, tx.chunks - board::kLogSlots);
  take();
  EXPECT_EQ(sent_[LogKind::kSent].front().tx_seq, 0U) << "the ring keeps what was first";
}

}  // namespace
}  // namespace sluice::lane::testing
