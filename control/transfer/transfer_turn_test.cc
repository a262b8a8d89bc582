// A transfer waits for its turn: at its own node, and at one that is full.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

// A node that is full: nobody gets a place before its_turn().
std::unique_ptr<World> queued(const Scene& scene, uint32_t place = 3) {
  auto world = std::make_unique<World>(scene);
  world->place = place;
  world->start();
  EXPECT_EQ(world->phase(), TransferPhase::kQueued);
  return world;
}

void its_turn(World& world) {
  world.place = 0;
  world.post(PlaceTold{.ticket = world.ticket});
}

TEST(Turn, NothingIsTakenBeforeIt) {
  for (const Role role : {Role::kSource, Role::kDestination}) {
    const auto world = queued({.role = role});
    EXPECT_EQ(world->state(), ViewState::kQueued);
    const View view = world->transfer().view(world->now_ns);
    EXPECT_EQ(view.waiting_for, "its turn");
    ASSERT_EQ(view.files.size(), 3U) << "what was asked for";
    EXPECT_EQ(view.files[1].source, "f1");
    world->pass(7 * 86400 * kSecondNs);
    EXPECT_EQ(world->phase(), TransferPhase::kQueued) << "however long that takes";
    EXPECT_EQ(world->count<ReserveFlows>() + world->count<Call>(), 0U);
    EXPECT_EQ(world->count<AskPlace>(), 1U);
    its_turn(*world);
    EXPECT_EQ(world->state(), ViewState::kSucceeded);
    EXPECT_EQ(world->count<LeavePlace>(), 1U);
  }
}

TEST(Turn, IsAskedForWithThePriorityWhichMayChangeAndSurvives) {
  Scene scene = source();
  scene.priority = 5;
  const auto world = queued(scene);
  EXPECT_EQ(world->priority_asked, 5);
  world->post(PriorityAsked{-4});
  EXPECT_EQ(world->count<AskPlace>(), 2U) << "it may move";
  EXPECT_EQ(world->priority_asked, -4);
  EXPECT_EQ(world->journal.record.priority, -4);
  EXPECT_EQ(world->transfer().view(world->now_ns).queue.priority, -4);
  world->restart(true);
  world->pass(kSecondNs);
  EXPECT_EQ(world->priority_asked, -4);
  its_turn(*world);
  const size_t asked = world->count<AskPlace>();
  world->post(PriorityAsked{3});
  EXPECT_EQ(world->count<AskPlace>(), asked) << "it is over, or runs: there is nothing to ask for";
}

TEST(Turn, OfWhatAPeerBeganHasNoPriorityHere) {
  const auto world = queued(called(destination()));
  EXPECT_EQ(world->priority_asked, 0);
  EXPECT_FALSE(world->transfer().may_prioritize());
  world->post(PriorityAsked{9});
  EXPECT_EQ(world->priority_asked, 0);
  EXPECT_EQ(world->count(Entry::kPriority), 0U);
}

TEST(Turn, OfACalledSessionIsToldToEachCallAndTheFirstForWhichThereIsRoomIsTaken) {
  for (const Role role : {Role::kSource, Role::kDestination}) {
    const auto world = queued(called({.role = role}));
    ASSERT_EQ(world->refused.size(), 1U);
    EXPECT_EQ(std::get<Pause>(world->refused.back()).place, 3U);
    EXPECT_EQ(world->state(), ViewState::kQueued);
    world->pass(2 * kSecondNs);
    world->place = 2;
    world->peer_calls();
    ASSERT_EQ(world->refused.size(), 2U);
    EXPECT_EQ(std::get<Pause>(world->refused.back()).place, 2U);
    its_turn(*world);
    EXPECT_EQ(world->phase(), TransferPhase::kQueued) << "nobody calls just now";
    world->pass(2 * kSecondNs);
    world->peer_calls();
    EXPECT_EQ(world->state(), ViewState::kSucceeded);
    EXPECT_EQ(world->refused.size(), 2U);
  }
}

TEST(Turn, PassesByACallerThatDoesNotComeAndIsForgottenLater) {
  const auto late = queued(called(destination()));
  its_turn(*late);
  late->pass(11 * kSecondNs);
  EXPECT_EQ(late->phase(), TransferPhase::kQueued);
  EXPECT_EQ(late->state(), ViewState::kWaiting);
  EXPECT_EQ(late->count<LeavePlace>(), 1U) << "others may run meanwhile";
  late->pass(40 * kSecondNs);
  late->peer_calls();
  EXPECT_EQ(late->state(), ViewState::kSucceeded);

  const auto gone = queued(called(destination()));
  gone->pass(61 * kSecondNs);
  EXPECT_TRUE(gone->over);
  EXPECT_TRUE(gone->journal_empty) << "nothing was agreed upon: its caller may begin it once more";

  const auto begun = moving(called(destination()));
  begun->lose_board();
  begun->attach();
  begun->place = 1;
  begun->peer_calls();
  EXPECT_EQ(begun->phase(), TransferPhase::kQueued);
  begun->pass(11 * kSecondNs);
  EXPECT_EQ(begun->phase(), TransferPhase::kResting) << "where it asks whether it is still known";
  begun->data = true;
  begun->place = 0;
  begun->peer_calls();
  EXPECT_EQ(begun->state(), ViewState::kSucceeded);
}

TEST(Turn, OfThePeerIsAWaitWithANameThatHoldsNothingHere) {
  // What a node that is full says instead of its Hello.
  World other(source());
  other.mute = silent("Hello");
  other.start();
  ASSERT_EQ(other.handshake_phase(), HandshakePhase::kHello);
  other.mute.clear();
  other.hear(Pause{.node = "there", .place = 4, .places = 9});
  EXPECT_EQ(other.phase(), TransferPhase::kResting) << "though nothing was agreed upon yet";
  EXPECT_EQ(other.state(), ViewState::kWaiting);
  EXPECT_EQ(other.transfer().view(other.now_ns).waiting_for, "node there: its turn, 4th of 9");
  EXPECT_EQ(other.count<LeavePlace>(), 1U);
  EXPECT_TRUE(std::any_of(other.effects.begin(), other.effects.end(), [](const Effect& effect) {
    const auto* leave = std::get_if<LeavePlace>(&effect);
    return leave != nullptr && leave->for_now;
  })) << "it comes before those who came after it";
  EXPECT_FALSE(other.flows_open());
  other.pass(399 * kMillisecondNs);
  EXPECT_EQ(other.count<Call>(), 1U);
  other.pass(2 * kMillisecondNs);
  EXPECT_EQ(other.count<Call>(), 2U) << "the sooner the nearer its turn is";
  EXPECT_EQ(other.state(), ViewState::kSucceeded);
}

TEST(Turn, ComesThoughThePeerIsAwayJustThen) {
  for (const Role role : {Role::kSource, Role::kDestination}) {
    const auto world = queued({.role = role});
    world->reachable = false;
    its_turn(*world);
    EXPECT_EQ(world->phase(), TransferPhase::kResting) << "who began it stands by no more";
    EXPECT_EQ(world->count<LeavePlace>(), 1U) << "others may run meanwhile";
    world->place = 0;
    world->reachable = true;
    world->pass(6 * kSecondNs);
    EXPECT_EQ(world->state(), ViewState::kSucceeded);
  }
  World at_once(source());
  at_once.reachable = false;
  at_once.start();
  EXPECT_EQ(at_once.error(), ErrorCode::kPeerUnreachable) << "an error at the beginning";
}

TEST(Turn, IsNotAWaitAfterWhichItIsPaused) {
  Scene scene = source();
  scene.settings.resume_timeout_ns = 20 * kSecondNs;
  const auto world = resting(scene);
  world->place = 1;
  world->pass(6 * kSecondNs);
  ASSERT_EQ(world->phase(), TransferPhase::kQueued);
  world->pass(100 * kSecondNs);
  its_turn(*world);
  world->pass(kSecondNs);
  EXPECT_NE(world->phase(), TransferPhase::kPaused);
}

TEST(Turn, IsGivenUpByWhoeverRestsIsPausedOrEnds) {
  const auto rests = resting(source());
  EXPECT_EQ(rests->count<LeavePlace>(), rests->count<AskPlace>());
  const auto paused = moving(destination());
  paused->post(PauseAsked{});
  EXPECT_EQ(paused->count<LeavePlace>(), 1U);
  const auto ends = moving(destination());
  ends->post(Cancel{});
  EXPECT_EQ(ends->count<LeavePlace>(), 1U);
}

TEST(Turn, APauseLosesItAndIsThereAfterARestart) {
  const auto world = queued(source());
  EXPECT_TRUE(world->transfer().may_pause());
  const uint32_t before = world->ticket;
  world->post(PauseAsked{});
  EXPECT_EQ(world->phase(), TransferPhase::kPaused);
  EXPECT_EQ(world->journal.record.state, RecordState::kPaused);
  world->post(PlaceTold{.ticket = before});
  EXPECT_EQ(world->phase(), TransferPhase::kPaused) << "an answer to a wish that was given up";
  world->restart(false);
  world->start();
  EXPECT_EQ(world->phase(), TransferPhase::kPaused);
  world->post(ContinueAsked{});
  EXPECT_EQ(world->phase(), TransferPhase::kQueued);
  EXPECT_EQ(world->count<AskPlace>(), 2U);
  world->post(PlaceTold{.ticket = before + 1});
  its_turn(*world);
  EXPECT_EQ(world->state(), ViewState::kSucceeded);
}

TEST(Turn, IsWaitedForAgainAfterARestart) {
  const auto world = queued(source());
  world->restart(false);
  world->start();
  EXPECT_EQ(world->phase(), TransferPhase::kQueued);
  its_turn(*world);
  EXPECT_EQ(world->state(), ViewState::kSucceeded);
}

TEST(Turn, ACancelIsTheEndWithoutIt) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    const auto world = queued(scene);
    world->post(Cancel{});
    world->pass(kSecondNs);
    EXPECT_TRUE(world->over);
    EXPECT_EQ(world->state(), ViewState::kCancelled);
    EXPECT_EQ(world->journal.record.state, RecordState::kCancelled) << "whoever calls is told so";
  }
}

TEST(Turn, IsNotWaitedForByFlowsThatAreOpen) {
  const auto world = moving(source());
  world->restart(true);
  world->place = 5;
  world->data = true;
  world->start();
  world->pass(kSecondNs);
  EXPECT_EQ(world->state(), ViewState::kSucceeded);
  EXPECT_EQ(world->count<TakePlace>(), 1U);
}

TEST(Turn, IsNotNeededToHearThatItHasEndedThere) {
  const auto world = queued(called(source()));
  Hello ended = make_hello(kId);
  ended.ended = true;
  world->peer.last_words = {ended, Failure{.code = 12, .message = "cancelled there"}};
  world->peer_calls_with(ended);
  EXPECT_TRUE(world->over);
}

// It holds flows of its own meanwhile, so nobody may wait for others while it calls.
TEST(Turn, ACallerForWhomThereAreNoFlowsIsAskedToComeAgain) {
  World world(called(destination()));
  world.fail<ReserveFlows>(ErrorCode::kResources);
  world.start();
  EXPECT_TRUE(world.over);
  ASSERT_EQ(world.said<Pause>().size(), 1U);
  EXPECT_EQ(world.said<Pause>().front().place, 1U);
  EXPECT_TRUE(world.said<Failure>().empty());
}

}  // namespace
}  // namespace sluice::transfer::test
