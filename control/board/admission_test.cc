// SPDX-License-Identifier: Apache-2.0
#include "control/board/admission.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::board {
namespace {

PortInfo small_port(uint32_t workers, uint32_t rx_extents, uint32_t tx_extents) {
  PortInfo info{};
  info.workers = workers;
  info.rx_extents = rx_extents;
  info.tx_extents = tx_extents;
  info.udp_port_base = 47000;
  return info;
}

class AdmissionTest : public testing::Test {
 protected:
  AdmissionTest() { table_.reset(small_port(1, 10, 4)); }  // 8 extents of credit, 2 sending flows

  // Who is answered, in order.
  std::vector<Waiter> granted() {
    std::vector<Waiter> waiters;
    answers_ = admission_.grant();
    for (const Admitted& answer : answers_) waiters.push_back(answer.waiter);
    return waiters;
  }
  FlowsGranted flows(size_t i = 0) const { return std::get<FlowsGranted>(answers_.at(i).what); }
  // Takes `lanes` flows for somebody who does not wait.
  FlowsGranted take(uint32_t lanes) {
    admission_.ask_flows(99, lanes, false);
    EXPECT_EQ(granted(), std::vector<Waiter>{99});
    return flows();
  }
  void release(const FlowsGranted& granted) {
    for (const FlowGrant& flow : granted.flows) table_.release_flow(flow.slot);
    table_.release_session(granted.session);
  }

  FlowTable table_;
  Admission admission_{table_};
  std::vector<Admitted> answers_;
};

using Waiters = std::vector<Waiter>;

TEST_F(AdmissionTest, FlowsOfAnotherLegShareTheSlotOfTheirTransfer) {
  const FlowsGranted first = take(1);
  admission_.ask_flows(2, 1, false, first.session);
  ASSERT_EQ(granted(), Waiters{2});
  EXPECT_EQ(flows().session, first.session);
  EXPECT_NE(flows().flows[0].slot, first.flows[0].slot);
  // If there are no flows the slot stays with those that have it.
  admission_.ask_flows(3, kFlowsMax, false, first.session);
  ASSERT_EQ(granted(), Waiters{3});
  EXPECT_TRUE(std::holds_alternative<Error>(answers_[0].what));
  EXPECT_TRUE(table_.session_taken(first.session));
}

TEST_F(AdmissionTest, WhatCanBeHadIsGivenInTheOrderOfAsking) {
  admission_.ask_flows(1, 3, true);
  admission_.ask_flows(2, 1, false);
  admission_.ask_flows(3, 16, true);
  EXPECT_TRUE(admission_.waits(1));
  EXPECT_EQ(granted(), (Waiters{1, 2, 3}));
  EXPECT_EQ(flows(0).flows.size(), 3U);
  EXPECT_EQ(flows(2).flows.size(), 16U);
  std::set<FlowSlotId> slots;
  std::set<SessionSlotId> sessions;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(sessions.insert(flows(i).session).second);
    for (const FlowGrant& flow : flows(i).flows) EXPECT_TRUE(slots.insert(flow.slot).second);
  }
  EXPECT_FALSE(admission_.waits(1));
  EXPECT_EQ(granted(), Waiters()) << "each is answered once";
}

TEST_F(AdmissionTest, WhoCameFirstIsNotPassedByWhoWantsLess) {
  const FlowsGranted most = take(kFlowsMax - 2);
  admission_.ask_flows(1, 3, true);
  admission_.ask_flows(2, 1, true);
  EXPECT_EQ(granted(), Waiters());
  EXPECT_TRUE(admission_.waits(1) && admission_.waits(2));
  release(most);
  EXPECT_EQ(granted(), (Waiters{1, 2}));
}

TEST_F(AdmissionTest, WhoMayNotWaitIsAnsweredAtOnce) {
  const FlowsGranted most = take(kFlowsMax - 2);
  admission_.ask_flows(1, 3, true);
  admission_.ask_flows(2, 3, false);
  admission_.ask_flows(3, 2, false);
  EXPECT_EQ(granted(), (Waiters{2, 3}));
  const Error& error = std::get<Error>(answers_[0].what);
  EXPECT_EQ(error.code, ErrorCode::kResources);
  EXPECT_NE(error.message.find("no 3 free flow slots until another session ends"), std::string::npos);
  EXPECT_EQ(flows(1).flows.size(), 2U);
  EXPECT_TRUE(admission_.waits(1));
}

TEST_F(AdmissionTest, WithoutASessionSlotThereAreNoFlowsAndNoneIsTaken) {
  std::vector<SessionSlotId> sessions;
  while (const auto session = table_.take_session()) sessions.push_back(*session);
  admission_.ask_flows(1, 1, false);
  admission_.ask_flows(2, kFlowsMax, true);
  EXPECT_EQ(granted(), Waiters{1});
  EXPECT_TRUE(std::holds_alternative<Error>(answers_[0].what));
  table_.release_session(sessions[5]);
  EXPECT_EQ(granted(), Waiters{2}) << "all flows are there still";
  EXPECT_EQ(flows().session, sessions[5]);
}

TEST_F(AdmissionTest, ASessionSlotIsGivenBackWhenFlowsLack) {
  const FlowsGranted all = take(kFlowsMax);
  for (int i = 0; i < 1000; ++i) {
    admission_.ask_flows(1, 1, i % 2 == 0);
    (void)granted();
  }
  for (uint32_t i = 1; i < kSessionsMax; ++i) EXPECT_TRUE(table_.take_session()) << i;
}

TEST_F(AdmissionTest, CreditIsGivenInTurnAndBuffersByTheirOwnQueue) {
  const FlowsGranted first = take(2);
  const FlowsGranted second = take(3);
  const FlowsGranted third = take(1);
  admission_.ask_buffers(1, Direction::kRx, first.flows);
  EXPECT_EQ(granted(), Waiters{1});
  EXPECT_EQ(std::get<BuffersGranted>(answers_[0].what).credit_extents, (std::vector<uint32_t>{2, 2}));
  admission_.ask_buffers(2, Direction::kRx, second.flows);
  admission_.ask_buffers(3, Direction::kRx, third.flows);
  EXPECT_EQ(granted(), Waiters()) << "there are 4 left, 6 are wanted; the third would do with 2, and waits";
  admission_.ask_buffers(4, Direction::kTx, third.flows);
  EXPECT_EQ(granted(), Waiters{4}) << "read buffers are others";
  EXPECT_TRUE(std::get<BuffersGranted>(answers_[0].what).credit_extents.empty());
  release(first);
  EXPECT_EQ(granted(), (Waiters{2, 3}));
}

// Flows before buffers, everywhere: whoever asks for both at a time gets them in this order.
TEST_F(AdmissionTest, FlowsComeBeforeBuffers) {
  const FlowsGranted mine = take(1);
  admission_.ask_buffers(1, Direction::kTx, mine.flows);
  admission_.ask_buffers(2, Direction::kRx, mine.flows);
  admission_.ask_flows(3, 1, true);
  EXPECT_EQ(granted(), (Waiters{3, 2, 1}));
}

TEST_F(AdmissionTest, WhoGivesUpIsNotAnsweredAndHoldsUpNobody) {
  const FlowsGranted most = take(kFlowsMax - 2);
  admission_.ask_flows(1, 3, true);
  admission_.ask_flows(2, 1, true);
  const FlowsGranted mine = take(1);
  admission_.ask_buffers(1, Direction::kRx, most.flows);
  admission_.ask_buffers(4, Direction::kRx, mine.flows);
  admission_.ask_buffers(1, Direction::kTx, most.flows);
  admission_.ask_buffers(5, Direction::kTx, mine.flows);
  EXPECT_EQ(granted(), Waiters());
  admission_.give_up(1);
  EXPECT_FALSE(admission_.waits(1));
  EXPECT_EQ(granted(), (Waiters{2, 4, 5}));
}

TEST_F(AdmissionTest, NobodyWaitsForABoardThatIsGone) {
  const FlowsGranted all = take(kFlowsMax);
  admission_.ask_flows(1, 1, true);
  admission_.ask_buffers(2, Direction::kRx, all.flows);
  admission_.ask_buffers(3, Direction::kTx, all.flows);
  EXPECT_TRUE(admission_.waits(1) && admission_.waits(2) && admission_.waits(3));
  admission_.clear();
  EXPECT_FALSE(admission_.waits(1) || admission_.waits(2) || admission_.waits(3));
  release(all);
  EXPECT_EQ(granted(), Waiters());
}

}  // namespace
}  // namespace sluice::board
