// The figures of a transfer, as people see them: over attempts, pauses and restarts.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

constexpr uint64_t kBrought = 3U << 20;

uint64_t bytes_done(World& world) { return world.transfer().view(world.now_ns).summary.bytes_done; }

// A source whose flow says that so much is at the destination, which has synced none of it yet.
std::unique_ptr<World> brought() {
  auto world = moving(source());
  world->flow().state.bytes_done = kBrought;
  world->pass(100 * kMillisecondNs);
  EXPECT_EQ(bytes_done(*world), kBrought);
  return world;
}

TEST(BytesDone, DoesNotGoDownInAPauseNorAfterIt) {
  const auto world = brought();
  world->post(PauseAsked{});
  EXPECT_EQ(world->phase(), TransferPhase::kPaused);
  EXPECT_EQ(bytes_done(*world), kBrought);
  world->peer.holds[ObjectId(0)] = {{.offset = 0, .length = kBrought}};
  world->post(ContinueAsked{});
  EXPECT_EQ(world->leg_phase(), LegPhase::kMoving);
  EXPECT_EQ(bytes_done(*world), kBrought);
  EXPECT_FALSE(world->logged("are lost"));
}

TEST(BytesDone, GoesDownWhereBytesWereLostAndTheLogSaysSo) {
  const auto world = brought();
  world->post(PauseAsked{});
  world->peer.holds[ObjectId(0)] = {{.offset = 0, .length = kBrought - kExtent}};
  world->post(ContinueAsked{});
  EXPECT_EQ(bytes_done(*world), kBrought - kExtent);
  EXPECT_TRUE(world->logged(std::to_string(kExtent) + " bytes that had been written are lost"));
}

TEST(BytesDone, CountsWhatTheFlowsBroughtOnceWhenTheStreamIsRenewed) {
  const auto world = brought();
  world->lose_stream();
  world->peer.holds[ObjectId(0)] = {{.offset = 0, .length = kBrought}};
  world->pass(kSecondNs);
  ASSERT_TRUE(world->leg().stream().up());
  EXPECT_EQ(bytes_done(*world), kBrought);
}

TEST(Figures, OfFormerLivesOfControlAreKept) {
  const auto world = brought();
  world->flow().state.chunks = 100;
  world->flow().state.bytes = kBrought;
  world->flow().state.retransmitted_chunks = 7;
  world->pass(2 * kSecondNs);
  world->post(PauseAsked{});
  world->restart(false);
  world->start();
  const Summary paused = world->transfer().view(world->now_ns).summary;
  EXPECT_EQ(paused.chunks, 100U);
  EXPECT_EQ(paused.retransmits, 7U);
  EXPECT_EQ(paused.bytes_sent, kBrought);
  EXPECT_EQ(paused.bytes_done, kBrought);
  EXPECT_EQ(paused.attempts, 1U);
  EXPECT_GE(paused.elapsed_ns, 2 * kSecondNs);
  EXPECT_GE(paused.data_elapsed_ns, 2 * kSecondNs) << "goodput is over the whole time";
}

TEST(Figures, OfFlowsThatGoOnAreCountedOnce) {
  const auto world = brought();
  world->flow().state.chunks = 100;
  for (int life = 0; life < 3; ++life) {
    world->restart(true);
    world->peer.holds[ObjectId(0)] = {{.offset = 0, .length = kBrought}};
    world->start();
    world->pass(kSecondNs);
    ASSERT_EQ(world->leg_phase(), LegPhase::kMoving);
    const Summary summary = world->transfer().view(world->now_ns).summary;
    EXPECT_EQ(summary.chunks, 100U);
    EXPECT_EQ(summary.attempts, 1U);
    EXPECT_EQ(summary.bytes_done, kBrought);
  }
}

TEST(Figures, TimeGoesOnWhileThereIsNoControl) {
  const auto world = moving(source());
  Saved saved = world->journal;
  ASSERT_FALSE(saved.record.legs.front().flows.empty());
  const int64_t later = saved.record.started_unix_ns + static_cast<int64_t>(100 * kSecondNs);
  const auto seconds = [&](int64_t unix_now_ns) {
    const Transfer next(world->scene.settings, saved, std::nullopt, 5, unix_now_ns);
    const Summary summary = next.view(5 + kSecondNs).summary;
    return std::pair(summary.elapsed_ns / kSecondNs, summary.data_elapsed_ns / kSecondNs);
  };
  EXPECT_EQ(seconds(later), std::pair(uint64_t{101}, uint64_t{101}));
  EXPECT_EQ(seconds(0), std::pair(uint64_t{1}, uint64_t{1})) << "the clock was set back";
}

}  // namespace
}  // namespace sluice::transfer::test
