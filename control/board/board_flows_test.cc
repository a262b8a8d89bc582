// What goes to the workers and what comes from them. A former control's flows: board_flows_adopt_test.cc.
// SPDX-License-Identifier: Apache-2.0
#include "control/board/board_flows.h"

#include "control/board/board_flows_fixture.h"

namespace sluice::board {
namespace {

// Of one worker: what a turn of control's loop may take at most. It is written here as well, so that nobody
// raises it without a thought.
constexpr size_t kBound = 512;

// ---- events ------------------------------------------------------------------------------------

TEST_F(BoardFlowsTest, ATurnTakesABoundedNumberOfEventsAndNoneIsDropped) {
  TestUser user;
  open_session(user, 2, 100);
  const FlowSlotId busy = user.grants[0].slot;
  const FlowSlotId quiet = user.grants[1].slot;
  ASSERT_NE(worker_of(busy), worker_of(quiet));
  constexpr uint64_t kMany = 8 * kBound - 1;
  for (uint64_t i = 0; i < kMany; ++i)
    ASSERT_TRUE(say(worker_of(busy), {.kind = EventKind::kExtentSent, .flow = busy.value(), .offset = i}));
  ASSERT_TRUE(say(worker_of(quiet), {.kind = EventKind::kExtentSent, .flow = quiet.value(), .offset = 1}));

  EXPECT_TRUE(flows_->drain());
  EXPECT_EQ(user.events.size(), kBound + 1) << "one busy worker keeps no other from being heard";
  uint32_t turns = 1;
  for (bool more = true; more; ++turns) {
    const size_t before = user.events.size();
    more = flows_->drain();
    EXPECT_LE(user.events.size() - before, kBound);
    ASSERT_LE(turns, 100U);
  }
  EXPECT_EQ(turns, 8U) << "a turn that takes fewer leaves them waiting";
  uint64_t next = 0;
  for (const Event& event : user.events) {
    if (event.flow != busy.value()) continue;
    EXPECT_EQ(event.offset, next++) << "in order";
  }
  EXPECT_EQ(next, kMany);
  EXPECT_FALSE(flows_->drain());
}

TEST_F(BoardFlowsTest, AWorkerThatNeverFallsSilentDoesNotHoldTheTurn) {
  TestUser user;
  open_session(user, 1, 100);
  const Event event{.kind = EventKind::kExtentSent, .flow = user.grants[0].slot.value()};
  const uint32_t worker = worker_of(user.grants[0].slot);
  // For each event that is taken another one comes.
  const std::function<void()> again = [&] {
    ASSERT_TRUE(say(worker, event));
    ASSERT_LE(user.events.size(), kBound) << "beyond the bound of one turn";
    user.then = again;
  };
  user.then = again;
  ASSERT_TRUE(say(worker, event));
  EXPECT_TRUE(flows_->drain());
  EXPECT_EQ(user.events.size(), kBound);
}

TEST_F(BoardFlowsTest, EventsOfNobodyCountAndHoldUpNothing) {
  TestUser user;
  open_session(user, 1, 100);
  const FlowSlotId slot = user.grants[0].slot;
  const uint32_t worker = worker_of(slot);
  for (uint32_t i = 0; i < kBound; ++i)
    ASSERT_TRUE(say(worker, {.kind = EventKind::kExtentSent, .flow = i % 2 == 0 ? ~0U : kFlowsMax - 1}));
  ASSERT_TRUE(say(worker, {.kind = EventKind::kExtentSent, .flow = slot.value()}));
  EXPECT_TRUE(flows_->drain());
  EXPECT_TRUE(user.events.empty());
  EXPECT_FALSE(flows_->drain());
  EXPECT_EQ(user.events.size(), 1U);
}

TEST_F(BoardFlowsTest, AnEventComesWithTheFiguresOfItsFlowToItsUserOnly) {
  TestUser one;
  TestUser other;
  open_session(one, 1, 100);
  open_session(other, 1, 200);
  const FlowSlotId slot = other.grants[0].slot;
  ASSERT_TRUE(say(worker_of(slot), {.kind = EventKind::kMissing, .flow = slot.value(), .value = 7}));
  flows_->drain();
  EXPECT_TRUE(one.events.empty());
  ASSERT_EQ(other.events.size(), 1U);
  EXPECT_EQ(other.events[0].value, 7U);
  EXPECT_EQ(other.states[0], &board_->flows[slot.value()].state);
}

TEST_F(BoardFlowsTest, WhoIsForgottenIsCalledNoMore) {
  TestUser user;
  TestUser waiter;
  open_session(user, kFlowsMax, 100);
  flows_->ask_flows(&waiter, 1, true);
  const FlowSlotId slot = user.grants[0].slot;
  ASSERT_TRUE(say(worker_of(slot), {.kind = EventKind::kExtentSent, .flow = slot.value()}));
  flows_->forget(&user);
  flows_->forget(&waiter);
  flows_->drain();
  flows_->release_flow(slot);
  ASSERT_TRUE(say_closed(slot));
  flows_->drain();
  EXPECT_TRUE(user.events.empty());
  EXPECT_TRUE(waiter.admitted.empty());
  EXPECT_TRUE(flows_->table().take_flows(1)) << "its slot is free";
}

// ---- slots -------------------------------------------------------------------------------------

TEST_F(BoardFlowsTest, ASlotIsFreeOnceItsFlowHasEnded) {
  TestUser user;
  TestUser next;
  open_session(user, kFlowsMax, 100);
  flows_->ask_flows(&next, 1, true);
  const FlowSlotId slot = user.grants[3].slot;
  flows_->close_flow(slot);
  flows_->release_flow(slot);
  EXPECT_TRUE(flows_->session_has_flows(user.session));
  EXPECT_TRUE(next.admitted.empty()) << "its worker uses it still";
  ASSERT_TRUE(say_closed(slot));
  flows_->drain();
  EXPECT_TRUE(user.events.empty()) << "it was given back";
  ASSERT_EQ(next.grants.size(), 1U);
  EXPECT_EQ(next.grants[0].slot, slot);
  EXPECT_EQ(board_->flows[slot.value()].config.flow_id, 0U);
}

TEST_F(BoardFlowsTest, ASlotWhoseFlowWasNeverOpenedIsFreeAtOnce) {
  TestUser user;
  TestUser next;
  flows_->ask_flows(&user, kFlowsMax, false);
  flows_->ask_flows(&next, 2, true);
  flows_->close_flow(user.grants[3].slot);
  EXPECT_TRUE(commands(0).empty() && commands(1).empty()) << "there is nothing to close";
  flows_->release_flow(user.grants[3].slot);
  EXPECT_TRUE(next.admitted.empty());
  flows_->release_flow(user.grants[9].slot);
  EXPECT_EQ(next.grants.size(), 2U);
}

TEST_F(BoardFlowsTest, AFlowThatClosesStaysItsUsersUntilItIsReleased) {
  TestUser user;
  open_session(user, 1, 100);
  const FlowSlotId slot = user.grants[0].slot;
  EXPECT_TRUE(flows_->session_has_flows(user.session));
  flows_->close_flow(slot);
  ASSERT_TRUE(say_closed(slot));
  flows_->drain();
  ASSERT_EQ(user.events.size(), 1U);
  EXPECT_EQ(user.events[0].kind, EventKind::kFlowClosed);
  EXPECT_FALSE(flows_->session_has_flows(user.session));
  EXPECT_FALSE(flows_->table().take_flows(kFlowsMax));
  flows_->release_flow(slot);
  EXPECT_TRUE(flows_->table().take_flows(kFlowsMax));
}

// Users answer within the call: the slot may have the next user's flow before the call ends.
TEST_F(BoardFlowsTest, ASlotThatIsOpenedAgainWithinTheCallKeepsItsFlow) {
  TestUser user;
  TestUser next;
  open_session(user, kFlowsMax, 100);
  flows_->ask_flows(&next, 1, true);
  const FlowSlotId slot = user.grants[0].slot;
  next.then = [&] { open(next, 0, 777); };
  user.then = [&] { flows_->release_flow(slot); };
  flows_->close_flow(slot);
  ASSERT_TRUE(say_closed(slot));
  flows_->drain();
  ASSERT_EQ(next.grants.size(), 1U);
  ASSERT_EQ(next.grants[0].slot, slot);
  EXPECT_EQ(board_->flows[slot.value()].config.flow_id, 777U);
  EXPECT_TRUE(flows_->session_has_flows(next.session));
  ASSERT_TRUE(say_opened(slot));
  flows_->drain();
  EXPECT_EQ(next.events.size(), 1U);
}

// Several controls that died one after the other have each asked a slow worker to close the flow of a slot.
// The slot is free with the first answer; the others are not of the flow that has it then.
TEST_F(BoardFlowsTest, LateAnswersForAFlowThatHadTheSlotAreNotOfTheNextOne) {
  TestUser user;
  flows_->ask_flows(&user, 1, false);
  const FlowSlotId slot = open(user, 0, 100);
  const uint32_t tag = commands(worker_of(slot)).at(0).tag;
  const uint32_t before = tag - 1;
  const auto answer = [&](EventKind kind, uint32_t to) {
    ASSERT_TRUE(say(worker_of(slot), {.kind = kind, .flow = slot.value(), .tag = to}));
    flows_->drain();
  };
  for (const EventKind kind : {EventKind::kFlowOpened, EventKind::kFlowClosed, EventKind::kFlowClosed}) {
    answer(kind, before);
  }
  answer(EventKind::kExtentSent, 0);  // of that flow, too: this one was not opened yet
  EXPECT_TRUE(user.events.empty());
  EXPECT_TRUE(flows_->session_has_flows(user.session));
  answer(EventKind::kFlowOpened, tag);
  answer(EventKind::kFlowClosed, before);
  answer(EventKind::kExtentSent, 0);
  ASSERT_EQ(user.events.size(), 2U);
  EXPECT_EQ(user.events[0].kind, EventKind::kFlowOpened);
  EXPECT_EQ(user.events[1].kind, EventKind::kExtentSent);
  flows_->close_flow(slot);
  EXPECT_EQ(commands(worker_of(slot)).at(0).tag, tag);
  answer(EventKind::kFlowClosed, tag);
  EXPECT_EQ(user.events.size(), 3U);
  EXPECT_FALSE(flows_->session_has_flows(user.session));
}

// Whoever is refused closes its flow all the same: the slot is free once the worker has said that it is.
TEST_F(BoardFlowsTest, ARefusedFlowGivesItsSlotBack) {
  TestUser user;
  flows_->ask_flows(&user, 1, false);
  const FlowSlotId slot = open(user, 0, 100);
  ASSERT_TRUE(say_opened(slot, EEXIST));
  flows_->drain();
  ASSERT_EQ(user.events.size(), 1U);
  EXPECT_EQ(user.events[0].value, static_cast<uint64_t>(EEXIST));
  ASSERT_TRUE(say(worker_of(slot), {.kind = EventKind::kExtentFailed, .flow = slot.value()}));
  flows_->drain();
  EXPECT_EQ(user.events.size(), 1U) << "of the flow that has the slot still";
  flows_->close_flow(slot);
  flows_->release_flow(slot);
  EXPECT_FALSE(flows_->table().take_flows(kFlowsMax));
  ASSERT_TRUE(say_closed(slot));
  flows_->drain();
  EXPECT_TRUE(flows_->table().take_flows(kFlowsMax));
}

TEST_F(BoardFlowsTest, WhoGivesUpOrIsForgottenLetsTheNextOneIn) {
  for (const bool forgotten : {false, true}) {
    attach();
    TestUser holder;
    TestUser first;
    TestUser second;
    flows_->ask_flows(&holder, kFlowsMax - 1, false);
    flows_->ask_flows(&first, 2, true);
    flows_->ask_flows(&second, 1, true);
    EXPECT_TRUE(second.admitted.empty());
    forgotten ? flows_->forget(&first) : flows_->give_up(&first);
    EXPECT_EQ(second.grants.size(), 1U)
        << "nothing else will happen that lets it in; forgotten: " << forgotten;
    EXPECT_TRUE(first.admitted.empty());
  }
}

TEST_F(BoardFlowsTest, CreditAndSessionSlotsThatAreGivenBackGoToWhoWaits) {
  TestUser user;
  TestUser next;
  flows_->ask_flows(&user, 32, false);
  flows_->ask_buffers(&user, Direction::kRx, user.grants);
  ASSERT_EQ(user.admitted.size(), 2U);
  flows_->ask_flows(&next, 2, false);
  flows_->ask_buffers(&next, Direction::kRx, next.grants);
  EXPECT_EQ(next.admitted.size(), 1U) << "no credit is left";
  for (const FlowGrant& grant : user.grants) flows_->release_flow(grant.slot);
  EXPECT_EQ(next.admitted.size(), 2U);

  while (flows_->table().take_session()) {
  }
  TestUser third;
  flows_->ask_flows(&third, 1, true);
  EXPECT_TRUE(third.admitted.empty());
  flows_->release_session(user.session);
  EXPECT_EQ(third.session, user.session);
  EXPECT_EQ(third.grants.size(), 1U);
}

// ---- commands ----------------------------------------------------------------------------------

TEST_F(BoardFlowsTest, OpeningWritesTheSlotBeforeTheCommand) {
  TestUser user;
  flows_->ask_flows(&user, 2, false);
  const FlowSlotId slot = user.grants[1].slot;
  FlowSlot& on_board = board_->flows[slot.value()];
  on_board.control.settled_below.store(55);  // of a former flow
  ASSERT_TRUE(on_board.gaps.push({.first = 1, .count = 2}));
  open(user, 1, 100);
  EXPECT_EQ(on_board.config.flow_id, 100U);
  EXPECT_EQ(on_board.config.session, user.session.value());
  EXPECT_EQ(on_board.control.rate_bps.load(), 1'000'001U);
  EXPECT_EQ(on_board.control.settled_below.load(), 0U);
  EXPECT_TRUE(on_board.gaps.empty());
  EXPECT_EQ(doorbells_, std::vector<uint32_t>{1});
  EXPECT_TRUE(commands(0).empty());
  const auto opened = commands(1);
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].kind, CommandKind::kOpenFlow);
  EXPECT_EQ(opened[0].flow, slot.value());
}

TEST_F(BoardFlowsTest, CommandsForWhichThereIsNoRoomWaitInOrder) {
  TestUser user;
  open_session(user, 2, 100);
  (void)commands(0);
  (void)commands(1);
  doorbells_.clear();
  constexpr uint32_t kMany = 2 * kCommandSlots + 5;
  for (uint32_t i = 0; i < kMany; ++i)
    flows_->command({.kind = CommandKind::kRepair, .flow = user.grants[0].slot.value(), .tag = i});
  EXPECT_EQ(flows_->backlog(), kMany - kCommandSlots);
  flows_->command({.kind = CommandKind::kRepair, .flow = user.grants[1].slot.value()});
  EXPECT_EQ(commands(1).size(), 1U) << "one full ring keeps no other worker waiting";
  uint32_t next = 0;
  while (next < kMany) {
    const auto taken = commands(0);
    ASSERT_FALSE(taken.empty());
    for (const Command& command : taken) EXPECT_EQ(command.tag, next++);
    doorbells_.clear();
    flows_->push_commands();
    if (next == kMany) continue;
    EXPECT_EQ(doorbells_, std::vector<uint32_t>{0}) << "once for all of them";
  }
  EXPECT_EQ(flows_->backlog(), 0U);
  EXPECT_TRUE(doorbells_.empty());
}

}  // namespace
}  // namespace sluice::board
