// Files that fail while all others go on.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

FlowEvent extent_failed(int reason) {
  return {.leg = LegId(0),
          .event = {.kind = board::EventKind::kExtentFailed, .value = static_cast<uint64_t>(reason)}};
}

// The first file has failed, all others have arrived, and the operator is told so.
void expect_first_failed(World& world, catalog::Failure failure) {
  EXPECT_TRUE(world.over);
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(world.error(), ErrorCode::kPartial);
  const View view = world.transfer().view(world.now_ns);
  EXPECT_EQ(view.names.failed, 1U);
  EXPECT_EQ(view.names.done, view.names.total - 1);
  ASSERT_EQ(view.names.failures.size(), 1U);
  EXPECT_EQ(view.names.failures.front().path, "f0");
  EXPECT_EQ(view.names.failures.front().failure, failure);
  EXPECT_FALSE(view.files.front().done);
  EXPECT_TRUE(view.files.back().done);
  EXPECT_EQ(world.journal.files.front().state, catalog::FileState::kFailed);
}

TEST(AFileThatFails, AtItsSourceIsWithdrawn) {
  for (const Scene& scene : {source(), called(source())}) {
    World world(scene);
    world.data = false;
    world.start();
    world.post(extent_failed(EIO));
    EXPECT_EQ(world.said<ObjectFailed>().size(), 1U);
    world.data = true;
    world.lose_board();  // what was given to its lanes is given anew
    world.attach();
    if (!scene.initiator) world.peer_calls();
    world.pass(kLongNs);
    expect_first_failed(world, catalog::Failure::kUnreadable);
  }
}

// With that the destination may hear that this node knows: no loss of power may make a success of it
// afterwards.
TEST(AFileThatFails, IsInTheJournalAlreadyWhenAllIsComplete) {
  World world(called(source()));
  world.data = false;
  world.start();
  world.post(extent_failed(EIO));
  world.data = true;
  world.hold(Entry::kEnded);
  world.lose_board();
  world.attach();
  world.peer_calls();
  world.pass(kLongNs);
  ASSERT_EQ(world.count(Entry::kComplete), 1U);
  EXPECT_EQ(world.journal.record.state, RecordState::kSucceeded);
  EXPECT_TRUE(world.journal.files.front().failed());
  EXPECT_EQ(world.journal.files.front().missing.names.front().failure, catalog::Failure::kUnreadable);
}

TEST(AFileThatFails, BecauseItChangesIsNamedSo) {
  World world(source());
  world.fail<CheckSource>(ErrorCode::kIntegrity);
  world.start();
  world.pass(kLongNs);
  if (world.journal.files.front().failed()) expect_first_failed(world, catalog::Failure::kChanged);
  EXPECT_EQ(world.error(), ErrorCode::kPartial);
}

TEST(AFileThatFails, AfterARestartOfItsSourceIsNotOpenedAnyMore) {
  auto world = moving(source());
  world->restart(false);
  world->fail<ReopenSources>(ErrorCode::kIntegrity);
  world->data = true;
  world->start();
  world->pass(kLongNs);
  expect_first_failed(*world, catalog::Failure::kChanged);
}

TEST(AFileThatFails, AtItsDestinationIsRemovedAndTold) {
  for (const auto& [reason, failure] : {std::pair{ENOSPC, catalog::Failure::kNoSpace},
                                        {EDQUOT, catalog::Failure::kNoSpace},
                                        {EIO, catalog::Failure::kUnwritable}}) {
    for (const Scene& scene : {destination(), called(destination())}) {
      World world(scene);
      world.data = false;
      world.start();
      world.post(extent_failed(reason));
      world.tick();
      EXPECT_EQ(world.count<DropFile>(), 1U);
      EXPECT_EQ(world.count(Entry::kFailed), 1U);
      EXPECT_EQ(world.said<ObjectFailed>().size(), 1U);
      world.data = true;
      world.pass(kLongNs);
      expect_first_failed(world, failure);
    }
  }
}

TEST(AFileThatFails, IsToldWithTheReasonThatIsKnownWhereItsNameIsRefused) {
  World world(destination());
  world.why = catalog::Failure::kOtherKind;
  world.fail<NameObject>(ErrorCode::kDestinationExists);
  world.start();
  world.pass(kLongNs);
  EXPECT_EQ(world.error(), ErrorCode::kPartial);
  const View view = world.transfer().view(world.now_ns);
  ASSERT_EQ(view.names.failures.size(), 1U);
  EXPECT_EQ(view.names.failures.front().failure, catalog::Failure::kOtherKind);
}

TEST(AFileThatStandsThere, WithTheSameBytesIsTheOneThatTheJournalKnows) {
  World world(destination());
  world.stands_there = catalog::FileIdentity{.device = 7, .inode = 77};
  world.start();
  world.pass(kLongNs);
  EXPECT_EQ(world.journal.record.state, RecordState::kSucceeded);
  for (const catalog::File& file : world.journal.files) EXPECT_EQ(file.identity.inode, 77U);
}

TEST(AFileThatFails, IsToldOnlyOnceTheJournalKnowsIt) {
  World world(destination());
  world.data = false;
  world.start();
  world.hold(Entry::kFailed);
  world.post(extent_failed(EIO));
  world.tick();
  EXPECT_TRUE(world.said<ObjectFailed>().empty());
  world.data = true;
  world.pass(kSecondNs);
  EXPECT_TRUE(world.said<SessionDone>().empty()) << "not all that has ended was told";
  world.release();
  world.pass(kLongNs);
  expect_first_failed(world, catalog::Failure::kUnwritable);
}

TEST(AFileThatFails, IsJournalledOnlyOnceItIsGone) {
  World world(destination());
  world.data = false;
  world.start();
  world.hold<DropFile>();
  world.post(extent_failed(EIO));
  world.tick();
  EXPECT_EQ(world.count<DropFile>(), 1U);
  EXPECT_EQ(world.count(Entry::kFailed), 0U);
  world.data = true;
  world.pass(kSecondNs);
  EXPECT_EQ(world.count(Entry::kFailed), 0U);
  EXPECT_TRUE(world.said<SessionDone>().empty());
  world.release();
  world.pass(kLongNs);
  expect_first_failed(world, catalog::Failure::kUnwritable);
}

TEST(AFileThatFails, AndCannotBeRemovedEndsTheAttempt) {
  World world(destination());
  world.data = false;
  world.fail<DropFile>(ErrorCode::kStorage);
  world.start();
  world.post(extent_failed(EIO));
  world.pass(kSecondNs);
  EXPECT_TRUE(world.said<ObjectFailed>().empty());
  EXPECT_EQ(world.count(Entry::kFailed), 0U);
  EXPECT_NE(world.state(), ViewState::kSucceeded);
}

TEST(AFileThatFails, IsAskedForAgainOnEachStreamWhoseStatesDoNotCallItFailed) {
  World world(source());
  world.data = false;
  world.mute.insert("ObjectFailed");
  world.start();
  world.post(extent_failed(EIO));
  EXPECT_EQ(world.said<ObjectFailed>().size(), 1U);
  world.lose_stream();
  world.pass(2 * kSecondNs);
  EXPECT_EQ(world.said<ObjectFailed>().size(), 2U) << "neither answer nor state was heard";
  world.mute.clear();
  world.data = true;
  world.lose_board();
  world.attach();
  world.pass(kLongNs);
  EXPECT_EQ(world.said<ObjectFailed>().size(), 2U) << "the states have called it failed";
  expect_first_failed(world, catalog::Failure::kUnreadable);
}

TEST(AFileThatFails, StaysSoAfterARestartOfItsDestination) {
  World world(destination());
  world.data = false;
  world.start();
  world.post(extent_failed(EIO));
  world.tick();
  world.restart(false);
  world.data = true;
  world.start();
  world.pass(kLongNs);
  EXPECT_GE(world.said<ObjectFailed>().size(), 2U) << "the states say it again";
  expect_first_failed(world, catalog::Failure::kUnwritable);
}

TEST(AFileThatFails, WhereItsNameIsTakenMeanwhile) {
  World world(destination());
  world.fail<NameObject>(ErrorCode::kDestinationExists);
  world.start();
  world.pass(kLongNs);
  EXPECT_EQ(world.error(), ErrorCode::kPartial);
  EXPECT_EQ(world.count<DropFile>(), 1U);
  EXPECT_EQ(world.said<FileDone>().size(), world.scene.sizes.size() - 1);
}

TEST(AFileThatFails, AsItsSourceSays) {
  World world(destination());
  world.data = false;
  world.start();
  const ObjectFailed word{.object = ObjectId(0), .names = {{.failure = catalog::Failure::kVanished}}};
  world.hear(word);
  world.hear(word);
  EXPECT_EQ(world.said<ObjectFailed>().size(), 1U) << "once";
  world.data = true;
  world.pass(kLongNs);
  expect_first_failed(world, catalog::Failure::kVanished);
}

TEST(AFileThatFails, IsNoneOfAnotherSession) {
  for (const Scene& scene : {source(), destination()}) {
    const auto world = moving(scene);
    world->hear(ObjectFailed{.object = ObjectId(3)});
    EXPECT_EQ(world->error(), ErrorCode::kIncompatible) << "there is no such file";
    const auto only = moving(alone(scene));
    only->hear(ObjectFailed{.object = ObjectId(0)});
    EXPECT_EQ(only->error(), ErrorCode::kIncompatible) << "with the only file the session fails";
  }
}

TEST(AFileThatFails, CannotHaveArrivedBefore) {
  World world(source());
  world.hold<CloseFlow>();
  world.data = false;
  world.start();
  world.hear(FileDone{.object = ObjectId(2)});  // it is empty
  world.hear(ObjectFailed{.object = ObjectId(2)});
  world.release();
  world.pass(kSecondNs);
  EXPECT_EQ(world.error(), ErrorCode::kIntegrity);
}

}  // namespace
}  // namespace sluice::transfer::test
