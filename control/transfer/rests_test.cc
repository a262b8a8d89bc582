// A node that was called and rests: what it holds open meanwhile, and what it does when it goes on.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

bool keeps_all(const World& world) {
  return std::ranges::all_of(world.effects, [](const Effect& effect) {
    const auto* const release = std::get_if<ReleaseFiles>(&effect);
    return release == nullptr || release->keep;
  });
}

TEST(Rest, WhileADiskIsMendedHoldsNoFiles) {
  for (const ErrorCode code : {ErrorCode::kStorage, ErrorCode::kNoSpace}) {
    World world(called(alone(destination())));
    world.fail<NameObject>(code);
    world.start();
    ASSERT_EQ(world.phase(), TransferPhase::kResting);
    EXPECT_EQ(world.count<ReleaseFiles>(), 1U) << "its file system can be unmounted";
    EXPECT_TRUE(keeps_all(world));
    world.peer_calls();
    world.pass(kLongNs);
    EXPECT_EQ(world.count<RecoverFiles>(), 1U) << "files are taken again by their identity";
    EXPECT_EQ(world.state(), ViewState::kSucceeded);
  }
}

TEST(Rest, WhilePeersDiskIsMendedHoldsNoFiles) {
  for (const Scene& scene : {called(source()), called(destination())}) {
    SCOPED_TRACE(name_of(scene));
    const auto world = moving(scene);
    world->hear(Failure{.code = static_cast<uint32_t>(ErrorCode::kStorage), .message = "its disk"});
    ASSERT_EQ(world->phase(), TransferPhase::kResting);
    EXPECT_EQ(world->count<ReleaseFiles>(), 1U);
    world->data = true;
    world->peer_calls();
    world->pass(kLongNs);
    EXPECT_EQ(world->state(), ViewState::kSucceeded);
  }
}

TEST(Rest, WhileThePeerIsPausedHoldsNoFiles) {
  for (const Scene& scene : {called(source()), called(destination())}) {
    SCOPED_TRACE(name_of(scene));
    const auto world = moving(scene);
    world->hear(Pause{.node = "there"});
    ASSERT_EQ(world->phase(), TransferPhase::kResting);
    EXPECT_EQ(world->count<ReleaseFiles>(), 1U);
    world->data = true;
    world->peer_calls();
    world->pass(kLongNs);
    EXPECT_EQ(world->state(), ViewState::kSucceeded);
  }
}

TEST(Rest, ForTheNetworkKeepsFilesSoThatNothingIsReadAgain) {
  for (const Scene& scene : {called(source()), called(destination())}) {
    const auto world = resting(scene);
    EXPECT_EQ(world->count<ReleaseFiles>(), 0U);
    world->reachable = true;
    world->data = true;
    world->peer_calls();
    world->pass(kLongNs);
    EXPECT_EQ(world->count<RecoverFiles>(), 0U);
    EXPECT_EQ(world->state(), ViewState::kSucceeded);
  }
}

// The directory was removed, and made again.
TEST(Rest, AFileThatIsGoneAfterwardsBeginsAnew) {
  for (const bool packs : {false, true}) {
    Scene scene = called(destination());
    scene.packs = packs;
    if (packs) scene.sizes.back() = 300;
    World world(scene);
    world.unfinished_away = true;
    world.fail<NameObject>(ErrorCode::kStorage);
    world.start();
    ASSERT_EQ(world.phase(), TransferPhase::kResting) << "of several names as of one";
    EXPECT_EQ(world.error(), ErrorCode::kStorage);
    world.recovered = Recovered::kAway;
    world.reopened_found = false;
    world.peer_calls();
    world.pass(kLongNs);
    EXPECT_GE(world.count<RecreateFile>(), 1U);
    EXPECT_EQ(world.state(), ViewState::kSucceeded);
  }
}

TEST(Rest, BeginsNothingBeforeItsFilesAreGivenBack) {
  enum class Then { kCall, kPause, kCancel };
  for (const Then then : {Then::kCall, Then::kPause, Then::kCancel}) {
    World world(called(alone(destination())));
    world.hold<ReleaseFiles>();
    world.fail<NameObject>(ErrorCode::kStorage);
    world.start();
    ASSERT_EQ(world.phase(), TransferPhase::kResting);
    if (then == Then::kCall) world.peer_calls();
    if (then == Then::kPause) world.post(PauseAsked{});
    if (then == Then::kCancel) world.post(Cancel{});
    world.pass(kSecondNs);
    EXPECT_EQ(world.phase(), TransferPhase::kResting);
    EXPECT_EQ(world.count<RecoverFiles>(), 0U);
    world.release();
    world.pass(kSecondNs);
    if (then == Then::kCall) {
      EXPECT_EQ(world.state(), ViewState::kSucceeded);
    }
    if (then == Then::kPause) {
      EXPECT_EQ(world.phase(), TransferPhase::kPaused);
    }
    if (then == Then::kCancel) {
      EXPECT_TRUE(world.transfer().ended());
    }
  }
}

TEST(Rest, WithoutItsFilesSurvivesARestart) {
  World world(called(alone(destination())));
  world.fail<NameObject>(ErrorCode::kStorage);
  world.start();
  world.restart(false, Recovered::kAway);
  world.start();
  world.pass(kLongNs);
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
}

// Its operator paused it while there was no connection.
TEST(Rest, OfAPeerThatAnswersThatItIsPausedHoldsNoFiles) {
  for (const Scene& scene : {called(source()), called(destination())}) {
    SCOPED_TRACE(name_of(scene));
    const auto world = resting(scene);
    world->reachable = true;
    world->peer.pauses = true;
    world->pass(Leg::kInquireNs);
    EXPECT_EQ(world->phase(), TransferPhase::kResting);
    EXPECT_EQ(world->count<ReleaseFiles>(), 1U);
    world->pass(20 * Leg::kInquireNs);
    EXPECT_EQ(world->count<ReleaseFiles>(), 1U) << "once";
    world->peer.pauses = false;
    world->data = true;
    world->peer_calls();
    world->pass(kLongNs);
    EXPECT_EQ(world->state(), ViewState::kSucceeded);
  }
}

// ---- the node that was called ends it ----------------------------------------------------------------

TEST(CalledNode, TellsOfAnEndWhoeverBeganItAndMayBePaused) {
  for (const Scene& scene : {called(source()), called(destination())}) {
    SCOPED_TRACE(name_of(scene));
    const auto world = resting(scene);
    world->post(Cancel{});
    EXPECT_EQ(world->phase(), TransferPhase::kParting);
    EXPECT_TRUE(world->journal.record.legs.front().peer_unaware);
    EXPECT_EQ(world->state(), ViewState::kCancelled);
    world->reachable = true;
    world->pass(2 * Leg::kInquireNs);
    EXPECT_TRUE(world->over);
    EXPECT_FALSE(world->journal.record.legs.front().peer_unaware);
    const Hello word = world->said<Hello>().back();
    EXPECT_TRUE(word.ended && word.inquires) << "as one that was called";
    EXPECT_EQ(world->said<Failure>().back().code, static_cast<uint32_t>(ErrorCode::kCancelled));
  }
}

TEST(CalledNode, GoesOnTellingAfterARestart) {
  const auto world = resting(called(destination()));
  world->post(Cancel{});
  world->restart(false);
  world->reachable = true;
  world->start();
  world->pass(kSecondNs);
  EXPECT_TRUE(world->over);
  EXPECT_EQ(world->count(Entry::kAware), 1U);
}

TEST(CalledNode, TellsNobodyOfWhatFailedUnderItsEyes) {
  World world(called(alone(destination())));
  world.fail<NameObject>(ErrorCode::kIntegrity);
  world.start();
  EXPECT_TRUE(world.over);
  EXPECT_EQ(world.count<Call>(), 0U) << "the failure was said, and who began it calls if it was not heard";
}

// What is said of an end while it is paused ends it, whoever has called.
// Not an operator: what the node shows tells who is to do what.
TEST(Paused, ForAReasonOfThisNodeSaysIt) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    const auto world = moving(scene);
    world->post(PauseAsked{Error{ErrorCode::kPeerUntrusted, "there: this key is not trusted any more"}});
    world->pass(kSecondNs);
    EXPECT_EQ(world->state(), ViewState::kPaused);
    EXPECT_EQ(world->error(), ErrorCode::kPeerUntrusted);
    const View view = world->transfer().view(world->now_ns);
    EXPECT_NE(view.error->message.find("session continue"), std::string::npos) << view.error->message;
    EXPECT_EQ(world->journal.record.state, RecordState::kPaused);
    EXPECT_FALSE(world->said<Pause>().empty());
    world->post(ContinueAsked{});
    EXPECT_EQ(world->error(), std::nullopt);
  }
  Scene batch = alone(source());
  batch.options.on_error = options::OnError::kFail;
  const auto world = moving(batch);
  world->post(PauseAsked{Error{ErrorCode::kPeerUntrusted, "there: this key is not trusted any more"}});
  world->pass(kSecondNs);
  EXPECT_EQ(world->state(), ViewState::kFailed);
  EXPECT_EQ(world->error(), ErrorCode::kPeerUntrusted);
}

TEST(PausedAtItsBegin, EndsWithTheOtherNode) {
  for (const Scene& scene : {source(), destination()}) {
    SCOPED_TRACE(name_of(scene));
    const auto world = moving(scene);
    world->post(PauseAsked{});
    ASSERT_EQ(world->phase(), TransferPhase::kPaused);
    Hello word = make_hello(kId);
    word.ended = word.inquires = true;
    world->peer.last_words = {word, Failure{.code = 12, .message = "cancelled there"}};
    world->peer_calls_with(word);
    world->pass(kSecondNs);
    EXPECT_EQ(world->state(), ViewState::kCancelled);
    world->pass(kSecondNs);
    EXPECT_EQ(world->journal.record.files_left, false);
  }
}

// ---- what cannot be removed --------------------------------------------------------------------------

TEST(Ending, FilesThatCannotBeRemovedAreTriedAgainByTheNextControl) {
  const auto world = moving(called(destination()));
  world->files_stay = 1;
  world->post(Cancel{});
  world->pass(kSecondNs);
  EXPECT_TRUE(world->over);
  EXPECT_TRUE(world->journal.record.files_left);
  EXPECT_EQ(world->count(Entry::kCleaned), 0U);
  world->restart(false);
  world->files_stay = 0;
  world->start();
  world->pass(kSecondNs);
  EXPECT_TRUE(world->over);
  EXPECT_FALSE(world->journal.record.files_left);
}

}  // namespace
}  // namespace sluice::transfer::test
