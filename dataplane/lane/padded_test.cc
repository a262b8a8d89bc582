// Probes with padding: what comes is counted by its size, and the sender hears of it.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "dataplane/lane/lane_fixture_for_test.h"

namespace sluice::lane::testing {
namespace {

class Padded : public Lane {
 protected:
  void send_padded(uint64_t bytes, uint32_t count, uint64_t round = 1) {
    a_.command({.kind = board::CommandKind::kSendPadded,
                .flow = kTxSlot,
                .tag = count,
                .offset = round,
                .length = bytes});
  }
  // The path from a to b carries frames of at most so many bytes.
  void run_narrow(int count, size_t frame_bytes_max) {
    on_the_way = [=](Frame& frame, bool from_a) { return !from_a || frame.size() <= frame_bytes_max; };
    for (int i = 0; i < count; ++i) step_alone();
    on_the_way = nullptr;
  }
  std::map<uint64_t, uint64_t> came() {
    std::map<uint64_t, uint64_t> counts;
    for (const auto& packed : a_.board().flows[kTxSlot].state.padded_came) {
      if (packed != 0) counts[packed >> 32] = packed & UINT32_MAX;
    }
    return counts;
  }
};

TEST_F(Padded, TheSenderHearsWhichSizesCame) {
  open_flows(wire::CrcKind::kCrc64Ecma, 8192);
  run_narrow(100, 9100);
  send_padded(8192, 3);
  send_padded(4000, 2);
  send_padded(1188, 5);
  run_narrow(500, 14 + 20 + 8 + 72 + 4000);
  EXPECT_EQ(came(), (std::map<uint64_t, uint64_t>{{4000, 2}, {1188, 5}}));
  EXPECT_EQ(a_.board().flows[kTxSlot].state.padded_probes, 10U) << "also those that were lost";
  EXPECT_EQ(b_.board().flows[kRxSlot].state.padded_probes, 7U);
  EXPECT_EQ(a_.board().flows[kTxSlot].state.probes, 0U) << "they are no probes for what is missing";
}

TEST_F(Padded, TheyLeaveWithinTheRate) {
  open_flows(wire::CrcKind::kCrc64Ecma, 8192);
  run_narrow(100, 9100);
  a_.board().flows[kTxSlot].control.rate_bps = 100'000'000;
  run_narrow(10, 9100);
  const uint64_t begin_ns = now_ns_;
  send_padded(8192, 100);
  while (a_.board().flows[kTxSlot].state.padded_probes < 100 && now_ns_ < begin_ns + 1'000'000'000) {
    run_narrow(1, 9100);
  }
  EXPECT_GT(now_ns_ - begin_ns, 60'000'000U) << "100 of 8 KiB at 100 Mbit/s";
}

// A search goes on before all have left, where a lane is slow.
TEST_F(Padded, ThoseOfARoundThatIsOverAreNotSent) {
  open_flows(wire::CrcKind::kCrc64Ecma, 8192);
  run_narrow(100, 9100);
  a_.board().flows[kTxSlot].control.rate_bps = 10'000'000;
  run_narrow(10, 9100);
  for (uint32_t i = 0; i < wire::kPaddedSizesMax; ++i) send_padded(8000 - 100 * i, 6, 1);
  run_narrow(20, 9100);
  send_padded(1200, 2, 2);
  run_narrow(20'000, 9100);
  EXPECT_EQ(came().count(1200), 1U) << "it is not refused for want of room";
  EXPECT_LT(a_.board().flows[kTxSlot].state.padded_probes, 12U);
}

TEST_F(Padded, DataGoOnBesideThem) {
  const auto data = make_source(8 * kExtentBytes);
  open_flows(wire::CrcKind::kCrc32c, 8192);
  run_narrow(100, 9100);
  for (const auto& [offset, length] : partitions_) {
    a_.command({.kind = board::CommandKind::kPartition, .flow = kTxSlot, .offset = offset, .length = length});
  }
  for (uint32_t i = 0; i < 8; ++i) send_padded(8192 - 4 * i, 64);
  run_narrow(20'000, 9100);
  EXPECT_EQ(b_.board().flows[kRxSlot].state.extents_done, 8U);
  EXPECT_EQ(came().size(), 8U);
  for (const auto& [bytes, count] : came()) EXPECT_EQ(count, 64U) << bytes;
}

TEST_F(Padded, WhatCannotBeSentIsRefused) {
  open_flows(wire::CrcKind::kCrc64Ecma, 8192);
  run_narrow(100, 9100);
  send_padded(0, 1);
  send_padded(8908, 1);  // more than fits the port
  send_padded(uint64_t{1} << 40, 1);
  send_padded(1200, 0);
  send_padded(1200, 1U << 20);
  run_narrow(100, 9100);
  EXPECT_EQ(a_.counter(Counter::bad_commands), 5U);
  EXPECT_TRUE(came().empty());
}

}  // namespace
}  // namespace sluice::lane::testing
