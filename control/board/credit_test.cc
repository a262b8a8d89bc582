// Credit that grows while a flow runs: as its sender wishes, and as the worker has extents.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/board/board_flows_fixture.h"

namespace sluice::control {
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
    flows_->ask_buffers(&user, board::Direction::kRx, user.grants);
    const auto& granted = std::get<BuffersGranted>(user.admitted.back().what);
    const FlowSlotId slot = user.grants.front().slot;
    board::FlowConfig config = config_of(user, 0, flow_id);
    config.direction = board::Direction::kRx;
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
  wish(slot, 8);
  EXPECT_EQ(credit(slot), kCreditStart) << "it never shrinks: it was granted";
  wish(slot, 100, 1);
  EXPECT_EQ(credit(slot), 2 * kCreditStart) << "not all at once: others grow as well";
  wish(slot, 100);
  EXPECT_EQ(credit(slot), 100U);
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
}  // namespace sluice::control
