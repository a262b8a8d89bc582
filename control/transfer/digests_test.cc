// Digests that archives ask for, in a whole transfer: computed before a file gets its name, compared with a
// list, and told to the source.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/transfer/transfer_fixture.h"

namespace sluice::transfer::test {
namespace {

constexpr digests::Mask kMd5 = digests::bit_of(digests::Kind::kMd5);
constexpr digests::Mask kAdler32 = digests::bit_of(digests::Kind::kAdler32);
constexpr digests::Mask kCrc64 = digests::bit_of(digests::Kind::kCrc64);
const std::string kDigits(32, 'a');  // what the fixture finds

Scene digesting(Role role, digests::Mask mask = kMd5) {
  Scene scene{.role = role};
  scene.options.digests = mask;
  return scene;
}

TEST(Digests, ADestinationComputesThemBeforeAnyNameIsGiven) {
  World world(digesting(Role::kDestination));
  world.start();
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(world.count<ReadBackObject>(), 3U) << "each file once, and the empty one";
  const View view = world.transfer().view(world.now_ns);
  for (const FileView& file : view.files) {
    ASSERT_EQ(file.digests.size(), 1U) << file.source;
    EXPECT_EQ(file.digests[0], (digests::Value{.kind = digests::Kind::kMd5, .hex = kDigits}));
  }
  EXPECT_EQ(view.summary.digest_ns, 15U);
}

TEST(Digests, TheSessionsOwnKindIsKnownWithoutReading) {
  World world(digesting(Role::kDestination, kCrc64));
  world.start();
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(world.count<ReadBackObject>(), 0U);
  for (const FileView& file : world.transfer().view(world.now_ns).files) {
    ASSERT_EQ(file.digests.size(), 1U);
    EXPECT_EQ("crc64:" + file.digests[0].hex, "crc64:" + file.digest_destination);
  }
}

// The sums of their extents come with them.
TEST(Digests, ThoseThatAreJoinedNeedNoReading) {
  World world(digesting(Role::kDestination, kAdler32 | kCrc64));
  world.on_effect = [](const Effect& effect) {
    if (const auto* open = std::get_if<OpenObject>(&effect)) EXPECT_EQ(open->sums, board::kSumAdler32);
  };
  world.start();
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(world.count<ReadBackObject>(), 0U);
  const View view = world.transfer().view(world.now_ns);
  for (const FileView& file : view.files) {
    ASSERT_EQ(file.digests.size(), 2U) << file.source;
    EXPECT_EQ(file.digests[0].kind, digests::Kind::kAdler32);
    EXPECT_EQ(file.digests[1].kind, digests::Kind::kCrc64);
  }
  EXPECT_EQ(view.files.back().digests[0].hex, "00000001") << "the empty one";
  EXPECT_EQ(view.summary.digest_ns, 0U);
}

TEST(Digests, AFileWithoutSumsIsRead) {
  World world(digesting(Role::kDestination, kAdler32));
  world.dataplane_sums = 0;
  world.start();
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(world.count<ReadBackObject>(), 2U) << "but for the empty one";
  const View view = world.transfer().view(world.now_ns);
  EXPECT_EQ(view.files.front().digests[0].hex, "aaaaaaaa");
}

// They are read as a whole anyway: for another kind, or because an operator asks for that.
TEST(Digests, WhatIsReadAsAWholeHasNoSums) {
  for (const bool verify : {false, true}) {
    Scene scene = digesting(Role::kDestination, verify ? kAdler32 : kAdler32 | kMd5);
    scene.verify = scene.options.verify = verify;
    World world(scene);
    world.on_effect = [](const Effect& effect) {
      if (const auto* open = std::get_if<OpenObject>(&effect)) {
        EXPECT_EQ(open->sums, 0U);
      }
    };
    world.start();
    EXPECT_EQ(world.state(), ViewState::kSucceeded);
    EXPECT_EQ(world.count<ReadBackObject>(), 3U) << verify;
    for (const FileView& file : world.transfer().view(world.now_ns).files)
      EXPECT_EQ(file.digests.front().hex, "aaaaaaaa") << file.source;
  }
}

// What was there before is summed as it is read for its CRC.
TEST(Digests, AfterARestartNothingIsReadTwice) {
  Scene scene = digesting(Role::kDestination, kAdler32);
  scene.sizes = {5U << 20};
  World world(scene);
  world.hold<FinishObject>();  // it is there, and its journal says so
  world.start();
  world.restart(false);
  uint64_t read_bytes = 0;
  world.on_effect = [&](const Effect& effect) {
    const auto* read = std::get_if<ReadBackObject>(&effect);
    if (read == nullptr) return;
    EXPECT_EQ(read->sums, board::kSumAdler32);
    EXPECT_EQ(read->digests, 0U);
    read_bytes += read->range.length;
  };
  world.start();
  world.pass(5 * kSecondNs);
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(read_bytes, 5U << 20);
  EXPECT_EQ(world.transfer().view(world.now_ns).summary.digest_ns, 0U);
}

TEST(Digests, ASourceHearsThemAndNeedsThem) {
  World world(digesting(Role::kSource));
  world.start();
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  const View view = world.transfer().view(world.now_ns);
  for (const FileView& file : view.files) EXPECT_EQ(file.digests.size(), 1U) << file.source;
  EXPECT_EQ(view.summary.digest_ns, 15U);
}

TEST(Digests, APeerThatTellsNoneIsIncompatible) {
  World world(digesting(Role::kSource));
  world.twist = [](Message& message) {
    if (std::holds_alternative<NameDigests>(message)) message = Heartbeat{};
  };
  world.start();
  EXPECT_EQ(world.error(), ErrorCode::kIncompatible);
}

TEST(Digests, APeerWithoutTheAbilityIsRefusedBeforeAnythingMoves) {
  World world(digesting(Role::kSource));
  world.twist = [](Message& message) {
    if (auto* const set = std::get_if<SpecificationSet>(&message))
      set->abilities.set(Ability::kDigests, false);
  };
  world.start();
  EXPECT_EQ(world.error(), ErrorCode::kIncompatible);
}

// What nobody asked for ends the session.
TEST(Digests, UnaskedForTheyAreIncompatible) {
  World world({.role = Role::kSource});
  world.twist = [](Message& message) {
    if (const auto* const done = std::get_if<FileDone>(&message))
      message = NameDigests{.object = done->object, .last = true};
  };
  world.start();
  EXPECT_EQ(world.error(), ErrorCode::kIncompatible);
}

}  // namespace
}  // namespace sluice::transfer::test
