// Two whole workers, files on disk, and a wire with faults: every byte must arrive, whatever happens.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/lane/lane_fixture_for_test.h"

namespace sluice::lane::testing {
namespace {

TEST_F(Lane, MovesAFileOverACleanWireWithoutRepeatingAnything) {
  const auto data = make_source(3'000'001);
  open_flows(crc_, 8192);
  transfer(data.size(), {}, true);
  expect_identical(data);
  EXPECT_EQ(a_.board().flows[kTxSlot].state.retransmitted_chunks, 0U);
  EXPECT_EQ(b_.board().flows[kRxSlot].state.duplicate_chunks, 0U);
  close_flows();
  expect_counters_add_up(a_);
  expect_counters_add_up(b_);
}

TEST_F(Lane, EverySizeAroundChunkAndExtentBorders) {
  for (const uint64_t bytes : {1, 511, 512, 8191, 8192, 8193, 65535, 65536, 65537, 262143, 262144, 262145}) {
    SCOPED_TRACE(bytes);
    const auto data = make_source(bytes);
    open_flows(crc_, 1384);
    transfer(bytes, {}, true);
    expect_identical(data);
    close_flows();
    a_.objects.retract(0, 0);
    b_.objects.retract(0, 0);
    partitions_.clear();
    next_partition_ = 0;
    written_ = digest_sent_ = digest_written_ = settle_ = sent_end_ = 0;
    closed_ = 0;
    b_.board().flows[kRxSlot].control.settled_below = 0;
  }
}

TEST_F(Lane, Crc32cCarriesTheSameGuarantees) {
  crc_ = wire::CrcKind::kCrc32c;
  const auto data = make_source(1'000'000);
  open_flows(crc_, 8192);
  transfer(data.size(), {.loss = 0.01, .corrupt = 0.01}, true);
  expect_identical(data);
}

TEST_F(Lane, FastRecoveryRepairsLossWithoutNeed) {
  const auto data = make_source(8'000'000);
  open_flows(crc_, 8192);
  transfer(data.size(), {.loss = 0.05, .to_sender_too = false}, true);
  expect_identical(data);
  EXPECT_GT(a_.board().flows[kTxSlot].state.retransmitted_chunks, 20U);
  EXPECT_EQ(a_.board().flows[kTxSlot].state.repaired_chunks, 0U);
  EXPECT_EQ(b_.board().flows[kRxSlot].state.duplicate_chunks, 0U);  // nothing sent twice for one loss
  close_flows();
}

TEST_F(Lane, NeedAloneCompletesATransfer) {
  const auto data = make_source(2'000'000);
  open_flows(crc_, 8192);
  transfer(data.size(), {.loss = 0.2}, false, 2'000'000);
  expect_identical(data);
  EXPECT_EQ(a_.board().flows[kTxSlot].state.retransmitted_chunks, 0U);
  EXPECT_GT(a_.board().flows[kTxSlot].state.repaired_chunks, 0U);
  close_flows();
}

TEST_F(Lane, EveryFaultAtOnce) {
  const auto data = make_source(6'000'000);
  open_flows(crc_, 4096);
  transfer(data.size(), {.loss = 0.05, .duplicate = 0.05, .corrupt = 0.05, .reorder = 0.2}, true, 2'000'000);
  expect_identical(data);
  EXPECT_GT(b_.board().flows[kRxSlot].state.duplicate_chunks, 0U);
  EXPECT_GT(b_.board().flows[kRxSlot].state.crc_errors, 0U);
  close_flows();
  expect_counters_add_up(a_);
  expect_counters_add_up(b_);
}

TEST_F(Lane, CloseInTheMiddleLeavesNothingBehind) {
  const auto data = make_source(4'000'000);
  open_flows(crc_, 8192);
  bytes_ = data.size();
  for (const auto& [offset, length] : partitions_) {
    a_.board().workers[0].commands.push({.kind = board::CommandKind::kPartition,
                                         .flow = kTxSlot,
                                         .object = 0,
                                         .offset = offset,
                                         .length = length});
  }
  for (int i = 0; i < 60; ++i) {
    now_ns_ += kStepNs;
    a_.step(now_ns_);
    carry(a_, b_, {.loss = 0.1});
    b_.step(now_ns_);
    carry(b_, a_, {});
    handle_events();
  }
  ASSERT_GT(a_.board().flows[kTxSlot].state.chunks, 0U);
  close_flows();
}

TEST_F(Lane, RefusesCommandsThatMakeNoSense) {
  a_.command({.kind = board::CommandKind::kOpenFlow, .flow = 1u << 30});
  a_.command({.kind = board::CommandKind::kPartition, .flow = 5, .offset = 1, .length = 1});
  a_.command({.kind = static_cast<board::CommandKind>(77), .flow = 5});
  a_.board().flows[9].config.direction = board::Direction::kTx;  // everything else is zero
  a_.command({.kind = board::CommandKind::kOpenFlow, .flow = 9});
  a_.step(now_ns_);
  EXPECT_EQ(a_.counter(Counter::bad_commands), 4U);
}

TEST_F(Lane, AStrangersDatagramsChangeNothing) {
  const auto data = make_source(300'000);
  open_flows(crc_, 8192);
  transfer(data.size(), {}, true);
  // The last data frame again, but from another UDP port.
  net::FrameTemplate t;
  Frame frame(14 + 20 + 8 + 64);
  net::Address from;
  net::Address to;
  std::memcpy(from.bytes, a_.port.info().ip4, 16);
  std::memcpy(to.bytes, b_.port.info().ip4, 16);
  t = net::FrameTemplate(from, 4711, to, 47000);
  t.write(frame.data(), 64);
  wire::encode({.type = wire::Type::kProbe, .flow_id = 0xABCDEF0000000000ULL | kRxSlot, .tx_seq = 1ULL << 40},
               std::span<uint8_t, 64>(frame.data() + 42, 64));
  b_.port.queue(0).arrived.push_back(frame);
  const uint64_t before = b_.counter(Counter::rx_drop_unknown_flow);
  b_.step(now_ns_);
  EXPECT_EQ(b_.counter(Counter::rx_drop_unknown_flow), before + 1);
  EXPECT_LT(b_.board().flows[kRxSlot].state.probe_end, 1ULL << 40);
}

}  // namespace
}  // namespace sluice::lane::testing
