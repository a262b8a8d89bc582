// Digests that archives ask for, in a whole transfer: computed before a file gets its name, compared with a
// list, and told to the source.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/transfer/transfer_fixture.h"

namespace sluice::transfer::test {
namespace {

constexpr digests::Mask kMd5 = digests::bit_of(digests::Kind::kMd5);
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
