// What an operator says about the rate: limits while it runs, at either node, and a least rate.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

constexpr uint64_t kLimit = 5'000'000;

uint64_t rate_of(const World& world) {
  uint64_t sum = 0;
  for (const auto& [lane, rate_bps] : world.rates) sum += rate_bps;
  return sum;
}

TEST(Limit, OfASourceHoldsAtOnceAndUntilItIsTakenAway) {
  const auto world = moving(source());
  world->pass(kSecondNs);
  ASSERT_GT(rate_of(*world), kLimit);
  world->post(LimitAsked{kLimit});
  world->pass(10 * kMillisecondNs);
  EXPECT_LE(rate_of(*world), kLimit);
  EXPECT_GT(rate_of(*world), 0U);
  EXPECT_EQ(world->transfer().view(world->now_ns).rate.limit_bps, kLimit);
  world->post(LimitAsked{});
  EXPECT_EQ(world->count(Entry::kLimited), 2U);
  world->pass(10 * kMillisecondNs);
  EXPECT_GT(world->transfer().view(world->now_ns).rate.limit_bps, kLimit);
}

TEST(Limit, IsInTheAnswerToWhoeverAskedForIt) {
  for (const Scene& scene : {source(), destination()}) {
    const auto world = moving(scene);
    for (const uint64_t limit_bps : {kLimit, 2 * kLimit, kLimit / 2}) {
      world->post(LimitAsked{limit_bps});
      EXPECT_EQ(world->transfer().view(world->now_ns).rate.limit_bps, limit_bps);
    }
  }
}

// Whoever limits a session that has just begun is told what will hold.
TEST(Limit, IsToldBeforeAnythingIsAgreedUpon) {
  World world(source());
  world.hold<Call>();
  world.start();
  ASSERT_EQ(world.leg().agreement().rate_bps, 0U);
  const uint64_t asked_bps = world.transfer().view(world.now_ns).rate.limit_bps;
  EXPECT_GT(asked_bps, kLimit);
  world.post(LimitAsked{kLimit});
  EXPECT_EQ(world.transfer().view(world.now_ns).rate.limit_bps, kLimit);
  world.post(LimitAsked{});
  EXPECT_EQ(world.transfer().view(world.now_ns).rate.limit_bps, asked_bps);
}

TEST(Limit, NoOperatorRaisesTheCeilingOfAQuota) {
  for (const Scene& scene : {source(), destination()}) {
    const auto world = moving(scene);
    world->post(CeilingTold{kLimit});
    world->pass(10 * kMillisecondNs);
    EXPECT_EQ(world->transfer().view(world->now_ns).rate.limit_bps, kLimit);
    if (scene.role == Role::kSource) {
      EXPECT_LE(rate_of(*world), kLimit);
    } else {
      EXPECT_EQ(world->said<RateLimit>().back().rate_bps, kLimit) << "to its source";
    }
    world->post(LimitAsked{2 * kLimit});
    world->pass(10 * kMillisecondNs);
    EXPECT_EQ(world->transfer().view(world->now_ns).rate.limit_bps, kLimit);
    world->post(LimitAsked{kLimit / 2});
    world->pass(10 * kMillisecondNs);
    EXPECT_EQ(world->transfer().view(world->now_ns).rate.limit_bps, kLimit / 2);
    EXPECT_EQ(world->journal.record.limit_bps, kLimit / 2) << "the ceiling is the configuration's";
  }
}

TEST(Limit, SurvivesARestart) {
  for (const Scene& scene : {source(), destination()}) {
    const auto world = moving(scene);
    world->post(LimitAsked{kLimit});
    EXPECT_EQ(world->journal.record.limit_bps, kLimit);
    world->restart(true);
    world->pass(kSecondNs);
    EXPECT_EQ(world->transfer().view(world->now_ns).rate.limit_bps, kLimit);
    if (scene.role == Role::kSource) {
      EXPECT_LE(rate_of(*world), kLimit);
    }
  }
}

TEST(Limit, OfADestinationIsToldToItsSourceOnEachStream) {
  const auto world = moving(destination());
  EXPECT_TRUE(world->said<RateLimit>().empty()) << "a source need not know the word";
  world->post(LimitAsked{kLimit});
  world->pass(10 * kMillisecondNs);
  ASSERT_EQ(world->said<RateLimit>().size(), 1U);
  EXPECT_EQ(world->said<RateLimit>().back().rate_bps, kLimit);
  world->lose_stream();
  world->pass(kSecondNs);
  ASSERT_TRUE(world->leg().stream().up());
  EXPECT_EQ(world->said<RateLimit>().size(), 2U);
  world->post(LimitAsked{});
  world->pass(10 * kMillisecondNs);
  EXPECT_EQ(world->said<RateLimit>().back().rate_bps, 0U);
}

TEST(Limit, ASourceKeepsToTheLowerOfBoth) {
  const auto world = moving(source());
  world->hear(RateLimit{.rate_bps = 2 * kLimit});
  world->pass(10 * kMillisecondNs);
  EXPECT_LE(rate_of(*world), 2 * kLimit);
  world->post(LimitAsked{kLimit});
  world->pass(10 * kMillisecondNs);
  EXPECT_LE(rate_of(*world), kLimit);
  world->post(LimitAsked{});
  world->hear(RateLimit{});
  world->pass(10 * kMillisecondNs);
  EXPECT_GT(world->transfer().view(world->now_ns).rate.limit_bps, 2 * kLimit);
}

TEST(Limit, OfADestinationHoldsNoLongerThanItsStream) {
  const auto world = moving(source());
  world->hear(RateLimit{.rate_bps = kLimit});
  world->pass(10 * kMillisecondNs);
  EXPECT_LE(rate_of(*world), kLimit);
  world->lose_stream();
  world->pass(kSecondNs);
  ASSERT_TRUE(world->leg().stream().up());
  EXPECT_GT(rate_of(*world), kLimit);
}

TEST(Limit, IsNothingForASessionThatHasEnded) {
  const auto world = moving(source());
  world->post(Cancel{});
  EXPECT_FALSE(world->transfer().may_limit());
  world->post(LimitAsked{kLimit});
  EXPECT_EQ(world->count(Entry::kLimited), 0U);
}

TEST(LeastRate, ASessionThatIsSlowerForAMinuteFails) {
  Scene scene = source();
  scene.options.min_rate_bps = 1'000'000;
  scene.settings.stall_timeout_ns = 1000 * kSecondNs;
  const auto world = moving(scene);
  for (int i = 0; i < 59; ++i) {
    world->hear(Heartbeat{});
    world->pass(kSecondNs);
  }
  EXPECT_EQ(world->leg_phase(), LegPhase::kMoving);
  for (int i = 0; i < 5; ++i) {
    world->hear(Heartbeat{});
    world->pass(kSecondNs);
  }
  EXPECT_EQ(world->error(), ErrorCode::kTooSlow);
}

// So many seconds in which the peer is there, and no byte arrives.
void stand_still(World& world, int seconds) {
  for (int i = 0; i < seconds; ++i) {
    world.hear(Heartbeat{});
    world.pass(kSecondNs);
  }
}

Scene impatient() {
  Scene scene = source();
  scene.sizes = {1U << 30};
  scene.options.timeout_s = 20;
  return scene;
}

TEST(Timeout, ASessionInWhichNothingMovesForSoLongFails) {
  const auto world = moving(impatient());
  stand_still(*world, 15);
  EXPECT_EQ(world->leg_phase(), LegPhase::kMoving);
  stand_still(*world, 10);
  EXPECT_EQ(world->error(), ErrorCode::kStalled);
}

TEST(Timeout, EveryByteGivesItTimeAgain) {
  const auto world = moving(impatient());
  for (int i = 0; i < 5; ++i) {
    stand_still(*world, 15);
    world->flow().state.bytes_done += 1;
    world->hear(Heartbeat{});
  }
  EXPECT_EQ(world->leg_phase(), LegPhase::kMoving);
}

TEST(Timeout, AttemptsThatMoveNothingDoNot) {
  const auto world = moving(impatient());
  for (int i = 0; i < 5; ++i) {
    world->lose_stream();
    world->pass(5 * kSecondNs);
  }
  EXPECT_EQ(world->error(), ErrorCode::kStalled);
}

TEST(Timeout, APauseDoesNotCount) {
  const auto world = moving(impatient());
  world->post(PauseAsked{});
  world->pass(100 * kSecondNs);
  EXPECT_FALSE(world->error());
}

TEST(LeastRate, OneThatIsFastEnoughGoesOn) {
  Scene scene = source();
  scene.sizes = {1U << 30};
  scene.options.min_rate_bps = 1'000'000;
  const auto world = moving(scene);
  for (int i = 0; i < 200; ++i) {
    world->flow().state.bytes_done += 200'000;
    world->hear(Heartbeat{});
    world->pass(kSecondNs);
  }
  EXPECT_EQ(world->leg_phase(), LegPhase::kMoving);
}

}  // namespace
}  // namespace sluice::transfer::test
