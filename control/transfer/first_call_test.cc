// A peer that falls over before it has said hello may have heard of the transfer: its first words go with the
// end of the TLS handshake, a round trip before its verdict.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

// It may have agreed, and hold files: another session would find them in use.
TEST(FirstCall, APeerThatFallsOverBeforeItSaysHelloIsCalledAgain) {
  for (const Scene& scene : {source(), destination()}) {
    for (const bool taken : {true, false}) {
      SCOPED_TRACE(name_of(scene) + (taken ? ", it had taken the call" : ", it may have"));
      World world(scene);
      world.mute = silent("Hello");
      if (!taken) world.hold<Call>();
      world.start();
      if (taken) {
        world.lose_stream();
      } else {
        world.post(CallEnded{
            .leg = LegId(0), .status = Error{ErrorCode::kPeerUnreachable, "no verdict"}, .said = true});
      }
      EXPECT_EQ(world.phase(), TransferPhase::kResting);
      world.mute.clear();
      world.pass(kLongNs);
      EXPECT_EQ(world.state(), ViewState::kSucceeded);
      EXPECT_EQ(world.count<Call>(), 2U);
    }
  }
}

TEST(FirstCall, APeerThatMayHaveHeardOfATransferIsToldThatItHasEnded) {
  World world;
  world.mute = silent("Hello");
  world.start();
  world.reachable = false;
  world.lose_stream();
  world.post(Cancel{});
  EXPECT_TRUE(world.transfer().ended());
  EXPECT_TRUE(world.journal.record.legs.front().peer_unaware);
  world.mute.clear();
  world.reachable = true;
  world.pass(kLongNs);
  EXPECT_TRUE(world.over);
  EXPECT_TRUE(world.said<Hello>().back().ended);
}

TEST(FirstCall, WhoDoesNotTrustThisNodeIsToldOfNothing) {
  World world;
  world.hold<Call>();
  world.start();
  world.post(CallEnded{.leg = LegId(0), .status = Error{ErrorCode::kPeerUntrusted, "refused"}, .said = true});
  EXPECT_EQ(world.error(), ErrorCode::kPeerUntrusted);
  EXPECT_FALSE(world.journal.record.legs.front().peer_unaware);
  EXPECT_EQ(world.count<Call>(), 1U);
}

}  // namespace
}  // namespace sluice::transfer::test
