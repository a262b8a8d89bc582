// SPDX-License-Identifier: Apache-2.0
#include "control/board/flow_table.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace sluice::board {
namespace {

PortInfo port_info(uint32_t workers, uint32_t rx_extents, uint32_t tx_extents) {
  PortInfo info{};
  info.workers = workers;
  info.rx_extents = rx_extents;
  info.tx_extents = tx_extents;
  info.udp_port_base = 47000;
  return info;
}

TEST(FlowTable, SpreadsLanesOverWorkersByTheirPorts) {
  FlowTable table;
  table.reset(port_info(3, 32, 32));
  const auto flows = table.take_flows(6);
  ASSERT_TRUE(flows.has_value());
  std::set<uint16_t> ports;
  std::vector<uint32_t> per_worker(3, 0);
  for (const FlowGrant& flow : *flows) {
    EXPECT_EQ((flow.local_port - 47000U) % 3, flow.worker);
    EXPECT_TRUE(ports.insert(flow.local_port).second);
    ++per_worker[flow.worker];
  }
  EXPECT_EQ(per_worker, (std::vector<uint32_t>{2, 2, 2}));
}

TEST(FlowTable, CreditOfAWorkerNeverExceedsItsBuffersLessTheRepairReserve) {
  std::mt19937 random(3);
  FlowTable table;
  table.reset(port_info(2, 40, 40));
  std::vector<std::vector<FlowGrant>> sessions;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 == 0) {
      auto flows = table.take_flows(1 + random() % 4);
      if (!flows) continue;
      const auto credit = table.take_credit(*flows);
      if (credit) {
        for (const uint32_t extents : *credit) {
          EXPECT_GE(extents, kCreditMin);
          EXPECT_LE(extents, kCreditStart);
        }
        sessions.push_back(*flows);
      } else {
        for (const FlowGrant& flow : *flows) table.release_flow(flow.slot);
      }
    } else if (!sessions.empty()) {
      const size_t victim = random() % sessions.size();
      for (const FlowGrant& flow : sessions[victim]) table.release_flow(flow.slot);
      sessions.erase(sessions.begin() + static_cast<std::ptrdiff_t>(victim));
    }
    EXPECT_LE(table.free_credit(0), 38U);
    EXPECT_LE(table.free_credit(1), 38U);
  }
  for (const auto& flows : sessions) {
    for (const FlowGrant& flow : flows) table.release_flow(flow.slot);
  }
  EXPECT_EQ(table.free_credit(0), 38U);
  EXPECT_EQ(table.free_credit(1), 38U);
}

TEST(FlowTable, ANewcomerLeavesSomethingForTheNext) {
  FlowTable table;
  table.reset(port_info(1, 34, 32));
  std::vector<uint32_t> got;
  for (;;) {
    const auto flows = table.take_flows(1);
    ASSERT_TRUE(flows.has_value());
    const auto credit = table.take_credit(*flows);
    if (!credit) break;
    got.push_back(credit->front());
  }
  EXPECT_GE(got.size(), 4U);
  EXPECT_EQ(got.front(), kCreditStart);
}

TEST(FlowTable, CreditOfWhoCannotUseItYetIsLentAndTakenBackWhole) {
  FlowTable table;
  table.reset(port_info(1, 10 + kRepairExtents, 10));
  const std::vector<FlowGrant> held_up = *table.take_flows(1);
  ASSERT_EQ(table.take_credit(held_up), std::vector<uint32_t>{5});
  table.lend_credit(held_up[0].slot);
  table.lend_credit(held_up[0].slot);
  EXPECT_EQ(table.free_credit(0), 10U);
  EXPECT_EQ(table.grow_credit(held_up[0].slot, 9), 0U);
  const std::vector<FlowGrant> other = *table.take_flows(1);
  const std::vector<FlowGrant> third = *table.take_flows(1);
  ASSERT_EQ(table.take_credit(other), std::vector<uint32_t>{5});
  ASSERT_EQ(table.take_credit(third), std::vector<uint32_t>{2});
  EXPECT_EQ(table.free_credit(0), 3U);
  table.take_back_credit(held_up[0].slot);
  table.take_back_credit(held_up[0].slot);
  EXPECT_EQ(table.free_credit(0), 0U) << "two more than there were";
  EXPECT_FALSE(table.take_credit(*table.take_flows(1)));
  table.release_flow(third[0].slot);
  EXPECT_EQ(table.free_credit(0), 0U) << "that is owed";
  table.release_flow(other[0].slot);
  table.release_flow(held_up[0].slot);
  EXPECT_EQ(table.free_credit(0), 10U) << "and nothing is lost";
  const std::vector<FlowGrant> gone = *table.take_flows(1);
  ASSERT_TRUE(table.take_credit(gone));
  table.lend_credit(gone[0].slot);
  table.release_flow(gone[0].slot);
  table.take_back_credit(gone[0].slot);
  EXPECT_EQ(table.free_credit(0), 10U);
}

TEST(FlowTable, SendingFlowsAreBoundedByTheReadBuffers) {
  FlowTable table;
  table.reset(port_info(1, 32, 5));
  EXPECT_EQ(table.lanes_max(Direction::kTx), 2U);
  const auto first = table.take_flows(2);
  EXPECT_TRUE(table.take_buffers(*first));
  const auto second = table.take_flows(1);
  EXPECT_FALSE(table.take_buffers(*second));
  table.release_flow(first->front().slot);
  EXPECT_TRUE(table.take_buffers(*second));
}

TEST(FlowTable, RunsOutOfSlotsWithoutTakingAny) {
  FlowTable table;
  table.reset(port_info(1, 32, 32));
  for (uint32_t i = 0; i < kFlowsMax / kLanesMax; ++i) EXPECT_TRUE(table.take_flows(kLanesMax));
  EXPECT_FALSE(table.take_flows(1));
  table.release_flow(FlowSlotId(5));
  EXPECT_FALSE(table.take_flows(2));
  const auto one = table.take_flows(1);
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->front().slot, FlowSlotId(5));
}

TEST(FlowTable, SessionSlotsAreUsedAgain) {
  FlowTable table;
  for (uint32_t i = 0; i < kSessionsMax; ++i) EXPECT_EQ(table.take_session(), SessionSlotId(i));
  EXPECT_FALSE(table.take_session());
  table.release_session(SessionSlotId(7));
  EXPECT_EQ(table.take_session(), SessionSlotId(7));
}

}  // namespace
}  // namespace sluice::board
