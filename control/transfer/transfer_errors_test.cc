// Each effect that can fail fails once, at each point where it is asked for: what the transfer makes of it.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

// With the errors of each kind: those that time, an operator, or nobody remedies.
constexpr ErrorCode kTimes[] = {ErrorCode::kPeerUnreachable, ErrorCode::kDaemonNotRunning,
                                ErrorCode::kStalled, ErrorCode::kResources};
constexpr ErrorCode kOperators[] = {ErrorCode::kNoSpace, ErrorCode::kStorage, ErrorCode::kPeerUntrusted};
constexpr ErrorCode kNobodys[] = {
    ErrorCode::kInternal,         ErrorCode::kUsage,          ErrorCode::kConfiguration,
    ErrorCode::kSourceUnreadable, ErrorCode::kOutsideExports, ErrorCode::kDestinationExists,
    ErrorCode::kIntegrity,        ErrorCode::kDevice,         ErrorCode::kIncompatible};

template <typename E>
std::unique_ptr<World> failing(const Scene& scene, ErrorCode code) {
  auto world = std::make_unique<World>(scene);
  world->fail<E>(code);
  world->start();
  return world;
}

void expect_end(World& world, ErrorCode code) {
  EXPECT_TRUE(world.over);
  EXPECT_EQ(world.state(), ViewState::kFailed);
  EXPECT_EQ(world.error(), code);
}

// ---- before files are agreed upon: the end, and nothing stays behind ---------------------------------

template <typename E>
void ends_it(const Scene& scene) {
  for (const ErrorCode code : kNobodys) {
    const auto world = failing<E>(scene, code);
    expect_end(*world, code);
    EXPECT_EQ(world->template count<E>(), 1U);
    EXPECT_EQ(world->template count<ReleaseFiles>(), 1U);
    EXPECT_FALSE(world->flows_open());
    EXPECT_FALSE(world->stream_open());
  }
}

TEST(ErrorBeforeTheFilesAreKnown, EndsIt) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    ends_it<ReserveFlows>(scene);
    ends_it<ReserveBuffers>(scene);
    if (scene.initiator) ends_it<Call>(scene);
    if (scene.role == Role::kSource) ends_it<OpenSources>(scene);
    if (scene.role == Role::kSource) ends_it<ReopenSources>(alone(scene));
    if (scene.role == Role::kDestination) ends_it<CreateFiles>(scene);
    if (scene.role == Role::kDestination) ends_it<OpenObject>(scene);
  }
}

TEST(ErrorBeforeTheFilesAreKnown, ThePeerIsToldOfIt) {
  for (const Scene& scene : {source(), called(source())}) {
    const auto world = failing<OpenSources>(scene, ErrorCode::kSourceUnreadable);
    ASSERT_GE(world->said<Failure>().size(), 1U);
    EXPECT_EQ(world->said<Failure>().front().code, static_cast<uint32_t>(ErrorCode::kSourceUnreadable));
  }
}

TEST(ErrorBeforeTheFilesAreKnown, APeerThatCannotBeReachedAtAllIsNotCalledAgain) {
  World world;
  world.reachable = false;
  world.start();
  expect_end(world, ErrorCode::kPeerUnreachable);
  EXPECT_EQ(world.count<Call>(), 1U);
}

TEST(ErrorBeforeTheFilesAreKnown, TheRequestIsNotBegunWithoutTheJournal) {
  World world;
  world.fail(Entry::kRequest, ErrorCode::kStorage);
  world.start();
  expect_end(world, ErrorCode::kStorage);
  EXPECT_EQ(world.count<Call>(), 0U);
}

// ---- after that: rest, pause, or end -------------------------------------------------------------------

// What the transfer makes of an error of an attempt that has begun.
template <typename E>
void follows_the_remedy(const Scene& scene) {
  for (const ErrorCode code : kTimes) {
    const auto world = failing<E>(scene, code);
    EXPECT_EQ(world->phase(), TransferPhase::kResting) << error_code_name(code);
    if (!scene.initiator) world->peer_calls();
    world->pass(kLongNs);
    EXPECT_EQ(world->state(), ViewState::kSucceeded) << "time has healed it";
  }
  for (const ErrorCode code : kOperators) {
    const auto world = failing<E>(scene, code);
    EXPECT_EQ(world->phase(), scene.initiator ? TransferPhase::kPaused : TransferPhase::kResting);
    EXPECT_EQ(world->error(), code) << "an operator sees why";
    EXPECT_EQ(world->journal.record.state, scene.initiator ? RecordState::kPaused : RecordState::kActive);
    world->pass(kSecondNs);
    EXPECT_FALSE(world->over);
    if (scene.initiator) world->post(ContinueAsked{});
    if (!scene.initiator) world->peer_calls();
    world->pass(kLongNs);
    EXPECT_EQ(world->state(), ViewState::kSucceeded) << "somebody has remedied it";
    EXPECT_EQ(world->error(), std::nullopt);
  }
  for (const ErrorCode code : kNobodys) {
    const auto world = failing<E>(scene, code);
    expect_end(*world, code);
    EXPECT_EQ(world->count(Entry::kCleaned), scene.role == Role::kDestination ? 1U : 0U);
  }
}

TEST(ErrorWhileDataMoves, FollowsItsRemedyAtASource) {
  for (const Scene& scene : {source(), called(source())}) {
    SCOPED_TRACE(name_of(scene));
    follows_the_remedy<OpenObject>(scene);
    follows_the_remedy<CheckSource>(alone(scene));
  }
}

TEST(ErrorWhileDataMoves, FollowsItsRemedyAtADestination) {
  for (const Scene& scene : {destination(), called(destination())}) {
    SCOPED_TRACE(name_of(scene));
    follows_the_remedy<NameObject>(alone(scene));
  }
}

TEST(ErrorWhileDataMoves, AFlowThatTheDataplaneRefusesEndsIt) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    expect_end(*failing<OpenFlow>(scene, ErrorCode::kInternal), ErrorCode::kInternal);
  }
}

TEST(ErrorWhileDataMoves, AReadOfASourceThatFailsIsItsErrorIfTheFileIsAsItWas) {
  World world(alone(source()));
  world.data = false;
  world.start();
  world.post(FlowEvent{.leg = LegId(0),
                       .event = {.kind = board::EventKind::kExtentFailed, .offset = 5, .value = EIO}});
  EXPECT_EQ(world.phase(), TransferPhase::kPaused);
  EXPECT_EQ(world.error(), ErrorCode::kStorage);
}

TEST(ErrorWhileDataMoves, ASourceThatChangedIsNotTrusted) {
  World world(alone(source()));
  world.data = false;
  world.fail<CheckSource>(ErrorCode::kIntegrity);
  world.start();
  world.post(FlowEvent{.leg = LegId(0), .event = {.kind = board::EventKind::kExtentFailed, .value = EIO}});
  expect_end(world, ErrorCode::kIntegrity);
}

TEST(ErrorWhileDataMoves, AWriteThatFailsIsTheDisksErrorOrAFullFileSystem) {
  for (const auto& [number, code] :
       {std::pair{EIO, ErrorCode::kStorage}, {ENOSPC, ErrorCode::kNoSpace}, {EDQUOT, ErrorCode::kNoSpace}}) {
    World world(alone(destination()));
    world.data = false;
    world.start();
    world.post(FlowEvent{
        .leg = LegId(0),
        .event = {.kind = board::EventKind::kExtentFailed, .value = static_cast<uint64_t>(number)}});
    EXPECT_EQ(world.phase(), TransferPhase::kPaused);
    EXPECT_EQ(world.error(), code);
    EXPECT_EQ(world.count(Entry::kNoted), 1U) << "the disk is suspect from now on";
    EXPECT_TRUE(world.journal.files.front().suspect);
  }
}

// ---- a destination's durability ------------------------------------------------------------------------

TEST(ErrorOfDurability, ASyncThatFailsIsForgottenAndAskedForAgain) {
  for (const Scene& scene : {destination(), called(destination())}) {
    World world(scene);
    world.fail<SyncObject>(ErrorCode::kStorage);
    world.start();
    EXPECT_EQ(world.state(), ViewState::kSucceeded);
    EXPECT_EQ(world.count(Entry::kSuspect), 1U);
    EXPECT_GE(world.said<Need>().size(), 1U);
    EXPECT_EQ(world.count<ReadBackObject>(), 1U) << "the disk failed once";
  }
}

TEST(ErrorOfDurability, ADiskThatFailsTwiceIsBad) {
  World world(alone(destination()));
  world.fail<SyncObject>(ErrorCode::kStorage);
  world.fail<SyncObject>(ErrorCode::kStorage);
  world.start();
  EXPECT_EQ(world.phase(), TransferPhase::kPaused);
  EXPECT_EQ(world.error(), ErrorCode::kStorage);
}

TEST(ErrorOfDurability, TheLastSyncIsASyncLikeAnyOther) {
  World world(destination());
  world.fail<FinishObject>(ErrorCode::kStorage);
  world.start();
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(world.count(Entry::kSuspect), 1U);
  EXPECT_EQ(world.count<ReadBackObject>(), 1U);
}

TEST(ErrorOfDurability, TheJournalMayFailToTakeTheNoteOfAFailedSync) {
  World world(destination());
  world.fail<SyncObject>(ErrorCode::kStorage);
  world.fail(Entry::kSuspect, ErrorCode::kStorage);
  world.start();
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
}

TEST(ErrorOfDurability, WhatIsReadBackMustBeWhatWasWritten) {
  World world(alone(destination()));
  world.fail<SyncObject>(ErrorCode::kStorage);
  world.fail<ReadBackObject>(ErrorCode::kIntegrity);
  world.start();
  expect_end(world, ErrorCode::kIntegrity);
  for (const Effect& effect : world.effects) {
    const auto* const name = std::get_if<NameObject>(&effect);
    EXPECT_FALSE(name != nullptr && name->object == ObjectId(0)) << "its bytes are others";
  }
}

TEST(ErrorOfDurability, TheJournalMustTakeExtentsAndTheEndOfAFile) {
  for (const Entry entry : {Entry::kExtents, Entry::kFinishing, Entry::kAgreed}) {
    World world(destination());
    world.fail(entry, ErrorCode::kStorage);
    // What its flows have brought is tried once more when an attempt ends.
    if (entry == Entry::kExtents) world.fail(entry, ErrorCode::kStorage);
    world.start();
    EXPECT_EQ(world.phase(), TransferPhase::kPaused) << static_cast<int>(entry);
    EXPECT_EQ(world.error(), ErrorCode::kStorage);
    EXPECT_EQ(world.said<SessionDone>().size(), 0U);
    world.post(ContinueAsked{});
    world.pass(kLongNs);
    EXPECT_EQ(world.state(), ViewState::kSucceeded);
  }
}

TEST(ErrorOfDurability, WhatTheJournalDidNotTakeIsTriedOnceMoreAtTheEndOfTheAttempt) {
  World world(destination());
  world.fail(Entry::kExtents, ErrorCode::kStorage);
  world.start();
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(world.count<SyncObject>(), 2U);
}

TEST(ErrorOfDurability, TheLastNotesOfTheJournalMayBeLost) {
  for (const Entry entry : {Entry::kNamed, Entry::kEnded, Entry::kAware, Entry::kCleaned}) {
    World world(destination());
    world.fail(entry, ErrorCode::kStorage);
    world.start();
    EXPECT_TRUE(world.over) << static_cast<int>(entry);
    EXPECT_EQ(world.state(), ViewState::kSucceeded);
  }
}

TEST(ErrorOfDurability, NothingIsReportedBeforeItIsDurable) {
  World world(destination());
  world.hold<SyncObject>();
  world.start();
  EXPECT_EQ(world.said<PartitionDone>().size(), 0U);
  world.release();
  world.pass(kSecondNs);
  EXPECT_GE(world.said<PartitionDone>().size(), 1U);
  for (const auto& [held, word] : {std::pair{Entry::kExtents, 0}, {Entry::kFinishing, 1}}) {
    World other(destination());
    other.hold(held);
    other.start();
    EXPECT_EQ(word == 0 ? other.said<PartitionDone>().size() : other.count<NameObject>(),
              word == 0 ? 0U : 2U);
  }
}

TEST(ErrorOfTheSourcesJournal, IsThatOfADisk) {
  World world(source());
  world.scene.settings.sync_lag_ns = kMillisecondNs;
  world.fail(Entry::kExtents, ErrorCode::kStorage);
  world.hold<CheckSource>();  // it is not over before
  world.start();
  world.pass(kSecondNs);
  world.release();
  EXPECT_EQ(world.phase(), TransferPhase::kPaused);
  EXPECT_EQ(world.error(), ErrorCode::kStorage);
}

// ---- after a restart -------------------------------------------------------------------------------------

std::unique_ptr<World> restarted(const Scene& scene, bool adopt, Recovered found = Recovered::kAway) {
  auto world = std::make_unique<World>(scene);
  world->data = false;
  world->start();
  world->restart(adopt, found);
  world->data = true;
  return world;
}

TEST(ErrorAfterARestart, AnUnfinishedFileThatCannotBeOpenedEndsTheAttempt) {
  for (const bool adopt : {false, true}) {
    const auto world = restarted(destination(), adopt);
    world->fail<ReopenFile>(ErrorCode::kStorage);
    world->start();
    EXPECT_EQ(world->phase(), TransferPhase::kPaused);
    EXPECT_EQ(world->error(), ErrorCode::kStorage);
  }
}

TEST(ErrorAfterARestart, AnUnfinishedFileThatIsGoneBeginsAnew) {
  const auto world = restarted(destination(), false);
  world->reopened_found = false;
  world->start();
  EXPECT_EQ(world->count<RecreateFile>(), 3U);
  EXPECT_EQ(world->count(Entry::kAnew), 3U);
  EXPECT_EQ(world->state(), ViewState::kSucceeded);
}

TEST(ErrorAfterARestart, AnUnfinishedFileThatIsGoneIsNotWrittenByFlowsOfBefore) {
  const auto world = restarted(destination(), true);
  world->reopened_found = false;
  world->start();
  EXPECT_EQ(world->count<RecreateFile>(), 0U);
  EXPECT_FALSE(world->flows_open());
  world->pass(10 * kSecondNs);
  EXPECT_EQ(world->count<RecreateFile>(), 3U);
  EXPECT_EQ(world->state(), ViewState::kSucceeded);
}

TEST(ErrorAfterARestart, AFileThatCannotBeCreatedAgainEndsTheAttempt) {
  const auto world = restarted(destination(), false);
  world->reopened_found = false;
  world->fail<RecreateFile>(ErrorCode::kNoSpace);
  world->start();
  EXPECT_EQ(world->error(), ErrorCode::kNoSpace);
  EXPECT_EQ(world->phase(), TransferPhase::kPaused);
}

TEST(ErrorAfterARestart, TheJournalMustKnowThatAFileBeginsAnew) {
  const auto world = restarted(destination(), false);
  world->reopened_found = false;
  world->fail(Entry::kAnew, ErrorCode::kStorage);
  world->start();
  EXPECT_EQ(world->error(), ErrorCode::kStorage);
  EXPECT_EQ(world->phase(), TransferPhase::kPaused);
}

TEST(ErrorAfterARestart, ASourceThatIsAnotherFileNowEndsIt) {
  for (const bool adopt : {false, true}) {
    const auto world = restarted(alone(source()), adopt);
    world->fail<ReopenSources>(ErrorCode::kIntegrity);
    world->start();
    world->pass(kSecondNs);
    expect_end(*world, ErrorCode::kIntegrity);
  }
}

TEST(ErrorAfterARestart, AnExtentThatCannotBeReadAgainIsAnErrorIfTheFileIsAsItWas) {
  World world(alone(source()));
  world.peer.holds[ObjectId(0)] = {{.offset = 0, .length = 2 * kExtent}};
  world.fail<ReadExtents>(ErrorCode::kStorage);
  world.start();
  world.pass(kSecondNs);
  EXPECT_EQ(world.count<ReadExtents>(), 1U);
  EXPECT_EQ(world.phase(), TransferPhase::kPaused);
  EXPECT_EQ(world.error(), ErrorCode::kStorage);
}

// ---- any answer of all ----

TEST(AnyAnswer, MayBeAnErrorAndTheTransferComesToRestOrEnds) {
  for (const Scene& scene : every_scene()) {
    World whole(scene);
    whole.start();
    for (size_t n = 0; n < whole.answers; ++n) {
      SCOPED_TRACE(name_of(scene) + ", answer " + std::to_string(n));
      World world(scene);
      world.fail_answer(n);
      world.start();
      world.pass(kSecondNs);
      EXPECT_TRUE(world.over || world.phase() == TransferPhase::kResting ||
                  world.phase() == TransferPhase::kPaused || world.leg_phase() == LegPhase::kMoving)
          << static_cast<int>(world.phase());
      if (world.phase() == TransferPhase::kPaused) world.post(ContinueAsked{});
      if (!world.over && !scene.initiator) world.peer_calls();
      world.pass(kLongNs);
      EXPECT_TRUE(world.over);
    }
  }
}

}  // namespace
}  // namespace sluice::transfer::test
