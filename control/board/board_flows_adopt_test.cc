// Flows that a former control left on the board: gone with by whoever claims them rightly, closed otherwise.
// SPDX-License-Identifier: Apache-2.0
#include "control/board/board_flows.h"
#include "control/board/board_flows_fixture.h"

namespace sluice::board {
namespace {

class AdoptionTest : public BoardFlowsTest {
 protected:
  // A former control had a session of three lanes, and another one of one.
  AdoptionTest() {
    TestUser former;
    TestUser other;
    open_session(former, 3, 100);
    open_session(other, 1, 200);
    session_ = former.session;
    for (const FlowGrant& grant : former.grants)
      claimed_.push_back({.slot = grant.slot, .local_port = grant.local_port});  // no worker: it was not kept
    other_ = other.grants[0].slot;
    attach();
    for (uint32_t worker = 0; worker < 2; ++worker) (void)commands(worker);
  }
  bool adopt() { return flows_->adopt(&user_, session_, claimed_, ids_, credit_); }
  // Nothing was taken by an adoption that failed.
  void expect_nothing_taken() {
    EXPECT_EQ(flows_->table().free_credit(0), 32U);
    EXPECT_EQ(flows_->table().free_credit(1), 32U);
    EXPECT_FALSE(flows_->table().session_taken(session_));
    EXPECT_FALSE(flows_->session_has_flows(session_));
    EXPECT_EQ(flows_->close_leftovers(), 4U) << "all of them are nobody's";
  }

  TestUser user_;
  SessionSlotId session_;
  std::vector<FlowGrant> claimed_;
  std::vector<uint64_t> ids_ = {100, 101, 102};
  std::vector<uint32_t> credit_ = {4, 5, 6};
  FlowSlotId other_;
};

TEST_F(AdoptionTest, AdoptedFlowsAreTheUsersAsIfItHadOpenedThem) {
  ASSERT_TRUE(adopt());
  EXPECT_TRUE(flows_->table().session_taken(session_));
  EXPECT_TRUE(flows_->session_has_flows(session_));
  // Lanes 0 and 2 are at worker 0, by their ports.
  EXPECT_EQ(flows_->table().free_credit(0), 32U - 4 - 6);
  EXPECT_EQ(flows_->table().free_credit(1), 32U - 5);
  for (const FlowGrant& grant : claimed_) {
    EXPECT_EQ(flows_->table().worker_of(grant.slot), worker_of(grant.slot));
    ASSERT_TRUE(say(worker_of(grant.slot), {.kind = EventKind::kExtentWritten, .flow = grant.slot.value()}));
  }
  flows_->drain();
  EXPECT_EQ(user_.events.size(), 3U);
  const auto others = flows_->table().take_flows(kFlowsMax - 3);
  ASSERT_TRUE(others);
  for (const FlowGrant& grant : *others) {
    for (const FlowGrant& mine : claimed_) {
      EXPECT_NE(grant.slot, mine.slot);
      EXPECT_NE(grant.local_port, mine.local_port);
    }
  }
  flows_->close_flow(claimed_[0].slot);
  ASSERT_EQ(commands(0).size(), 1U);
  flows_->release_flow(claimed_[0].slot);
  ASSERT_TRUE(say_closed(claimed_[0].slot));
  flows_->drain();
  EXPECT_EQ(flows_->table().free_credit(0), 32U - 6) << "its credit comes back";
}

TEST_F(AdoptionTest, SendingFlowsTakeTheirReadBuffers) {
  credit_ = {0, 0, 0};
  ASSERT_TRUE(adopt());
  EXPECT_EQ(flows_->table().free_credit(0), 32U);
  const auto others = flows_->table().take_flows(32);  // 16 at each worker want 32 of 34 buffers
  ASSERT_TRUE(others);
  EXPECT_FALSE(flows_->table().take_buffers(*others)) << "worker 0 has 30 left";
}

TEST_F(AdoptionTest, AClaimThatDoesNotFitTheBoardIsRefusedWhole) {
  const auto wrong = [this](const std::function<void()>& change) {
    const auto claimed = claimed_;
    const auto ids = ids_;
    const auto credit = credit_;
    const auto session = session_;
    change();
    const bool refused = !adopt();
    claimed_ = claimed;
    ids_ = ids;
    credit_ = credit;
    session_ = session;
    return refused;
  };
  EXPECT_TRUE(wrong([this] { claimed_.clear(); })) << "no flows";
  EXPECT_TRUE(wrong([this] { ids_[2] = 103; })) << "another flow has the slot";
  EXPECT_TRUE(wrong([this] { claimed_[1].local_port += 2; })) << "another port";
  EXPECT_TRUE(wrong([this] { claimed_[1].slot = FlowSlotId(kFlowsMax); })) << "no slot";
  EXPECT_TRUE(wrong([this] { claimed_[1].slot = FlowSlotId(~0U); })) << "no slot";
  EXPECT_TRUE(wrong([this] { session_ = session_.plus(1); })) << "another session's";
  EXPECT_TRUE(wrong([this] { credit_[2] = 40; })) << "more credit than there is";
  EXPECT_TRUE(wrong([this] { credit_.pop_back(); })) << "a lane without";
  EXPECT_TRUE(wrong([this] { ids_.pop_back(); })) << "a lane without";
  EXPECT_TRUE(wrong([this] {
    claimed_[2] = claimed_[0];
    ids_[2] = ids_[0];
  })) << "one slot twice";
  expect_nothing_taken();
}

TEST_F(AdoptionTest, AFlowThatHasEndedIsNotAdopted) {
  ASSERT_TRUE(say_closed(claimed_[1].slot));
  flows_->drain();
  EXPECT_FALSE(adopt());
  // Nor by a damaged record, which says that it has no id.
  ids_[1] = 0;
  EXPECT_FALSE(adopt());
}

TEST_F(AdoptionTest, ASessionOutOfBoundsIsRefused) {
  for (FlowGrant& grant : claimed_) board_->flows[grant.slot.value()].config.session = kSessionsMax;
  session_ = SessionSlotId(kSessionsMax);
  EXPECT_FALSE(adopt());
}

TEST_F(AdoptionTest, FlowsAreAdoptedOnce) {
  ASSERT_TRUE(adopt());
  TestUser second;
  EXPECT_FALSE(flows_->adopt(&second, session_, claimed_, ids_, credit_));
  ASSERT_TRUE(
      say(worker_of(claimed_[0].slot), {.kind = EventKind::kExtentSent, .flow = claimed_[0].slot.value()}));
  flows_->drain();
  EXPECT_EQ(user_.events.size(), 1U);
  EXPECT_TRUE(second.events.empty());
}

// ---- leftovers ---------------------------------------------------------------------------------

TEST_F(AdoptionTest, FlowsThatNobodyClaimsAreClosed) {
  ASSERT_TRUE(adopt());
  EXPECT_EQ(flows_->close_leftovers(), 1U);
  EXPECT_EQ(flows_->leftovers(), 1U);
  std::vector<Command> closed = commands(worker_of(other_));
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_EQ(closed[0].kind, CommandKind::kCloseFlow);
  EXPECT_EQ(closed[0].flow, other_.value());
  EXPECT_EQ(closed[0].tag, tag_of(other_));
  EXPECT_TRUE(commands(1 - worker_of(other_)).empty()) << "adopted flows go on";
  ASSERT_TRUE(say_closed(other_));
  flows_->drain();
  EXPECT_EQ(flows_->leftovers(), 0U);
  EXPECT_EQ(board_->flows[other_.value()].config.flow_id, 0U);
  flows_->forget_leftovers();
  EXPECT_TRUE(flows_->session_has_flows(session_)) << "adopted flows stay";
  EXPECT_EQ(board_->flows[claimed_[0].slot.value()].config.flow_id, 100U);
  EXPECT_EQ(flows_->close_leftovers(), 0U);
}

// They are waited for no longer; but whoever had such a slot before its flow has ended could not open
// another.
TEST_F(AdoptionTest, FlowsThatDoNotEndKeepTheirSlotsUntilTheyDo) {
  EXPECT_EQ(flows_->close_leftovers(), 4U);
  EXPECT_EQ(flows_->leftovers(), 4U);
  EXPECT_EQ(commands(0).size() + commands(1).size(), 4U);
  flows_->forget_leftovers();
  EXPECT_FALSE(flows_->session_has_flows(session_));
  EXPECT_FALSE(flows_->table().take_flows(kFlowsMax - 3));
  ASSERT_TRUE(say_closed(other_));
  flows_->drain();
  EXPECT_EQ(flows_->leftovers(), 3U);
  EXPECT_TRUE(flows_->table().take_flows(kFlowsMax - 3));
}

TEST_F(AdoptionTest, AFreshBoardHasNoLeftovers) {
  for (FlowSlot& slot : board_->flows) slot.config = {};
  EXPECT_EQ(flows_->close_leftovers(), 0U);
  EXPECT_EQ(flows_->leftovers(), 0U);
  EXPECT_TRUE(commands(0).empty() && commands(1).empty());
}

}  // namespace
}  // namespace sluice::board
