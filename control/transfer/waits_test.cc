// Every wait has a limit and a name: wherever a transfer comes to rest, it is due at some time, or waits for
// an answer of its own node, which comes whatever happens; and whoever looks is told for what.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

struct Seen {
  std::set<TransferPhase> phases;
  std::set<LegPhase> legs;
  std::set<HandshakePhase> handshakes;
};

void look(World& world, Seen& seen) {
  if (world.over) return;
  seen.phases.insert(world.phase());
  if (world.phase() == TransferPhase::kActive) seen.legs.insert(world.leg_phase());
  if (world.phase() == TransferPhase::kResting || world.phase() == TransferPhase::kPaused ||
      world.phase() == TransferPhase::kParting)
    seen.legs.insert(world.leg_phase());
  if (world.leg_phase() == LegPhase::kHandshake) seen.handshakes.insert(world.handshake_phase());
  const View view = world.transfer().view(world.now_ns);
  const std::string where = "phase " + std::to_string(static_cast<int>(world.phase())) + ", leg " +
                            std::to_string(static_cast<int>(world.leg_phase())) + ", handshake " +
                            std::to_string(static_cast<int>(world.handshake_phase()));
  const bool own = world.held() != 0;
  const bool operators = world.phase() == TransferPhase::kPaused;
  EXPECT_TRUE(own || operators || world.transfer().due_ns() != UINT64_MAX) << "no limit in " << where;
  const bool ended = world.transfer().ended();
  const bool waits =
      !ended && view.state != ViewState::kTransferring && world.phase() != TransferPhase::kLeaving;
  EXPECT_TRUE(!waits || !view.waiting_for.empty()) << "no name in " << where;
}

// Each answer of this node in turn is late.
void look_while_this_node_is_slow(const Scene& scene, const std::function<void(World&)>& course, Seen& seen) {
  World whole(scene);
  course(whole);
  for (size_t n = 0; n < whole.answers; ++n) {
    SCOPED_TRACE("answer " + std::to_string(n));
    World world(scene);
    world.hold_from(n);
    course(world);
    look(world, seen);
  }
}

void whole(World& world) { world.start(); }
void fails(World& world) {
  world.fail<NameObject>(ErrorCode::kIntegrity);
  world.fail<CheckSource>(ErrorCode::kIntegrity);
  world.start();
}
void restarts(World& world) {
  world.data = false;
  world.start();
  if (world.leg_phase() != LegPhase::kMoving) return;
  world.restart(true);
  world.start();
}
void pauses(World& world) {
  world.data = false;
  world.start();
  world.post(PauseAsked{});
}
void forgets(World& world) {
  world.mute = {"TransferOffer", "TransferReady"};
  world.start();
  world.lose_stream();
}

TEST(Waits, ForThisNodeAreNamed) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    Seen seen;
    for (const auto& course : {whole, fails, restarts, pauses, forgets})
      look_while_this_node_is_slow(scene, course, seen);
    for (const TransferPhase phase :
         {TransferPhase::kActive, TransferPhase::kEnding, TransferPhase::kReleasing})
      EXPECT_TRUE(seen.phases.contains(phase));
    for (const LegPhase phase : {LegPhase::kHandshake, LegPhase::kMoving, LegPhase::kClosing,
                                 LegPhase::kReleasing, LegPhase::kAdopting}) {
      EXPECT_TRUE(seen.legs.contains(phase)) << static_cast<int>(phase);
    }
  }
}

TEST(Waits, ForThePeerHaveALimitAndAName) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    Seen seen;
    for (const char* const word :
         {"Hello", "Specification", "SpecificationSet", "TransferRequest", "TransferOffer", "TransferReady",
          "ObjectState", "PartitionSent", "FileDigest", "FileDone", "SessionDone"}) {
      SCOPED_TRACE(word);
      World world(scene);
      world.mute = silent(word);
      world.start();
      for (int i = 0; i < 40; ++i) {
        look(world, seen);
        world.pass(kSecondNs);
      }
    }
    EXPECT_TRUE(seen.phases.contains(TransferPhase::kActive));
    EXPECT_GE(seen.handshakes.size(), 2U);
  }
}

TEST(Waits, BetweenAttemptsAndAfterTheEndHaveALimitAndAName) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    Seen seen;
    const auto rests = resting(scene);
    for (int i = 0; i < 100; ++i) {
      look(*rests, seen);
      rests->pass(kSecondNs);
    }
    rests->lose_board();
    look(*rests, seen);
    rests->post(PauseAsked{});
    look(*rests, seen);
    rests->post(Cancel{});
    look(*rests, seen);
    if (!scene.initiator) {
      World asks(scene);
      asks.data = false;
      asks.start();
      asks.lose_stream();
      asks.pass(scene.settings.stall_timeout_ns + kSecondNs);
      asks.mute = {"Hello"};
      asks.pass(Leg::kInquireNs);
      look(asks, seen);
      EXPECT_TRUE(seen.legs.contains(LegPhase::kInquiring));
    } else {
      EXPECT_TRUE(seen.phases.contains(TransferPhase::kParting));
    }
    EXPECT_TRUE(seen.phases.contains(TransferPhase::kResting) &&
                seen.phases.contains(TransferPhase::kPaused));
  }
}

TEST(Waits, ForTheOwnDataplaneAfterARestartHaveALimitAndAName) {
  for (Scene scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    scene.settings.resume_timeout_ns = 200 * kSecondNs;
    scene.settings.keep_ns = 200 * kSecondNs;
    Seen seen;
    const auto world = moving(scene);
    world->restart(true);
    world->post(Begin{});
    EXPECT_EQ(world->leg_phase(), LegPhase::kDataplane);
    for (int i = 0; i < 100; ++i) {
      look(*world, seen);
      EXPECT_EQ(world->transfer().view(world->now_ns).waiting_for, "sluice-dataplane of this node");
      world->pass(kSecondNs);
    }
    EXPECT_EQ(world->phase(), TransferPhase::kResting);
    EXPECT_EQ(world->count<DropClaim>(), 1U);
    world->reachable = false;
    world->pass(300 * kSecondNs);
    EXPECT_TRUE(scene.initiator ? world->phase() == TransferPhase::kPaused : world->transfer().ended());
  }
}

// What a former control left is claimed when the dataplane is heard of. Whoever wants it no more must not be
// given it then: nobody would close it.
TEST(Claim, ThatIsWantedNoMoreIsDropped) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    for (const Event& event : {Event(Cancel{}), Event(PauseAsked{})}) {
      const auto world = moving(scene);
      world->restart(true);
      world->reachable = false;
      world->post(Begin{});
      world->post(event);
      EXPECT_EQ(world->count<DropClaim>(), 1U);
      EXPECT_NE(world->leg_phase(), LegPhase::kClosing) << "there is nothing to wait for";
      world->attach();
      EXPECT_NE(world->leg_phase(), LegPhase::kAdopting);
      EXPECT_EQ(world->transfer().leg(LegId(0)).lanes().size(), 0U);
    }
  }
}

TEST(Claim, AfterAPauseOfARestartedOneNewFlowsAreOpened) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    const auto world = moving(scene);
    world->restart(true);
    world->post(Begin{});
    world->post(PauseAsked{});
    world->attach();
    world->data = true;
    world->post(ContinueAsked{});
    if (!scene.initiator) world->peer_calls();
    world->pass(kSecondNs);
    EXPECT_EQ(world->state(), ViewState::kSucceeded);
    EXPECT_EQ(world->count<OpenFlow>(), 2U);
  }
}

}  // namespace
}  // namespace sluice::transfer::test
