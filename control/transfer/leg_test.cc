// An attempt with one peer: its way to moving data, its stream, and its end.
// SPDX-License-Identifier: Apache-2.0
#include "control/leg/leg.h"

#include <gtest/gtest.h>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

// ---- phases ----------------------------------------------------------------------------------------------

TEST(LegPhases, FromEachOnlyTheseFollow) {
  const std::map<LegPhase, std::set<LegPhase>> next = {
      {LegPhase::kIdle, {LegPhase::kDataplane, LegPhase::kParting, LegPhase::kInquiring}},
      {LegPhase::kDataplane,
       {LegPhase::kPeer, LegPhase::kHandshake, LegPhase::kAdopting, LegPhase::kClosing}},
      {LegPhase::kPeer, {LegPhase::kForgetting, LegPhase::kHandshake, LegPhase::kClosing}},
      {LegPhase::kForgetting, {LegPhase::kPeer, LegPhase::kClosing}},
      {LegPhase::kHandshake, {LegPhase::kMoving, LegPhase::kClosing}},
      {LegPhase::kAdopting, {LegPhase::kMoving, LegPhase::kClosing}},
      {LegPhase::kMoving, {LegPhase::kFarewell, LegPhase::kClosing}},
      {LegPhase::kFarewell, {LegPhase::kClosing}},
      {LegPhase::kClosing,
       {LegPhase::kSettling, LegPhase::kReleasing,
        LegPhase::kIdle}},  // releasing: others go on; idle: this control stops
      {LegPhase::kSettling, {LegPhase::kReleasing}},
      {LegPhase::kReleasing, {LegPhase::kIdle}},
      {LegPhase::kParting, {LegPhase::kIdle}},
      {LegPhase::kInquiring, {LegPhase::kIdle}},
  };
  for (const auto& [from, expected] : next) {
    for (const auto& [to, unused] : next) {
      EXPECT_EQ(allowed(from, to), expected.contains(to))
          << "from " << static_cast<int>(from) << " to " << static_cast<int>(to);
    }
  }
}

TEST(LegPhases, EachIsReached) {
  std::set<LegPhase> reached;
  const auto add = [&](const World& world) {
    reached.insert(world.leg_phases.begin(), world.leg_phases.end());
  };
  const auto waits = moving(called(destination()));
  waits->restart(false);
  waits->post(Begin{});
  add(*waits);
  waits->attach();
  add(*waits);
  const auto closes = moving(destination());
  closes->hold<CloseFlow>();
  closes->post(PauseAsked{});
  add(*closes);
  closes->release();
  const auto settles = moving(destination());
  settles->hold<SyncObject>();
  settles->post(
      FlowEvent{.leg = LegId(0), .event = {.kind = board::EventKind::kExtentWritten, .length = kExtent}});
  settles->post(PauseAsked{});
  add(*settles);
  const auto releases = moving(source());
  releases->hold<ReleaseFlows>();
  releases->post(Cancel{});
  add(*releases);
  World ends(source());
  ends.mute = {"SessionDone"};
  ends.start();
  add(ends);
  const auto adopts = moving(source());
  adopts->restart(true);
  adopts->hold<ReopenSources>();
  adopts->start();
  add(*adopts);
  const auto forgets = moving(called(destination()));
  forgets->lose_stream();
  forgets->post(PauseAsked{});
  forgets->post(ContinueAsked{});
  forgets->peer.known = false;
  forgets->hold<ReleaseFiles>();
  forgets->peer_calls();
  add(*forgets);
  World parts(source());
  parts.data = false;
  parts.start();
  parts.reachable = false;
  parts.post(Cancel{});
  add(parts);
  const auto asks = resting(called(source()));
  asks->pass(Leg::kInquireNs);
  add(*asks);
  for (int phase = 0; phase <= static_cast<int>(LegPhase::kInquiring); ++phase) {
    EXPECT_TRUE(reached.contains(static_cast<LegPhase>(phase))) << phase;
  }
}

// ---- the stream while data moves -------------------------------------------------------------------------

TEST(LegStream, ThatIsLostIsOpenedAgainWhileDataMoves) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    const auto world = moving(scene);
    world->lose_stream();
    EXPECT_EQ(world->leg_phase(), LegPhase::kMoving);
    world->pass(kSecondNs);
    if (!scene.initiator) world->peer_calls(true);
    EXPECT_EQ(world->leg_phase(), LegPhase::kMoving);
    EXPECT_TRUE(world->leg().stream().up());
    EXPECT_EQ(world->said<Hello>().back().flow_ids, world->peer.flow_ids());
    EXPECT_EQ(world->count<OpenFlow>(), 1U);
    if (scene.role == Role::kDestination) {
      EXPECT_EQ(world->count<DrainEvents>(), 1U) << "what a worker has said comes before the states";
    }
  }
}

TEST(LegStream, ThatIsNotRenewedWithinTheStallTimeoutEndsTheAttempt) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    const auto world = moving(scene);
    world->reachable = false;
    world->lose_stream();
    world->pass(scene.settings.stall_timeout_ns + kSecondNs);
    EXPECT_EQ(world->phase(), TransferPhase::kResting);
  }
}

TEST(LegStream, APeerWithOtherFlowsIsBegunAnewWith) {
  const auto answers = moving(source());
  answers->twist = [](Message& word) {
    if (auto* const hello = std::get_if<Hello>(&word)) hello->flow_ids = {5};
  };
  answers->lose_stream();
  answers->pass(kSecondNs);
  EXPECT_TRUE(answers->phases.contains(TransferPhase::kResting)) << "a caller finds its flows gone there";
  const auto calls = moving(called(source()));
  calls->peer_calls(false);
  EXPECT_EQ(calls->count<OpenFlow>(), 2U) << "what is called follows the caller";
  EXPECT_EQ(calls->leg_phase(), LegPhase::kMoving);
}

TEST(LegStream, ANewOneOfAnotherSessionIsAnError) {
  const auto world = moving(source());
  world->twist = [](Message& word) {
    if (auto* const hello = std::get_if<Hello>(&word)) hello->session_id = std::string(32, 'b');
  };
  world->lose_stream();
  world->pass(kSecondNs);
  EXPECT_EQ(world->state(), ViewState::kFailed);
  EXPECT_EQ(world->error(), ErrorCode::kIncompatible);
}

TEST(LegStream, APeerThatIsSilentIsHungUpOn) {
  const auto world = moving(source());
  world->data = false;
  world->reachable = false;
  world->pass(ControlStream::kSilenceNs + 2 * kSecondNs);
  EXPECT_GE(world->count<HangUp>(), 1U);
  EXPECT_FALSE(world->stream_open());
}

// Who is connected and has not said hello runs: the remedy is not to start it.
TEST(LegStream, APeerThatIsSilentBeforeItsHelloIsNotTakenForOneThatDoesNotRun) {
  World world(source());
  world.mute = silent("Hello");
  world.start();
  world.pass(ControlStream::kGreetingNs + 2 * kSecondNs);
  EXPECT_TRUE(world.logged("is connected and does not answer: a file system may hold the session up there"));
  EXPECT_FALSE(world.logged("see that its sluice-control runs"));
}

TEST(LegStream, AnythingButAHelloOnANewOneIsAnError) {
  const auto world = moving(source());
  world->mute = {"Hello"};
  world->lose_stream();
  world->pass(kSecondNs);
  world->hear(SessionDone{});
  EXPECT_EQ(world->state(), ViewState::kFailed);
  EXPECT_EQ(world->error(), ErrorCode::kIncompatible);
}

// ---- standing still --------------------------------------------------------------------------------------

TEST(Leg, ThatStandsStillForTheStallTimeoutEndsItsAttempt) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    const auto world = moving(scene);
    for (int i = 0; i < 29; ++i) {
      world->hear(Heartbeat{});
      world->pass(kSecondNs);
    }
    EXPECT_EQ(world->leg_phase(), LegPhase::kMoving);
    world->hear(Heartbeat{});
    world->pass(2 * kSecondNs);
    EXPECT_TRUE(world->phases.contains(TransferPhase::kResting));
    EXPECT_EQ(world->said<Failure>().front().code, static_cast<uint32_t>(ErrorCode::kStalled));
  }
}

TEST(Leg, APeerThatDoesNotCallEndsTheAttempt) {
  const auto world = moving(called(destination()));
  world->restart(false);  // its flows are gone, which it learns in an attempt
  world->post(Begin{});
  world->attach();
  EXPECT_EQ(world->leg_phase(), LegPhase::kPeer);
  world->pass(world->scene.settings.stall_timeout_ns + kSecondNs);
  EXPECT_EQ(world->phase(), TransferPhase::kResting);
}

TEST(Leg, FlowsThatDoNotCloseAreWaitedForWithinABound) {
  const auto world = moving(source());
  world->hold<CloseFlow>();
  world->post(PauseAsked{});
  world->pass(Leg::kCloseTimeoutNs - kMillisecondNs);
  EXPECT_EQ(world->leg_phase(), LegPhase::kClosing);
  world->pass(2 * kMillisecondNs);
  EXPECT_EQ(world->phase(), TransferPhase::kPaused);
}

TEST(Leg, ThatEndsBeforeItsFlowsAreReservedAwaitsNoneOfThem) {
  World world(destination());
  world.hold<ReserveFlows>();
  world.start();
  ASSERT_EQ(world.handshake_phase(), HandshakePhase::kFlows);
  world.post(Cancel{});
  world.release();
  world.pass(kSecondNs);
  EXPECT_EQ(world.leg_phase(), LegPhase::kIdle) << "its attempt is over";
}

TEST(Leg, ThatClosesIsNotDueAgainAndAgainWhileASyncTakesItsTime) {
  World world(destination());
  world.hold<SyncObject>();
  world.start();
  world.post(Cancel{});
  world.pass(60 * kSecondNs);  // fails where it is
  EXPECT_EQ(world.leg_phase(), LegPhase::kClosing);
  EXPECT_EQ(world.transfer().due_ns(), UINT64_MAX);
  world.release();
  world.pass(kSecondNs);
  EXPECT_TRUE(world.over);
}

TEST(Leg, WhatOtherFlowsHaveClosedIsNotGoneOnWith) {
  const auto world = moving(source());
  world->post(FlowEvent{.leg = LegId(0), .event = {.kind = board::EventKind::kFlowClosed}});
  EXPECT_EQ(world->phase(), TransferPhase::kResting);
}

// ---- the end of an attempt ----

TEST(Leg, AnAgreementThatIsNotedTooLateBeginsNothing) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    World world(scene);
    world.hold(Entry::kAgreed);
    world.hold<ReleaseFlows>();
    world.start();
    world.lose_stream();
    ASSERT_EQ(world.leg_phase(), LegPhase::kReleasing);
    world.release_one_after_the_other();
    EXPECT_EQ(world.count<OpenFlow>(), 1U);
    EXPECT_EQ(world.count<CloseFlow>(), 1U);
    EXPECT_TRUE(world.said<TransferReady>().empty());
    EXPECT_EQ(world.phase(), TransferPhase::kResting);
  }
}

TEST(Leg, ThatClosesReadsNothingAgain) {
  for (const bool leaves : {false, true}) {
    World world(source());
    world.peer.holds[ObjectId(0)] = {world.content.all(ObjectId(0))};
    world.hold<ReadExtents>();
    world.start();
    world.tick();
    ASSERT_EQ(world.count<ReadExtents>(), 1U);
    world.post(leaves ? Event(Detach{}) : Event(Cancel{}));
    world.release();
    EXPECT_EQ(world.count<ReadExtents>(), 1U) << "of 2: nobody wants the others any more";
    EXPECT_TRUE(world.over);
  }
}

// A peer that never came to know of the files calls while they are being forgotten.
std::unique_ptr<World> forgetting() {
  auto world = moving(called(destination()));
  world->post(PauseAsked{});
  world->post(ContinueAsked{});
  world->peer.known = false;
  world->hold<ReleaseFiles>();
  world->peer_calls();
  EXPECT_EQ(world->leg_phase(), LegPhase::kForgetting);
  return world;
}

TEST(LegForgets, WhatItsPeerNeverCameToKnow) {
  const auto world = forgetting();
  world->data = true;
  world->release();
  EXPECT_EQ(world->count(Entry::kForgotten), 1U);
  EXPECT_EQ(world->count<CreateFiles>(), 2U);
  EXPECT_EQ(world->state(), ViewState::kSucceeded);
}

TEST(LegForgets, AndIsNotOverBeforeThat) {
  const auto cancelled = forgetting();
  cancelled->post(Cancel{});
  EXPECT_NE(cancelled->leg_phase(), LegPhase::kIdle);
  cancelled->release_one_after_the_other();
  cancelled->pass(kSecondNs);
  EXPECT_TRUE(cancelled->over);
  EXPECT_EQ(cancelled->state(), ViewState::kCancelled);

  const auto left = forgetting();
  left->post(Detach{});
  left->release_one_after_the_other();
  EXPECT_TRUE(left->over);

  const auto paused = forgetting();
  paused->post(PauseAsked{});
  paused->post(ContinueAsked{});
  paused->release_one_after_the_other();
  paused->peer_calls();
  paused->data = true;
  paused->pass(kSecondNs);
  EXPECT_FALSE(paused->over && paused->error() == ErrorCode::kCancelled);
}

}  // namespace
}  // namespace sluice::transfer::test
