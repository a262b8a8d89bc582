// Credit that grows while a flow runs: as its sender wishes, and as the worker has extents.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <list>

#include "control/board/board_flows_fixture.h"

namespace sluice::board {
namespace {

class Credit : public BoardFlowsTest {
 protected:
  static constexpr uint32_t kExtents = 1000;
  Credit() {
    board_->port.workers = 1;
    board_->port.rx_extents = board_->port.tx_extents = kExtents;
    attach();
  }
  // One receiving flow with what it gets at first.
  FlowSlotId receive(TestUser& user, uint64_t flow_id) {
    flows_->ask_flows(&user, 1, false);
    flows_->ask_buffers(&user, Direction::kRx, user.grants);
    const auto& granted = std::get<BuffersGranted>(user.admitted.back().what);
    const FlowSlotId slot = user.grants.front().slot;
    FlowConfig config = config_of(user, 0, flow_id);
    config.direction = Direction::kRx;
    config.credit_extents = granted.credit_extents.front();
    flows_->open_flow(slot, config, &user);
    return slot;
  }
  uint64_t credit(FlowSlotId slot) { return board_->flows[slot.value()].control.credit_extents; }
  void wish(FlowSlotId slot, uint64_t extents, int turns = 20) {
    board_->flows[slot.value()].state.wanted_extents = extents;
    for (int i = 0; i < turns; ++i) flows_->tend_credit();
  }
};

TEST_F(Credit, GrowsToWhatTheSenderWants) {
  TestUser user;
  const FlowSlotId slot = receive(user, 5);
  EXPECT_EQ(credit(slot), kCreditStart);
  EXPECT_EQ(board_->flows[slot.value()].config.credit_extents, kCreditMin) << "it may be cut to that";
  wish(slot, 8);
  EXPECT_EQ(credit(slot), kCreditStart) << "it never shrinks: it was granted";
  wish(slot, 100, 1);
  EXPECT_EQ(credit(slot), 2 * kCreditStart) << "not all at once: others grow as well";
  wish(slot, 100);
  EXPECT_EQ(credit(slot), 100U);
}

TEST_F(Credit, OfASendingFlowIsWhatItsPeerGranted) {
  TestUser user;
  flows_->ask_flows(&user, 1, false);
  FlowConfig config = config_of(user, 0, 5);
  config.direction = Direction::kTx;
  config.credit_extents = kCreditStart;
  flows_->open_flow(user.grants.front().slot, config, &user);
  EXPECT_EQ(board_->flows[user.grants.front().slot.value()].config.credit_extents, kCreditStart);
}

TEST_F(Credit, LeavesSomethingForSessionsToComeWhateverIsWanted) {
  TestUser first;
  TestUser second;
  TestUser third;
  const FlowSlotId a = receive(first, 5);
  const FlowSlotId b = receive(second, 6);
  for (int i = 0; i < 30; ++i) {
    wish(a, UINT64_MAX, 1);
    wish(b, UINT64_MAX, 1);
  }
  EXPECT_LE(credit(a) + credit(b), kExtents - kExtents / kCreditSpareShare);
  EXPECT_GE(credit(a) + credit(b), kExtents - kExtents / kCreditSpareShare - kRepairExtents);
  EXPECT_LT(credit(a), 3 * credit(b));
  EXPECT_LT(credit(b), 3 * credit(a));
  const FlowSlotId c = receive(third, 7);
  EXPECT_EQ(credit(c), kCreditStart);
}

TEST_F(Credit, GoesBackWhenTheFlowIsReleased) {
  TestUser user;
  const FlowSlotId slot = receive(user, 5);
  const uint32_t before = flows_->table().free_credit(0);
  wish(slot, 500);
  EXPECT_EQ(flows_->table().free_credit(0), before + kCreditStart - 500);
  ASSERT_TRUE(say_closed(slot));
  flows_->drain();
  flows_->release_flow(slot);
  EXPECT_EQ(flows_->table().free_credit(0), before + kCreditStart);
}

// Nothing that a sender was granted is taken away: it is not granted anew.
TEST_F(Credit, BeyondAnEvenShareComesBackWhenASessionWithoutAnyAsks) {
  std::list<TestUser> users;
  std::vector<FlowSlotId> slots;
  while (slots.size() < 200 && flows_->table().free_credit(0) >= kCreditMin) {
    slots.push_back(receive(users.emplace_back(), 100 + slots.size()));
    wish(slots.back(), 300);
  }
  const FlowSlotId rich = slots.front();
  const uint64_t before = credit(rich);
  ASSERT_GT(before, 200U);
  TestUser late;
  flows_->ask_flows(&late, 1, false);
  flows_->ask_buffers(&late, Direction::kRx, late.grants);
  ASSERT_EQ(late.admitted.size(), 1U) << "it waits for credit";
  for (int i = 0; i < 5; ++i) flows_->tend_credit();
  const uint64_t share = credit(rich);
  EXPECT_LT(share, before / 2);
  EXPECT_GE(share, kCreditMin);
  EXPECT_EQ(late.admitted.size(), 1U) << "its sender may use all that it was granted";
  EXPECT_EQ(flows_->table().credit(rich), before);
  board_->flows[rich.value()].state.extents_done = kCreditMin;
  flows_->tend_credit();
  ASSERT_EQ(late.admitted.size(), 2U) << "so much has come back";
  EXPECT_EQ(std::get<BuffersGranted>(late.admitted.back().what).credit_extents.front(), kCreditMin);
  // The rest comes back as well. After that it may grow again.
  board_->flows[rich.value()].state.extents_done = 1000;
  wish(rich, 0, 1);
  EXPECT_EQ(flows_->table().credit(rich), share);
  EXPECT_EQ(credit(rich), share);
  for (size_t i = 1; i < slots.size(); ++i) {
    ASSERT_TRUE(say_closed(slots[i]));
    flows_->drain();
    flows_->release_flow(slots[i]);
  }
  wish(rich, 300);
  EXPECT_EQ(credit(rich), 300U);
  uint32_t held = flows_->table().credit(late.grants.front().slot);
  held += flows_->table().credit(rich);
  EXPECT_EQ(held + flows_->table().free_credit(0), kExtents - kRepairExtents);
}

TEST_F(Credit, ThatWasCutIsWhatIsOutForAControlThatTakesTheFlowOver) {
  TestUser user;
  const FlowSlotId slot = receive(user, 5);
  board_->flows[slot.value()].control.credit_extents = 4;
  board_->flows[slot.value()].state.credit_extents = 30;
  board_->flows[slot.value()].state.extents_done = 20;
  const std::vector<FlowGrant> grants = user.grants;
  const SessionSlotId session = user.session;
  attach();
  TestUser heir;
  ASSERT_TRUE(flows_->adopt(&heir, session, grants, {5}, {kCreditStart}));
  EXPECT_EQ(flows_->table().free_credit(0), kExtents - kRepairExtents - 10);
}

TEST_F(Credit, IsWhatItHasGrownToForAControlThatTakesTheFlowOver) {
  TestUser user;
  const FlowSlotId slot = receive(user, 5);
  wish(slot, 500);
  const std::vector<FlowGrant> grants = user.grants;
  const SessionSlotId session = user.session;
  attach();  // another control, which knows what was granted at first
  TestUser heir;
  ASSERT_TRUE(flows_->adopt(&heir, session, grants, {5}, {kCreditStart}));
  EXPECT_EQ(flows_->table().free_credit(0), kExtents - kRepairExtents - 500);
  wish(slot, 600);
  EXPECT_EQ(credit(slot), 600U);
}

}  // namespace
}  // namespace sluice::board
