// A transfer between its attempts and at its end: what operators, restarts and time make of it.
// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/transfer.h"

#include <gtest/gtest.h>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

// ---- phases ----------------------------------------------------------------------------------------------

TEST(TransferPhases, NothingFollowsTheEnd) {
  for (int to = 0; to < static_cast<int>(TransferPhase::kOver); ++to) {
    EXPECT_FALSE(allowed(TransferPhase::kOver, static_cast<TransferPhase>(to))) << to;
  }
}

TEST(TransferPhases, NoneIsSkippedOnTheWayOut) {
  EXPECT_FALSE(allowed(TransferPhase::kActive, TransferPhase::kReleasing)) << "the journal is told first";
  EXPECT_FALSE(allowed(TransferPhase::kEnding, TransferPhase::kOver)) << "files are let go of first";
  EXPECT_FALSE(allowed(TransferPhase::kEnding, TransferPhase::kParting));
  EXPECT_FALSE(allowed(TransferPhase::kEnding, TransferPhase::kLeaving));
  EXPECT_FALSE(allowed(TransferPhase::kNoting, TransferPhase::kResting));
  EXPECT_FALSE(allowed(TransferPhase::kReleasing, TransferPhase::kActive));
  EXPECT_TRUE(allowed(TransferPhase::kLeaving, TransferPhase::kOver));
  for (int from = 0; from <= static_cast<int>(TransferPhase::kOver); ++from) {
    EXPECT_FALSE(allowed(static_cast<TransferPhase>(from), TransferPhase::kNew)) << from;
    const bool before_the_end = from < static_cast<int>(TransferPhase::kEnding);
    EXPECT_EQ(allowed(static_cast<TransferPhase>(from), TransferPhase::kEnding), before_the_end) << from;
    EXPECT_EQ(allowed(static_cast<TransferPhase>(from), TransferPhase::kLeaving), before_the_end) << from;
  }
}

TEST(TransferPhases, EachIsReached) {
  std::set<TransferPhase> reached;
  const auto add = [&](const World& world) { reached.insert(world.phases.begin(), world.phases.end()); };
  World fails(destination());
  for (const Entry entry : {Entry::kRequest, Entry::kEnded, Entry::kCleaned, Entry::kAware})
    fails.hold(entry);
  fails.fail<NameObject>(ErrorCode::kIntegrity);
  fails.hold<ReleaseFiles>();
  fails.start();
  fails.release_one_after_the_other();
  add(fails);
  const auto held = moving(destination());
  held->hold<ReleaseFiles>();
  held->post(Cancel{});
  add(*held);
  held->hold(Entry::kCleaned);
  held->release_one_after_the_other();
  add(*held);
  const auto paused = resting(source());
  paused->post(PauseAsked{});
  paused->hold<ReleaseFiles>();
  paused->post(Detach{});
  add(*paused);
  const auto unaware = resting(source());
  unaware->post(Cancel{});
  unaware->reachable = true;
  unaware->hold(Entry::kAware);
  unaware->pass(6 * kSecondNs);
  add(*unaware);
  const auto again = moving(destination());
  again->restart(false);
  again->hold<RecoverFiles>();
  again->start();
  add(*again);
  World waits(destination());
  waits.place = 1;
  waits.start();
  add(waits);
  World forgets(destination());
  forgets.mute = {"TransferOffer"};
  forgets.hold<ReleaseFiles>();
  forgets.start();
  forgets.lose_stream();
  add(forgets);
  for (int phase = static_cast<int>(TransferPhase::kNoting); phase <= static_cast<int>(TransferPhase::kOver);
       ++phase) {
    EXPECT_TRUE(reached.contains(static_cast<TransferPhase>(phase))) << phase;
  }
}

// ---- pause, continue, cancel -----------------------------------------------------------------------------

TEST(Pause, EndsTheAttemptTellsThePeerAndWaits) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    const auto world = moving(scene);
    world->post(PauseAsked{});
    EXPECT_EQ(world->phase(), TransferPhase::kPaused);
    EXPECT_EQ(world->journal.record.state, RecordState::kPaused);
    EXPECT_TRUE(world->journal.record.legs.front().flows.empty());
    EXPECT_EQ(world->said<Pause>().size(), 1U);
    EXPECT_FALSE(world->flows_open());
    EXPECT_EQ(world->error(), std::nullopt) << "an operator wanted it so";
    world->pass(2 * 86400 * kSecondNs);
    EXPECT_EQ(world->phase(), TransferPhase::kPaused) << "until somebody continues it";
    world->data = true;
    world->post(ContinueAsked{});
    if (!scene.initiator) world->peer_calls();
    world->pass(kSecondNs);
    EXPECT_EQ(world->state(), ViewState::kSucceeded);
  }
}

TEST(Pause, IsInTheJournalBeforeTheAttemptIsOver) {
  const auto world = moving(source());
  world->hold<CloseFlow>();
  world->post(PauseAsked{});
  EXPECT_EQ(world->phase(), TransferPhase::kActive);
  EXPECT_EQ(world->journal.record.state, RecordState::kPaused);
}

TEST(Pause, ThatIsContinuedWhileTheAttemptStillClosesGoesOn) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    const auto world = moving(scene);
    world->hold<ReleaseFlows>();
    world->post(PauseAsked{});
    world->post(ContinueAsked{});
    EXPECT_EQ(world->leg_phase(), LegPhase::kReleasing);
    world->data = true;
    world->release();
    EXPECT_EQ(world->journal.record.state, scene.initiator ? RecordState::kSucceeded : RecordState::kActive);
    EXPECT_NE(world->error(), ErrorCode::kCancelled);
    if (!scene.initiator) world->peer_calls();
    EXPECT_EQ(world->state(), ViewState::kSucceeded);
  }
}

TEST(Pause, IsOnlyForWhatHasBegunAndHasNotEnded) {
  World world(source());
  world.hold<OpenSources>();
  world.start();
  EXPECT_EQ(world.transfer().may_pause().error().code, ErrorCode::kUsage);
  EXPECT_EQ(world.transfer().may_continue().error().code, ErrorCode::kUsage);
  world.data = false;
  world.release();
  EXPECT_TRUE(world.transfer().may_pause());
  world.post(PauseAsked{});
  EXPECT_FALSE(world.transfer().may_pause()) << "it is paused already";
  EXPECT_TRUE(world.transfer().may_continue());
  world.post(Cancel{});
  EXPECT_FALSE(world.transfer().may_pause());
  EXPECT_FALSE(world.transfer().may_continue());
}

TEST(Pause, ACallIsAnsweredWithIt) {
  const auto world = moving(called(destination()));
  world->post(PauseAsked{});
  world->peer_calls();
  ASSERT_EQ(world->refused.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<transfer::Pause>(world->refused.front()));
  EXPECT_EQ(world->phase(), TransferPhase::kPaused);
}

TEST(Pause, OfThePeerIsARestThatIsNoSilence) {
  const auto world = moving(source());
  world->hear(transfer::Pause{.node = "there"});
  EXPECT_EQ(world->phase(), TransferPhase::kResting);
  EXPECT_EQ(world->transfer().view(world->now_ns).waiting_for, "node there (paused by its operator)");
}

TEST(Cancel, EndsItInEachPhaseAndRemovesWhatIsUnfinished) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    for (const auto& prepare : {moving, resting}) {
      const auto world = prepare(scene);
      world->reachable = true;
      world->post(Cancel{});
      world->pass(kSecondNs);
      EXPECT_TRUE(world->over);
      EXPECT_EQ(world->state(), ViewState::kCancelled);
      EXPECT_EQ(world->journal.record.state, RecordState::kCancelled);
      EXPECT_FALSE(world->journal.record.files_left);
      const auto* const release = std::get_if<ReleaseFiles>(&world->effects[world->effects.size() - 2]);
      EXPECT_TRUE(release == nullptr || !release->keep);
    }
  }
}

// The operator is told when the journal has answered: from there on nothing undoes it.
TEST(Cancel, IsInTheJournalBeforeTheAttemptIsOverAndSurvivesTheDeathOfThisControl) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    for (const bool adopt : {false, true}) {
      const auto world = moving(scene);
      world->hold<CloseFlow>();
      world->post(Cancel{});
      EXPECT_EQ(world->phase(), TransferPhase::kActive);
      EXPECT_EQ(world->journal.record.state, RecordState::kCancelled);
      world->data = true;
      const Record& record = world->journal.record;
      if (!record.files_left && !record.legs.front().peer_unaware) {  // nothing is left to be done
        EXPECT_EQ(name_of(scene), "source that is called");
        continue;
      }
      world->restart(adopt);
      world->start();
      world->pass(10 * kSecondNs);
      EXPECT_TRUE(world->over);
      EXPECT_EQ(world->state(), ViewState::kCancelled);
      EXPECT_EQ(world->error(), ErrorCode::kCancelled);
      EXPECT_EQ(world->count<OpenFlow>(), 1U) << "nothing is moved any more";
      EXPECT_FALSE(world->journal.record.files_left);
      EXPECT_EQ(world->count(Entry::kAware), 1U) << "the peer is told, whoever began the session";
    }
  }
}

TEST(Cancel, IsNotUndoneByWhatTheAttemptStillWrites) {
  const auto world = moving(destination());
  size_t records = 0;
  world->on_effect = [&records](const Effect& effect) {
    const auto* const write = std::get_if<WriteJournal>(&effect);
    if (write == nullptr || !write->batch.record) return;
    ++records;
    EXPECT_EQ(write->batch.record->state, RecordState::kCancelled);
  };
  world->post(Cancel{});
  EXPECT_GE(records, 3U) << "at once, when its flows have ended, and at the end";
}

// Nobody would tell the caller otherwise, who would begin it once more.
TEST(Cancel, OfACalledSessionThatHasNotBegunIsRemembered) {
  World world(called(destination()));
  world.mute = {"TransferOffer"};
  world.start();
  ASSERT_EQ(world.handshake_phase(), HandshakePhase::kOffer);
  world.post(Cancel{});
  EXPECT_TRUE(world.over);
  EXPECT_FALSE(world.journal_empty);
  EXPECT_EQ(world.journal.record.state, RecordState::kCancelled);
}

TEST(Detach, LeavesFlowsFilesAndJournalToTheNextControl) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    const auto world = moving(scene);
    const size_t said = world->said<Failure>().size() + world->said<transfer::Pause>().size();
    world->post(Detach{});
    EXPECT_TRUE(world->over);
    EXPECT_TRUE(world->flows_open());
    EXPECT_EQ(world->count<CloseFlow>() + world->count<ReleaseFlows>(), 0U);
    EXPECT_EQ(world->journal.record.state, RecordState::kActive);
    EXPECT_EQ(world->journal.record.legs.front().flows.size(), 1U);
    EXPECT_EQ(world->said<Failure>().size() + world->said<transfer::Pause>().size(), said);
    ASSERT_EQ(world->count<ReleaseFiles>(), 1U);
    EXPECT_TRUE(std::get<ReleaseFiles>(world->effects[world->effects.size() - 2]).keep);
  }
}

// The stream of a leg that was left stays as it was, and nobody looks after it any more.
TEST(Detach, WaitsForTheJournalWithoutHurry) {
  World world(destination());
  world.hold<NameObject>(world.scene.sizes.size() - 1);
  world.start();
  world.pass(20 * kSecondNs);
  world.post(Detach{});
  std::optional<uint64_t> due_ns;
  world.on_effect = [&](const Effect& effect) {
    const auto* const write = std::get_if<WriteJournal>(&effect);
    if (write == nullptr || write->entry != Entry::kEnded) return;
    EXPECT_EQ(world.phase(), TransferPhase::kEnding);
    EXPECT_TRUE(world.stream_open());
    due_ns = world.transfer().due_ns();
  };
  world.release();
  EXPECT_EQ(due_ns, UINT64_MAX);
  EXPECT_TRUE(world.over);
}

// ---- time ----

TEST(Rest, EachWaitIsLongerThanTheOneBeforeUntilItIsTheLongest) {
  const auto world = resting(source());
  std::vector<uint64_t> called_ns;
  world->on_effect = [&](const Effect& effect) {
    if (std::holds_alternative<Call>(effect)) called_ns.push_back(world->now_ns);
  };
  world->pass(60 * kSecondNs);
  ASSERT_GE(called_ns.size(), 6U);
  for (size_t i = 2; i < called_ns.size(); ++i) {
    const uint64_t before_ns = called_ns[i - 1] - called_ns[i - 2];
    EXPECT_GE(called_ns[i] - called_ns[i - 1], std::min(before_ns, Backoff::kMaxNs));
    EXPECT_LE(called_ns[i] - called_ns[i - 1], Backoff::kMaxNs);
  }
}

TEST(Rest, ACallerGivesUpAfterTheResumeTimeoutAndIsPaused) {
  Scene scene = source();
  scene.settings.resume_timeout_ns = 100 * kSecondNs;
  const auto world = resting(scene);
  world->pass(90 * kSecondNs);
  EXPECT_EQ(world->phase(), TransferPhase::kResting);
  world->pass(20 * kSecondNs);
  EXPECT_EQ(world->phase(), TransferPhase::kPaused);
  EXPECT_EQ(world->error(), ErrorCode::kPeerUnreachable);
  EXPECT_EQ(world->journal.record.state, RecordState::kPaused);
}

TEST(Rest, ASessionThatNobodyWillBeThereToLetGoOnEndsWhereItWouldBePaused) {
  for (Scene scene : {alone(source()), alone(destination())}) {
    SCOPED_TRACE(name_of(scene));
    scene.options.on_error = options::OnError::kFail;
    scene.settings.resume_timeout_ns = 100 * kSecondNs;
    World full(scene);
    if (scene.role == Role::kSource) full.fail<OpenObject>(ErrorCode::kNoSpace);
    if (scene.role == Role::kDestination) full.fail<NameObject>(ErrorCode::kNoSpace);
    full.start();
    EXPECT_EQ(full.state(), ViewState::kFailed);
    EXPECT_EQ(full.error(), ErrorCode::kNoSpace);
    EXPECT_EQ(full.count(Entry::kCleaned), scene.role == Role::kDestination ? 1U : 0U);
    EXPECT_EQ(full.journal.record.state, RecordState::kFailed);
    const auto world = resting(scene);
    world->pass(90 * kSecondNs);
    EXPECT_EQ(world->phase(), TransferPhase::kResting) << "time may still mend it";
    world->pass(20 * kSecondNs);
    EXPECT_EQ(world->state(), ViewState::kFailed);
    EXPECT_EQ(world->error(), ErrorCode::kPeerUnreachable);
  }
}

TEST(Rest, WhoeverWasCalledKeepsWhatHasArrivedForSoLongAndNoLonger) {
  Scene scene = called(destination());
  scene.settings.keep_ns = 1000 * kSecondNs;
  scene.settings.resume_timeout_ns = 100 * kSecondNs;
  const auto world = resting(scene);
  world->pass(900 * kSecondNs);
  EXPECT_EQ(world->phase(), TransferPhase::kResting);
  world->pass(200 * kSecondNs);
  EXPECT_TRUE(world->transfer().ended());
  EXPECT_EQ(world->error(), ErrorCode::kPeerUnreachable);
  EXPECT_EQ(world->count(Entry::kCleaned), 1U);
  world->pass(200 * kSecondNs);
  EXPECT_TRUE(world->over) << "it tried to tell its peer for as long as it may";
}

TEST(Rest, WaitsForTheOwnDataplane) {
  const auto world = moving(source());
  world->lose_board();
  EXPECT_EQ(world->phase(), TransferPhase::kResting);
  world->pass(60 * kSecondNs);
  EXPECT_EQ(world->phase(), TransferPhase::kResting);
  EXPECT_EQ(world->transfer().view(world->now_ns).waiting_for, "sluice-dataplane of this node");
  world->data = true;
  world->attach();
  EXPECT_EQ(world->state(), ViewState::kSucceeded);
}

}  // namespace
}  // namespace sluice::transfer::test
