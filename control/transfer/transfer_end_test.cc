// The end of a transfer, who is told of it, and what a new control makes of the journal.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

// ---- the end, and who knows of it ----

TEST(Parting, APeerThatDoesNotKnowOfTheEndIsToldUntilItSaysThatItDoes) {
  const auto world = resting(source());
  world->post(Cancel{});
  EXPECT_EQ(world->phase(), TransferPhase::kParting);
  EXPECT_TRUE(world->journal.record.legs.front().peer_unaware);
  world->pass(20 * kSecondNs);
  EXPECT_EQ(world->phase(), TransferPhase::kParting);
  world->reachable = true;
  world->pass(6 * kSecondNs);
  EXPECT_TRUE(world->over);
  EXPECT_FALSE(world->journal.record.legs.front().peer_unaware);
  EXPECT_TRUE(world->said<Hello>().back().ended);
  EXPECT_EQ(world->said<Failure>().back().code, static_cast<uint32_t>(ErrorCode::kCancelled));
}

TEST(Parting, HasABound) {
  Scene scene = source();
  scene.settings.resume_timeout_ns = 50 * kSecondNs;
  const auto world = resting(scene);
  world->post(Cancel{});
  world->pass(60 * kSecondNs);
  EXPECT_TRUE(world->over);
}

TEST(Parting, GoesOnAfterARestart) {
  const auto world = resting(source());
  world->post(Cancel{});
  ASSERT_EQ(world->phase(), TransferPhase::kParting);
  world->restart(false);
  world->reachable = true;
  world->start();
  world->pass(kSecondNs);
  EXPECT_TRUE(world->over);
  EXPECT_EQ(world->count(Entry::kAware), 1U);
}

TEST(Parting, EndsWithThisControl) {
  const auto world = resting(source());
  world->post(Cancel{});
  world->post(Detach{});
  EXPECT_TRUE(world->over);
  EXPECT_TRUE(world->journal.record.legs.front().peer_unaware) << "the next control tells it";
}

TEST(Ending, FilesThatWereLeftByAControlThatDiedAreRemovedByTheNext) {
  const auto world = moving(destination());
  world->hold<ReleaseFiles>();
  world->post(Cancel{});
  EXPECT_TRUE(world->journal.record.files_left);
  EXPECT_TRUE(has_ended(world->journal.record.state));
  world->restart(false);
  world->start();
  world->pass(kSecondNs);
  EXPECT_TRUE(world->over);
  EXPECT_EQ(world->count<RecoverFiles>(), 1U);
  EXPECT_FALSE(world->journal.record.files_left);
  EXPECT_EQ(world->state(), ViewState::kCancelled);
}

TEST(Ending, OfThePeerIsTheEndHere) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    const auto world = resting(scene);
    Hello hello = make_hello(kId);
    hello.ended = true;
    world->peer.last_words = {hello, Failure{.code = 12, .message = "cancelled there"}};
    world->reachable = true;
    if (!scene.initiator) world->peer_calls_with(hello);
    world->pass(10 * kSecondNs);
    EXPECT_TRUE(world->over);
    EXPECT_EQ(world->error(), ErrorCode::kCancelled);
    EXPECT_EQ(world->state(), ViewState::kCancelled);
  }
}

TEST(Ending, AFailureIsFinalOnlyBehindTheWordThatItHasEnded) {
  const auto world = moving(source());
  world->hear(Failure{.code = static_cast<uint32_t>(ErrorCode::kStalled), .message = "no progress"});
  EXPECT_EQ(world->phase(), TransferPhase::kResting) << "it will be well later";
  world->data = true;
  world->pass(kSecondNs);
  EXPECT_EQ(world->state(), ViewState::kSucceeded);
}

TEST(Ending, HeardByACallWhileItIsPaused) {
  const auto world = moving(called(destination()));
  world->post(PauseAsked{});
  Hello hello = make_hello(kId);
  hello.ended = true;
  world->peer.last_words = {hello, Failure{.code = 11, .message = "other bytes"}};
  world->peer_calls_with(hello);
  EXPECT_TRUE(world->over);
  EXPECT_EQ(world->error(), ErrorCode::kIntegrity);
}

// ---- restarts ----

TEST(Restart, GoesOnInEachStateOfTheRecord) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    for (const bool adopt : {false, true}) {
      const auto world = moving(scene);
      world->restart(adopt);
      world->data = true;
      world->start();
      world->pass(kSecondNs);
      EXPECT_EQ(world->state(), ViewState::kSucceeded);
      EXPECT_EQ(world->count<OpenFlow>(), adopt ? 1U : 2U) << "flows that are there go on";
    }
    const auto paused = moving(scene);
    paused->post(PauseAsked{});
    paused->restart(false);
    paused->start();
    EXPECT_EQ(paused->phase(), TransferPhase::kPaused);
    paused->data = true;
    paused->post(ContinueAsked{});
    if (!scene.initiator) paused->peer_calls();
    EXPECT_EQ(paused->state(), ViewState::kSucceeded);
  }
}

TEST(Restart, WhatCannotGoOnEnds) {
  const auto world = moving(source());
  Saved saved = world->journal;
  Transfer transfer(world->scene.settings, saved, Error{ErrorCode::kConfiguration, "no such export"}, 5);
  (void)transfer.step(Begin{}, 5);
  EXPECT_EQ(transfer.phase(), TransferPhase::kEnding);
  EXPECT_EQ(transfer.error()->code, ErrorCode::kConfiguration);
}

TEST(Restart, ARecordThatMakesNoSenseIsDamaged) {
  const auto world = moving(destination());
  const std::vector<std::function<void(Saved&)>> damages = {
      [](Saved& s) { s.record.role = Role::kUnknown; },
      [](Saved& s) { s.record.legs.front().agreement.reset(); },
      [](Saved& s) { s.record.legs.front().agreement->extent_bytes = 3; },
      [](Saved& s) { s.record.legs.front().agreement->extent_bytes = 0; },
      [](Saved& s) { s.record.legs.front().agreement->partition_bytes = 1; },
      [](Saved& s) { s.record.legs.front().agreement->partition_bytes += 1; },
      [](Saved& s) { s.record.legs.front().agreement->crc_kind = static_cast<wire::CrcKind>(9); },
      [](Saved& s) { s.record.legs.front().flows.resize(99); },
      [](Saved& s) { s.files.front().size_bytes = UINT64_MAX; },
      [](Saved& s) { s.files.front().size_bytes = 1ULL << 60; },
      [](Saved& s) { s.files.resize(catalog::kFilesMax + 1); },
      [](Saved& s) { s.blocks = {{{.id = recovery::BlockId(0), .bytes = "x"}}}; },
      [](Saved& s) { s.blocks = {{{.id = recovery::BlockId(99), .bytes = std::string(8, 'x')}}}; },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    Saved saved = world->journal;
    damages[i](saved);
    Transfer transfer(world->scene.settings, saved, std::nullopt, 5);
    (void)transfer.step(Begin{}, 5);
    EXPECT_EQ(transfer.phase(), TransferPhase::kEnding) << i;
    ASSERT_TRUE(transfer.error().has_value()) << i;
    EXPECT_EQ(transfer.error()->code, ErrorCode::kStorage) << i;
  }
}

// Who hears of an end looks at once, or asks for the same again.
TEST(End, IsToldOnceUnfinishedFilesHaveGone) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    const auto world = moving(scene);
    world->hold<ReleaseFiles>();
    world->post(Cancel{});
    ASSERT_EQ(world->phase(), TransferPhase::kReleasing);
    EXPECT_TRUE(has_ended(world->journal.record.state)) << "a crash here changes nothing";
    EXPECT_FALSE(world->transfer().ended());
    EXPECT_EQ(world->state(), ViewState::kFinishing);
    EXPECT_EQ(world->transfer().view(world->now_ns).waiting_for, "unfinished files to be removed");
    world->release();
    EXPECT_TRUE(world->transfer().ended());
    EXPECT_EQ(world->state(), ViewState::kCancelled);
  }
}

// The peer refused each name, or needed no data: it had ended before this node heard its answer.
TEST(End, ThatCameBeforeTheAnswerToAnOfferIsTold) {
  World world(source());
  world.mute = {"TransferReady", "ObjectState", "FileDone", "SessionDone"};
  world.start();
  world.mute.clear();
  Hello ended = make_hello(kId);
  ended.ended = true;
  world.peer.last_words = {ended, ObjectFailed{.object = ObjectId(0)}, ObjectState{.end = true},
                           SessionDone{.files = world.content.sizes.size()}};
  world.lose_stream();
  world.pass(20 * kSecondNs);
  EXPECT_TRUE(world.over);
  EXPECT_EQ(world.state(), ViewState::kFailed);
  EXPECT_EQ(world.error(), ErrorCode::kPartial);
  EXPECT_NE(world.transfer().error()->message.find("send the same again"), std::string::npos)
      << world.transfer().error()->message;
}

TEST(Restart, FilesThatAreLeftOfNoFilesAreNotLookedFor) {
  const auto world = moving(destination());
  world->hold<ReleaseFiles>();
  world->post(Cancel{});
  ASSERT_TRUE(world->journal.record.files_left);
  const std::vector<std::function<void(Saved&)>> damages = {
      [](Saved& s) { s.files.clear(); },
      [](Saved& s) { s.record.role = Role::kSource; },
  };
  for (const auto& damage : damages) {
    Saved saved = world->journal;
    damage(saved);
    Transfer transfer(world->scene.settings, saved, std::nullopt, 5);
    (void)transfer.step(Begin{}, 5);
    EXPECT_NE(transfer.phase(), TransferPhase::kRecovering);
    EXPECT_TRUE(transfer.ended());
  }
}

}  // namespace
}  // namespace sluice::transfer::test
