// A session of which nothing arrives: what it waits for is named, and it ends.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

Scene unheard(Scene scene) {
  scene.sizes = {1U << 30};
  scene.settings.connect_timeout_ns = 20 * kSecondNs;
  scene.settings.stall_timeout_ns = 10'000 * kSecondNs;
  return scene;
}

void pass(World& world, int seconds) {
  for (int i = 0; i < seconds && world.leg_phase() == LegPhase::kMoving; ++i) {
    world.hear(Heartbeat{});
    world.pass(kSecondNs);
  }
}

TEST(Unheard, ASourceOfWhichNothingArrivesSaysSoAndEnds) {
  for (const Scene& scene : every_scene()) {
    if (scene.role != Role::kSource) continue;
    SCOPED_TRACE(name_of(scene));
    const auto world = moving(unheard(scene));
    world->flow().state.chunks = 40;
    world->flow().state.statuses = 3;
    pass(*world, 10);
    const View view = world->transfer().view(world->now_ns);
    EXPECT_NE(view.waiting_for.find("no data arrives at"), std::string::npos) << view.waiting_for;
    EXPECT_EQ(view.bottleneck.now.cause, verdict::Cause::kNetwork);
    ASSERT_FALSE(view.bottleneck.now.evidence.empty());
    EXPECT_NE(view.bottleneck.now.evidence[0].find("(sent 40 datagrams)"), std::string::npos);
    EXPECT_EQ(world->leg_phase(), LegPhase::kMoving) << "it is given its time";
    pass(*world, 20);
    EXPECT_EQ(world->error(), ErrorCode::kPeerUnreachable);
    EXPECT_NE(world->transfer().error()->message.find("no data has reached node"), std::string::npos);
    ASSERT_FALSE(world->said<Failure>().empty()) << "the peer is told";
  }
}

TEST(Unheard, OneDatagramThatArrivedIsEnough) {
  const auto world = moving(unheard(source()));
  world->flow().state.chunks = 40;
  world->flow().state.peer_datagrams = 1;
  pass(*world, 5);
  world->flow().state.peer_datagrams = 0;  // of other flows
  pass(*world, 60);
  EXPECT_EQ(world->leg_phase(), LegPhase::kMoving)
      << "from then on a path that is gone for a while is waited for";
}

TEST(Unheard, ASourceThatHasNothingToSendYetIsNotBlamed) {
  const auto world = moving(unheard(source()));
  pass(*world, 60);
  EXPECT_EQ(world->leg_phase(), LegPhase::kMoving);
  EXPECT_EQ(world->transfer().view(world->now_ns).waiting_for.find("no data arrives"), std::string::npos);
}

TEST(Unheard, ADestinationNamesItAndLeavesTheEndToItsSource) {
  const auto world = moving(unheard(destination()));
  world->hear(Heartbeat{.bottleneck = verdict::Verdict{.cause = verdict::Cause::kNetwork, .share = 1}});
  for (int i = 0; i < 60 && world->leg_phase() == LegPhase::kMoving; ++i) {
    world->hear(Heartbeat{.bottleneck = verdict::Verdict{.cause = verdict::Cause::kNetwork, .share = 1}});
    world->pass(kSecondNs);
  }
  EXPECT_EQ(world->leg_phase(), LegPhase::kMoving);
  const std::string wait = world->transfer().view(world->now_ns).waiting_for;
  EXPECT_NE(wait.find("nothing has arrived at this node's UDP port"), std::string::npos) << wait;
}

}  // namespace
}  // namespace sluice::transfer::test
