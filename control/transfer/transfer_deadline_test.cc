// A whole transfer with a deadline: judged, ended, late, over restarts.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

using deadline::Policy;

constexpr uint64_t kMbit = 1'000'000 / 8;

Scene with_deadline(Scene scene, double seconds, Policy policy = Policy::kRefuse) {
  scene.sizes = {1U << 30};
  scene.deadline_s = seconds;
  scene.deadline_policy = policy;
  scene.settings.stall_timeout_ns = 10'000 * kSecondNs;
  return scene;
}

// So many bytes a second.
void move(World& world, int seconds, uint64_t bytes) {
  for (int i = 0; i < seconds && world.leg_phase() == LegPhase::kMoving; ++i) {
    board::FlowState& state = world.flow().state;
    state.bytes_done += bytes;
    state.peer_bytes_received += bytes;
    state.bytes += bytes;
    world.hear(Heartbeat{});
    world.pass(kSecondNs);
  }
}

DeadlineView deadline_view(const World& world) {
  const auto deadline = const_cast<World&>(world).transfer().view(world.now_ns).deadline;
  EXPECT_TRUE(deadline);
  return deadline.value_or(DeadlineView{});
}

TEST(Deadline, ThatTheCapRulesOutEndsTheSessionBeforeAByteMoves) {
  for (const Scene& scene : {source(), destination()}) {
    World world(with_deadline(scene, 5));  // 8.6 Gbit within 5 s at 1 Gbit/s
    world.data = false;
    world.start();
    world.pass(kSecondNs);
    EXPECT_EQ(world.error(), ErrorCode::kDeadline);
    EXPECT_EQ(world.state(), ViewState::kFailed);
  }
}

TEST(Deadline, IsAdmittedOnceMeasuredAndTheJournalKnows) {
  const auto world = moving(with_deadline(source(), 500));
  EXPECT_EQ(deadline_view(*world).state, DeadlineState::kMeasuring);
  move(*world, 15, 40 * kMbit);
  EXPECT_EQ(deadline_view(*world).state, DeadlineState::kAdmitted);
  EXPECT_EQ(world->count(Entry::kJudged), 1U);
  EXPECT_EQ(world->journal.record.deadline_admission, DeadlineAdmission::kAdmitted);
  world->restart(true);
  world->start();
  world->pass(kSecondNs);
  EXPECT_EQ(deadline_view(*world).state, DeadlineState::kAdmitted);
  move(*world, 30, kMbit);
  EXPECT_EQ(world->leg_phase(), LegPhase::kMoving) << "what was admitted is not refused after a restart";
}

TEST(Deadline, ThatCannotBeKeptEndsTheSessionAtBothEnds) {
  const auto world = moving(with_deadline(source(), 500));
  move(*world, 15, 5 * kMbit);
  EXPECT_EQ(world->error(), ErrorCode::kDeadline);
  ASSERT_FALSE(world->said<Failure>().empty());
  EXPECT_EQ(world->said<Failure>().front().code, static_cast<uint32_t>(ErrorCode::kDeadline));
}

// What a destination's own operator holds back says nothing of the path.
TEST(Deadline, SecondsUnderALimitOfTheDestinationRefuseNobody) {
  const auto world = moving(with_deadline(destination(), 5000));
  world->post(LimitAsked{10 * 8 * kMbit});
  move(*world, 15, 10 * kMbit);
  ASSERT_EQ(world->leg_phase(), LegPhase::kMoving);
  const deadline::Path path{.peer = "there", .outgoing = false};
  const auto speed = world->scene.settings.outlook->speed(path, world->now_ns);
  ASSERT_TRUE(speed);
  EXPECT_TRUE(speed->at_least) << "the path may be faster";
}

TEST(Deadline, ThatIsOverEndsTheSessionOnlyIfThatWasAskedFor) {
  for (const Policy policy : {Policy::kRefuse, Policy::kWarn, Policy::kStop}) {
    const auto world = moving(with_deadline(source(), 100, policy));
    move(*world, 20, 100 * kMbit);
    move(*world, 90, kMbit);
    if (policy == Policy::kStop) {
      EXPECT_EQ(world->error(), ErrorCode::kDeadline);
    } else {
      EXPECT_EQ(deadline_view(*world).state, DeadlineState::kLate);
      EXPECT_FALSE(world->error());
    }
  }
}

TEST(Deadline, StopsASessionWhereverItIs) {
  {
    Scene scene = with_deadline(source(), 200, Policy::kStop);
    scene.settings.stall_timeout_ns = 30 * kSecondNs;
    const auto world = moving(scene);
    move(*world, 20, 100 * kMbit);
    world->reachable = false;
    world->lose_stream();
    world->pass(60 * kSecondNs);
    ASSERT_EQ(world->phase(), TransferPhase::kResting);
    world->pass(150 * kSecondNs);
    EXPECT_EQ(world->error(), ErrorCode::kDeadline) << "while its peer is away";
  }
  {
    const auto world = moving(with_deadline(source(), 100, Policy::kStop));
    world->post(PauseAsked{});
    world->pass(kSecondNs);
    ASSERT_EQ(world->phase(), TransferPhase::kPaused);
    world->pass(100 * kSecondNs);
    EXPECT_EQ(world->error(), ErrorCode::kDeadline) << "while it is paused";
  }
  {
    World world(with_deadline(source(), 100, Policy::kStop));
    world.place = 3;
    world.start();
    ASSERT_EQ(world.phase(), TransferPhase::kQueued);
    world.pass(101 * kSecondNs);
    EXPECT_EQ(world.error(), ErrorCode::kDeadline) << "while it waits for its turn";
  }
}

TEST(Deadline, ThatOnlyEndsIsNeverJudged) {
  const auto world = moving(with_deadline(source(), 100, Policy::kEnd));  // 8.6 Gbit at 1 Mbit/s
  move(*world, 90, kMbit);
  EXPECT_FALSE(world->error());
  EXPECT_EQ(world->count(Entry::kJudged), 0U);
  EXPECT_FALSE(deadline_view(*world).chance);
  move(*world, 20, kMbit);
  EXPECT_EQ(world->error(), ErrorCode::kDeadline);
}

TEST(Deadline, ASuccessThatCameTooLateIsOneWithAnError) {
  Scene scene = source();
  scene.deadline_s = 50;
  scene.deadline_policy = Policy::kWarn;
  const auto world = moving(scene);
  world->pass(55 * kSecondNs);
  world->data = true;
  world->lose_board();
  world->attach();
  world->pass(20 * kSecondNs);
  ASSERT_EQ(world->state(), ViewState::kSucceeded);
  const View shown = world->transfer().view(world->now_ns);
  ASSERT_TRUE(shown.error);
  EXPECT_EQ(shown.error->code, ErrorCode::kLate);
  EXPECT_EQ(shown.deadline->state, DeadlineState::kMissed);
  const View again = view_of(world->journal);
  ASSERT_TRUE(again.error) << "also as the journal has it";
  EXPECT_EQ(again.error->code, ErrorCode::kLate);
}

TEST(Deadline, ThatIsKeptIsASuccessLikeAnyOther) {
  Scene scene = source();
  scene.deadline_s = 1000;
  World world(scene);
  world.start();
  world.pass(20 * kSecondNs);
  ASSERT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_FALSE(world.transfer().view(world.now_ns).error);
  EXPECT_EQ(deadline_view(world).state, DeadlineState::kKept);
  EXPECT_EQ(view_of(world.journal).deadline->state, DeadlineState::kKept);
}

}  // namespace
}  // namespace sluice::transfer::test
