// A whole transfer of a tree: packs, a file, the last pack.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

constexpr ObjectId kPack(0);
constexpr ObjectId kFile(1);
constexpr ObjectId kLast(2);

Scene tree(Scene scene) {
  scene.sizes = {5U << 20, kExtent + 100, 100};
  scene.packs = true;
  return scene;
}

std::vector<ObjectId> finished(const World& world) {
  std::vector<ObjectId> objects;
  for (const Effect& effect : world.effects) {
    if (const auto* finish = std::get_if<FinishObject>(&effect)) objects.push_back(finish->object);
  }
  return objects;
}

size_t times_finished(const World& world, ObjectId object) {
  const std::vector<ObjectId> objects = finished(world);
  return static_cast<size_t>(std::count(objects.begin(), objects.end(), object));
}

TEST(Tree, ATreeSucceedsInEitherRoleCallingOrCalled) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    World world(tree(scene));
    world.start();
    EXPECT_TRUE(world.over);
    EXPECT_EQ(world.state(), ViewState::kSucceeded);
    EXPECT_EQ(world.error(), std::nullopt);
    const NamesView names = world.transfer().view(world.now_ns).names;
    EXPECT_EQ(names.total, 3U + 1 + 3);
    EXPECT_EQ(names.done, names.total);
  }
}

TEST(Tree, TheLastIsUnpackedWhenAllElseIsDone) {
  for (const size_t late : {0, 1}) {
    World world(tree(destination()));
    world.hold<FinishObject>(late);
    world.start();
    EXPECT_EQ(world.transfer().view(world.now_ns).files.back().bytes_done, 100U);
    EXPECT_EQ(finished(world).size(), 2U);
    EXPECT_EQ(times_finished(world, kLast), 0U);
    world.release();
    ASSERT_EQ(finished(world).size(), 3U);
    EXPECT_EQ(finished(world).back(), kLast);
    EXPECT_EQ(world.state(), ViewState::kSucceeded);
  }
}

TEST(Tree, TheLastWaitsUntilTheJournalKnowsTheOthers) {
  World world(tree(destination()));
  world.hold(Entry::kNamed, 1);
  world.start();
  EXPECT_EQ(finished(world).size(), 2U);
  world.release();
  EXPECT_EQ(finished(world).size(), 3U);
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
}

TEST(Tree, TheLastWaitsAgainInTheNextAttempt) {
  World world(tree(destination()));
  world.hold<FinishObject>();
  world.start();
  ASSERT_EQ(finished(world).size(), 2U);
  world.lose_stream();
  world.reachable = false;
  world.pass(world.scene.settings.stall_timeout_ns + kSecondNs);
  world.release();
  world.reachable = true;
  world.pass(60 * kSecondNs);
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(finished(world).back(), kLast);
  EXPECT_EQ(times_finished(world, kLast), 1U);
}

TEST(Tree, TheLastThatFailsWhileItWaitsIsNotUnpacked) {
  World world(tree(destination()));
  world.hold<FinishObject>();
  world.start();
  ASSERT_EQ(finished(world).size(), 2U);
  world.hear(ObjectFailed{.object = kLast});
  world.pass(kSecondNs);
  EXPECT_EQ(world.count(Entry::kFailed), 1U);
  world.release();
  world.pass(60 * kSecondNs);
  EXPECT_EQ(times_finished(world, kLast), 0U);
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(world.error(), ErrorCode::kPartial);
}

TEST(Tree, AfterARestartOneThatIsNotDoneBeginsAnew) {
  World world(tree(destination()));
  world.hold<FinishObject>();  // of the file: the pack is done
  world.start();
  world.restart(false, Recovered::kAway);
  world.start();
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(finished(world).back(), kLast);
  EXPECT_EQ(times_finished(world, kPack), 1U) << "it was done";
  EXPECT_EQ(world.count<RecreateFile>(), 1U) << "the last: its memory is gone";
}

// ---- what did not arrive -----------------------------------------------------------------------

const catalog::Shortfall kMissing{.failed = 2,
                                  .left_out = 1,
                                  .names = {{.path = "t/a", .failure = catalog::Failure::kExists},
                                            {.path = "t/b", .failure = catalog::Failure::kForbidden},
                                            {.path = "t/p", .failure = catalog::Failure::kSpecial}}};

void expect_partial(const View& view) {
  EXPECT_EQ(view.state, ViewState::kSucceeded);
  ASSERT_TRUE(view.error);
  EXPECT_EQ(view.error->code, ErrorCode::kPartial);
  EXPECT_EQ(view.names.failed, 2U);
  EXPECT_EQ(view.names.left_out, 1U);
  EXPECT_EQ(view.names.done, 7U - 3);
  ASSERT_EQ(view.names.failures.size(), 3U);
  EXPECT_EQ(view.names.failures[1].path, "t/b");
  EXPECT_EQ(view.names.failures[1].failure, catalog::Failure::kForbidden);
}

TEST(Tree, WhatDidNotArriveIsToldAtBothEndsAndKept) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    World world(tree(scene));
    world.peer.missing = kMissing;
    world.start();
    ASSERT_TRUE(world.over);
    expect_partial(world.transfer().view(world.now_ns));
    expect_partial(view_of(world.journal));
    for (const FileDone& done : world.said<FileDone>())
      EXPECT_EQ(done.missing.names.size(), done.object == kPack ? 3U : 0U);
  }
}

TEST(Tree, WhatIsLeftOutIsNoFailure) {
  World world(tree(destination()));
  world.peer.missing = {.failed = 0, .left_out = 1, .names = {kMissing.names[2]}};
  world.start();
  EXPECT_EQ(world.error(), std::nullopt);
  EXPECT_EQ(world.transfer().view(world.now_ns).names.left_out, 1U);
}

TEST(Tree, WhatDidNotArriveIsToldAgainToWhoMayNotHaveHeardIt) {
  World world(tree(destination()));
  world.peer.missing = kMissing;
  world.hold<FinishObject>();  // of the file
  world.start();
  ASSERT_EQ(world.said<FileDone>().size(), 1U);
  world.lose_stream();
  world.pass(10 * kSecondNs);
  EXPECT_FALSE(world.over);
  const std::vector<FileDone> told = world.said<FileDone>();
  ASSERT_GE(told.size(), 2U);
  EXPECT_EQ(told[1].object, kPack);
  EXPECT_EQ(told[1].missing.failed, 2U);
  world.release();
  world.pass(10 * kSecondNs);
  EXPECT_TRUE(world.over);
  EXPECT_EQ(world.error(), ErrorCode::kPartial);
}

TEST(Tree, WhatDidNotArriveIsToldToWhoMissedTheEnd) {
  World world(tree(destination()));
  world.peer.missing = kMissing;
  world.hold<FinishObject>();
  world.start();
  world.lose_stream();
  world.release();
  world.pass(10 * kSecondNs);
  EXPECT_TRUE(world.over);
  ASSERT_EQ(world.said<FileDone>().size(), 2U) << "once while it went on";
  EXPECT_EQ(world.said<FileDone>()[1].missing.failed, 2U);
}

TEST(Tree, ASourceThatHeardOnlyThatItIsDoneHearsTheRestAfterwards) {
  World world(tree(source()));
  world.peer.missing = kMissing;
  world.mute = {"FileDone", "SessionDone"};
  world.start();
  EXPECT_FALSE(world.over);
  world.mute.clear();
  world.lose_stream();
  world.pass(60 * kSecondNs);
  ASSERT_TRUE(world.over);
  expect_partial(world.transfer().view(world.now_ns));
}

// ---- packs that are not what was sent ----------------------------------------------------------

FlowEvent sent_with(uint64_t crc) {
  return {.leg = LegId(0),
          .event = {.kind = board::EventKind::kExtentSent, .object = 0, .length = kExtent, .digest = crc}};
}

// All of its names, and nothing else.
void expect_pack_failed(World& world, size_t named) {
  EXPECT_TRUE(world.over);
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(world.error(), ErrorCode::kPartial);
  const NamesView names = world.transfer().view(world.now_ns).names;
  EXPECT_EQ(names.failed, kMembers);
  EXPECT_EQ(names.done, names.total - kMembers);
  EXPECT_EQ(names.failures.size(), named);
}

const std::vector<catalog::FailedName> kChanged{{.path = "t/a", .failure = catalog::Failure::kChanged},
                                                {.path = "t/b", .failure = catalog::Failure::kInPack}};

TEST(Tree, APackThatIsReadAsAnotherIsWithdrawnWithItsNames) {
  World world(tree(source()));
  world.changed_names = kChanged;
  world.data = false;
  world.start();
  world.post(sent_with(1));
  EXPECT_TRUE(world.said<ObjectFailed>().empty());
  world.post(sent_with(2));
  ASSERT_EQ(world.said<ObjectFailed>().size(), 1U);
  EXPECT_EQ(world.said<ObjectFailed>()[0].names.size(), 2U);
  world.data = true;
  world.lose_board();
  world.attach();
  world.pass(kLongNs);
  expect_pack_failed(world, 2);
  EXPECT_EQ(world.transfer().view(world.now_ns).names.failures[0].path, "t/a");
}

TEST(Tree, APackWithAnotherDigestFailsAndNothingOfItIsUnpacked) {
  World world(tree(destination()));
  world.twist = [](Message& message) {
    if (auto* const digest = std::get_if<FileDigest>(&message); digest != nullptr && digest->object == kPack)
      digest->digest ^= 1;
  };
  world.start();
  world.pass(kLongNs);
  expect_pack_failed(world, 0);
  EXPECT_EQ(times_finished(world, kPack), 0U);
  EXPECT_EQ(times_finished(world, kLast), 1U);
  ASSERT_EQ(world.said<ObjectFailed>().size(), 1U);
  EXPECT_TRUE(world.said<ObjectFailed>()[0].names.empty());
}

TEST(Tree, WhatAFailedPackHeldItsSourceKnows) {
  World world(tree(source()));
  world.changed_names = kChanged;
  world.data = false;
  world.start();
  world.peer.fail(kPack);
  world.hear(ObjectFailed{.object = kPack});
  world.data = true;
  world.lose_board();
  world.attach();
  world.pass(kLongNs);
  expect_pack_failed(world, 2);
}

// They stand there, and nobody can say which of them.
TEST(Tree, APackOfWhichNamesMayHaveBeenGivenIsNoFailure) {
  World world(tree(destination()));
  world.hold<NameObject>(1);  // the file has its name first
  world.start();
  world.restart(false, Recovered::kAway);
  world.data = false;
  world.start();
  world.pass(kSecondNs);
  world.hear(ObjectFailed{.object = kPack});
  world.pass(kSecondNs);
  EXPECT_EQ(world.error(), ErrorCode::kIntegrity);
  EXPECT_EQ(world.count<DropFile>(), 0U);
}

}  // namespace
}  // namespace sluice::transfer::test
