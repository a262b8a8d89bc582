// A node that was called, and is not any more, asks whether the session is still known where it began.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

std::vector<Scene> those_that_are_called() { return {called(source()), called(destination())}; }

Hello ended() {
  Hello hello = make_hello(kId);
  hello.ended = true;
  return hello;
}

std::unique_ptr<World> asking(const Scene& scene) {
  auto world = resting(scene);
  world->reachable = true;
  world->mute = {"Hello"};
  world->pass(Leg::kInquireNs);
  EXPECT_EQ(world->leg_phase(), LegPhase::kInquiring);
  return world;
}

TEST(Inquiry, APeerThatKnowsTheSessionIsWaitedFor) {
  for (const Scene& scene : those_that_are_called()) {
    SCOPED_TRACE(name_of(scene));
    const auto world = resting(scene);
    world->reachable = true;
    world->pass(Leg::kInquireNs);
    EXPECT_EQ(world->count<Call>(), 1U);
    EXPECT_TRUE(world->said<Hello>().back().inquires);
    EXPECT_FALSE(world->stream_open());
    EXPECT_EQ(world->phase(), TransferPhase::kResting);
    world->data = true;
    world->peer_calls();
    world->pass(kSecondNs);
    EXPECT_EQ(world->state(), ViewState::kSucceeded);
  }
}

TEST(Inquiry, APeerThatHasForgottenTheSessionEndsIt) {
  for (const Scene& scene : those_that_are_called()) {
    SCOPED_TRACE(name_of(scene));
    const auto world = resting(scene);
    world->reachable = true;
    world->peer.forgot = true;
    world->pass(Leg::kInquireNs);
    EXPECT_TRUE(world->over);
    EXPECT_EQ(world->state(), ViewState::kFailed);
    EXPECT_EQ(world->error(), ErrorCode::kPeerUnreachable);
    EXPECT_EQ(world->count(Entry::kCleaned), scene.role == Role::kDestination ? 1U : 0U);
    EXPECT_FALSE(world->journal.record.files_left);
  }
}

// Nothing is to be asked: the peer has called, and its call waits for what is away here.
TEST(Inquiry, NobodyIsAskedWhoseCallWaits) {
  for (const Scene& scene : {called(source()), called(destination())}) {
    const auto world = moving(scene);
    world->lose_board();
    world->lose_stream();
    world->pass(kSecondNs);
    world->peer_calls();
    world->pass(2 * Leg::kInquireNs);
    EXPECT_TRUE(world->leg().call_waits());
    EXPECT_NE(world->leg_phase(), LegPhase::kInquiring);
    world->data = true;
    world->attach();
    world->pass(20 * kSecondNs);
    EXPECT_EQ(world->state(), ViewState::kSucceeded);
  }
}

TEST(Inquiry, NobodyIsAskedBeforeThePausedFilesAreGivenBack) {
  const auto world = moving(called(destination()));
  world->hold<ReleaseFiles>();
  world->post(PauseAsked{});
  world->pass(2 * Leg::kInquireNs);
  ASSERT_EQ(world->phase(), TransferPhase::kPaused);
  EXPECT_NE(world->leg_phase(), LegPhase::kInquiring);
}

TEST(Inquiry, HearsHowItEndedThere) {
  for (const Scene& scene : those_that_are_called()) {
    SCOPED_TRACE(name_of(scene));
    const auto world = resting(scene);
    world->reachable = true;
    world->peer.last_words = {ended(), Failure{.code = 12, .message = "cancelled there"}};
    world->pass(Leg::kInquireNs);
    EXPECT_TRUE(world->over);
    EXPECT_EQ(world->state(), ViewState::kCancelled);
  }
}

TEST(Inquiry, ASourceHearsThatAllHasArrived) {
  const auto world = resting(called(source()));
  world->reachable = true;
  world->peer.last_words = {ended()};
  for (ObjectId object; object < world->content.end_id(); ++object) {
    world->peer.last_words.emplace_back(
        ObjectState{.object = object, .done = true, .digest = world->content.digest(object)});
  }
  world->peer.last_words.emplace_back(ObjectState{.end = true});
  world->peer.last_words.emplace_back(SessionDone{.files = world->content.sizes.size()});
  world->pass(Leg::kInquireNs + kSecondNs);
  EXPECT_TRUE(world->over);
  EXPECT_EQ(world->state(), ViewState::kSucceeded);
}

TEST(Inquiry, NeedsNoDataplane) {
  const auto world = resting(called(destination()));
  world->reachable = true;
  world->peer.forgot = true;
  world->lose_board();
  world->pass(Leg::kInquireNs);
  EXPECT_TRUE(world->over);
}

TEST(Inquiry, EachWaitIsTwiceTheOneBeforeDownToTheRarest) {
  const auto world = resting(called(source()));
  std::vector<uint64_t> called_s;
  uint64_t before_ns = world->now_ns;
  world->on_effect = [&](const Effect& effect) {
    if (!std::holds_alternative<Call>(effect)) return;
    called_s.push_back((world->now_ns - std::exchange(before_ns, world->now_ns)) / kSecondNs);
  };
  world->pass(1500 * kSecondNs);
  ASSERT_GE(called_s.size(), 6U);
  called_s.resize(6);
  EXPECT_EQ(called_s, (std::vector<uint64_t>{29, 60, 120, 240, 300, 300})) << "it has rested for a second";
}

TEST(Inquiry, IsMadeWhileItIsPausedHereToo) {
  const auto world = moving(called(destination()));
  world->post(PauseAsked{});
  world->pass(Leg::kInquireNs);
  EXPECT_EQ(world->phase(), TransferPhase::kPaused);
  EXPECT_EQ(world->count<Call>(), 1U);
  world->peer.forgot = true;
  world->pass(2 * Leg::kInquireNs);
  EXPECT_TRUE(world->over);
  EXPECT_EQ(world->error(), ErrorCode::kPeerUnreachable);
}

TEST(Inquiry, AfterARestartOfAPausedOneToo) {
  const auto world = moving(called(destination()));
  world->post(PauseAsked{});
  world->restart(false);
  world->peer.forgot = true;
  world->start();
  world->pass(Leg::kInquireNs);
  EXPECT_TRUE(world->over);
}

TEST(Inquiry, WhoeverBeganItCallsInstead) {
  for (const Scene& scene : {source(), destination()}) {
    const auto world = resting(scene);
    world->pass(1000 * kSecondNs);
    for (const Hello& hello : world->said<Hello>()) EXPECT_FALSE(hello.inquires);
    EXPECT_FALSE(world->leg_phases.contains(LegPhase::kInquiring));
  }
}

TEST(Inquiry, ThatIsNotAnsweredIsRepeatedAndChangesNothing) {
  const std::vector<std::function<void(World&)>> answers = {
      [](World&) {},  // silence
      [](World& world) { world.lose_stream(); },
      [](World& world) { world.hear(Failure{.code = 15, .message = "not yours to open"}); },
      [](World& world) { world.hear(SessionDone{}); },
      [](World& world) { world.hear(make_hello(std::string(32, 'b'))); },
      [](World& world) { world.hear(Hello{}); },
      [](World& world) {
        Hello other = make_hello(std::string(32, 'b'));
        other.ended = true;
        world.hear(other);
      }};
  for (size_t i = 0; i < answers.size(); ++i) {
    SCOPED_TRACE(i);
    const auto world = asking(called(destination()));
    answers[i](*world);
    world->pass(ControlStream::kGreetingNs + 2 * kSecondNs);
    EXPECT_EQ(world->phase(), TransferPhase::kResting);
    EXPECT_EQ(world->leg_phase(), LegPhase::kIdle);
    EXPECT_FALSE(world->stream_open());
    world->mute.clear();
    world->pass(2 * Leg::kInquireNs);
    EXPECT_EQ(world->said<Hello>().size(), 3U) << "one of the attempt, and two questions";
  }
}

// Whatever happens while it asks: it neither stands still nor is lost.
TEST(Inquiry, GivesWayToWhateverHappens) {
  struct Happening {
    std::string name;
    std::function<void(World&)> happens;
    bool ends;
  };
  const std::vector<Happening> happenings = {
      {"the peer calls", [](World& world) { world.peer_calls(); }, false},
      {"the peer has ended",
       [](World& world) {
         world.peer.last_words = {ended(), Failure{.code = 12}};
         world.peer_calls_with(ended());
       },
       true},
      {"cancel", [](World& world) { world.post(Cancel{}); }, true},
      {"detach", [](World& world) { world.post(Detach{}); }, true},
      {"pause", [](World& world) { world.post(PauseAsked{}); }, false},
      {"pause and continue",
       [](World& world) {
         world.post(PauseAsked{});
         world.post(ContinueAsked{});
       },
       false},
      {"board lost", [](World& world) { world.lose_board(); }, false},
      {"board attached", [](World& world) { world.attach(); }, false},
  };
  for (const Scene& scene : those_that_are_called()) {
    for (const Happening& happening : happenings) {
      for (const bool taken : {false, true}) {
        SCOPED_TRACE(name_of(scene) + ": " + happening.name + (taken ? ", asked" : ", calling"));
        const auto world = resting(scene);
        world->reachable = true;
        world->mute = {"Hello"};
        if (!taken) world->hold<Call>();
        world->pass(Leg::kInquireNs);
        ASSERT_EQ(world->leg_phase(), LegPhase::kInquiring);
        happening.happens(*world);
        world->release();
        world->mute.clear();
        world->pass(kSecondNs);
        const bool ended = world->over || world->transfer().ended();  // it may still tell the peer
        EXPECT_EQ(ended, happening.ends);
        if (ended) continue;
        world->attach();
        world->data = true;
        if (world->phase() == TransferPhase::kPaused) world->post(ContinueAsked{});
        world->pass(kSecondNs);
        if (!world->over) world->peer_calls();
        world->pass(kSecondNs);
        EXPECT_EQ(world->state(), ViewState::kSucceeded);
      }
    }
  }
}

// ---- at the other end ----

TEST(Inquiry, WhoeverBeganItCallsAtOnceWhenAsked) {
  const auto world = resting(source());
  world->pass(20 * kSecondNs);
  ASSERT_GT(world->transfer().due_ns(), world->now_ns);
  world->reachable = true;
  world->data = true;
  world->post(PeerInquires{});
  EXPECT_EQ(world->state(), ViewState::kSucceeded);
}

TEST(Inquiry, OfThePeerDoesNotContinueWhatIsPausedAndDisturbsNothing) {
  const auto paused = moving(source());
  paused->post(PauseAsked{});
  paused->post(PeerInquires{});
  EXPECT_EQ(paused->phase(), TransferPhase::kPaused);
  const auto moves = moving(source());
  moves->post(PeerInquires{});
  EXPECT_EQ(moves->leg_phase(), LegPhase::kMoving);
  EXPECT_TRUE(moves->leg().stream().up());
}

// ---- a call that nothing was agreed upon with ----

TEST(Rest, WhatWasNotAgreedUponIsNotWaitedFor) {
  World world(called(destination()));
  world.mute = {"TransferOffer"};
  world.start();
  ASSERT_EQ(world.leg_phase(), LegPhase::kHandshake);
  world.hold<ReleaseFlows>();
  world.lose_stream();
  world.peer_calls();  // again, while the attempt ends
  world.lose_board();
  world.release();
  ASSERT_FALSE(world.over) << "the call waits for the dataplane";
  ASSERT_TRUE(world.take_back_call());
  world.post(CallLost{});
  world.pass(kSecondNs);
  EXPECT_TRUE(world.over);
}

}  // namespace
}  // namespace sluice::transfer::test
