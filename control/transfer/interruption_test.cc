// Identity is not content: what a destination had before an interruption is read before it counts. And a
// pause lets go of files.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/transfer/scenes_for_test.h"
#include "control/transfer/transfer_fixture.h"

namespace sluice::transfer::test {
namespace {

// Has received and made durable a part of its files, and then stops receiving.
std::unique_ptr<World> with_a_part_of(const Scene& scene) {
  auto world = std::make_unique<World>(scene);
  for (int i = 0; i < 3; ++i) world->hold<FinishObject>();
  world->start();
  EXPECT_GE(world->count(Entry::kExtents), 1U) << "something is durable";
  world->data = true;
  return world;
}

// An object that has rows in the journal, and one of its extents.
std::pair<ObjectId, ExtentId> some_extent(const World& world) {
  for (ObjectId object; world.journal.blocks.contains(object); ++object) {
    if (!world.journal.blocks[object].empty()) return {object, ExtentId(0)};
  }
  ADD_FAILURE() << "nothing is durable";
  return {};
}

TEST(Interruption, AfterARestartAllThatIsClaimedIsReadBeforeAFileGetsItsName) {
  for (const bool adopt : {false, true}) {
    const auto world = with_a_part_of(destination());
    EXPECT_EQ(world->count<ReadBackObject>(), 0U);
    world->restart(adopt);
    world->start();
    world->pass(5 * kSecondNs);
    EXPECT_EQ(world->state(), ViewState::kSucceeded);
    EXPECT_GE(world->count<ReadBackObject>(), 1U);
  }
}

TEST(Interruption, WhatIsNotAsTheJournalSaysIsAskedForAgainAndReadBackOnceMore) {
  const auto world = with_a_part_of(destination());
  const auto extent = some_extent(*world);
  world->damaged.insert(extent);
  world->restart(false);
  world->start();
  world->pass(5 * kSecondNs);
  EXPECT_EQ(world->state(), ViewState::kSucceeded);
  EXPECT_GE(world->said<Need>().size(), 1U);
  EXPECT_TRUE(world->damaged.empty()) << "it came again";
  EXPECT_TRUE(world->journal.files[extent.first.value()].suspect);
}

TEST(Interruption, AnOperatorMayTrustTheJournal) {
  Scene scene = destination();
  scene.settings.trust_journal = true;
  const auto world = with_a_part_of(scene);
  world->restart(false);
  world->start();
  world->pass(5 * kSecondNs);
  EXPECT_EQ(world->state(), ViewState::kSucceeded);
  EXPECT_EQ(world->count<ReadBackObject>(), 0U);
}

TEST(Interruption, AFileThatHadItsNameAndIsGoneIsNoSuccess) {
  for (const Scene& scene : {destination(), called(destination())}) {
    World world(scene);
    world.hold<NameObject>(1);  // the first file has its name, the second not yet
    world.start();
    EXPECT_EQ(world.journal.files.front().state, catalog::FileState::kDone);
    world.names_gone = true;
    world.restart(false);
    world.start();
    world.pass(5 * kSecondNs);
    EXPECT_EQ(world.state(), ViewState::kFailed);
    EXPECT_EQ(world.error(), ErrorCode::kIntegrity);
    EXPECT_EQ(world.journal.record.error->code, ErrorCode::kIntegrity);
  }
}

TEST(Interruption, APauseLetsGoOfFilesAndReadsThemWhenItGoesOn) {
  for (const Scene& scene : every_scene()) {
    World world(scene);
    world.data = false;
    world.start();
    world.post(PauseAsked{});
    world.pass(kSecondNs);
    ASSERT_EQ(world.phase(), TransferPhase::kPaused) << name_of(scene);
    const auto* const release = std::get_if<ReleaseFiles>(&world.effects.back());
    EXPECT_EQ(world.count<ReleaseFiles>(), 1U) << name_of(scene);
    EXPECT_TRUE(release == nullptr || release->keep);
    world.data = true;
    const size_t reopened = world.count<RecoverFiles>() + world.count<ReopenSources>();
    world.post(ContinueAsked{});
    if (!scene.initiator) world.peer_calls();
    world.pass(5 * kSecondNs);
    EXPECT_EQ(world.state(), ViewState::kSucceeded) << name_of(scene);
    EXPECT_GT(world.count<RecoverFiles>() + world.count<ReopenSources>(), reopened) << name_of(scene);
  }
}

TEST(Interruption, WhatAnOperatorWantsVerifiedIsReadBackBeforeItsName) {
  for (Scene scene : {destination(), called(destination())}) {
    scene.verify = true;
    const auto ask = [](Message& message) {  // of the one who calls, the offer says so
      if (auto* const offer = std::get_if<TransferOffer>(&message)) offer->verify = true;
    };
    World world(scene);
    world.twist = ask;
    world.start();
    EXPECT_EQ(world.state(), ViewState::kSucceeded);
    EXPECT_GE(world.count<ReadBackObject>(), world.count<NameObject>());
    World damaged(alone(scene));
    damaged.twist = ask;
    damaged.on_effect = [&](const Effect& effect) {
      if (std::holds_alternative<FinishObject>(effect)) damaged.damaged.insert({ObjectId(0), ExtentId(0)});
    };
    damaged.start();
    EXPECT_EQ(damaged.error(), ErrorCode::kIntegrity);
  }
}

}  // namespace
}  // namespace sluice::transfer::test
