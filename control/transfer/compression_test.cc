// What a transfer does about compression: its flows do what both nodes agreed upon, and nothing else.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/transfer/transfer_fixture.h"

namespace sluice::transfer::test {
namespace {

using options::Compress;

Scene with_compression(Role role, Compress compress) {
  Scene scene{.role = role};
  scene.options.compress = compress;
  return scene;
}

std::optional<board::Compress> compress_of_flows(const World& world) {
  std::optional<board::Compress> found;
  for (const Effect& effect : world.effects) {
    const auto* const flow = std::get_if<OpenFlow>(&effect);
    if (flow == nullptr) continue;
    EXPECT_TRUE(!found || *found == flow->config.choice.compress);
    found = flow->config.choice.compress;
  }
  return found;
}

TEST(CompressionOfATransfer, FlowsDoWhatTheOperatorAsksFor) {
  for (const Role role : {Role::kSource, Role::kDestination}) {
    for (const auto& [asked, done] : {std::pair{Compress::kOff, board::Compress::kOff},
                                      std::pair{Compress::kAuto, board::Compress::kWhereItPays},
                                      std::pair{Compress::kZstd, board::Compress::kAlways}}) {
      World world(with_compression(role, asked));
      world.start();
      EXPECT_EQ(compress_of_flows(world), done);
      EXPECT_EQ(world.transfer().view(world.now_ns).extras.compress, options::word_of(asked));
    }
  }
}

TEST(CompressionOfATransfer, WhoeverIsCalledDoesWhatTheCallerWants) {
  for (const Role role : {Role::kSource, Role::kDestination}) {
    Scene scene = with_compression(role, Compress::kOff);
    scene.initiator = false;
    World world(scene);
    world.twist = [](Message& message) {
      if (auto* const wishes = std::get_if<Specification>(&message)) {
        wishes->abilities.set(Ability::kZstd);
        wishes->abilities.set(Ability::kCompressDemanded);
      }
    };
    world.start();
    EXPECT_EQ(compress_of_flows(world), board::Compress::kAlways);
  }
}

TEST(CompressionOfATransfer, AnOlderPeerEndsWhatDemandsItAndNothingElse) {
  const auto make_old_peer = [](Message& message) {
    if (auto* set = std::get_if<SpecificationSet>(&message)) set->abilities = {};
  };
  for (const Role role : {Role::kSource, Role::kDestination}) {
    World demanded(with_compression(role, Compress::kZstd));
    demanded.twist = make_old_peer;
    demanded.start();
    EXPECT_EQ(demanded.error(), ErrorCode::kIncompatible);

    World free(with_compression(role, Compress::kAuto));
    free.twist = make_old_peer;
    free.start();
    EXPECT_EQ(free.state(), ViewState::kSucceeded);
    EXPECT_EQ(compress_of_flows(free), board::Compress::kOff);
  }
}

}  // namespace
}  // namespace sluice::transfer::test
