// What holds a session is judged at its source, told to its destination, and known after its end.
// SPDX-License-Identifier: Apache-2.0
#include "control/leg/bottleneck.h"

#include <gtest/gtest.h>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

using verdict::Cause;

const verdict::Verdict kWord{.cause = Cause::kSourceDisk, .share = 0.75, .evidence = {"it reads"}};

// For so long the flow says that it waits for reads.
void wait_for_reads(World& world, uint64_t ns) {
  for (uint64_t i = 0; i < ns / (100 * kMillisecondNs); ++i) {
    world.flow().state.blocked_source_ns += 80 * kMillisecondNs;
    world.pass(100 * kMillisecondNs);
  }
}
View view(World& world) { return world.transfer().view(world.now_ns); }

TEST(Bottleneck, ASourceJudgesWhatItsFlowsWaitFor) {
  const auto world = moving(source());
  wait_for_reads(*world, 3 * kSecondNs);
  EXPECT_EQ(view(*world).bottleneck.now.cause, Cause::kSourceDisk);
  ASSERT_FALSE(view(*world).bottleneck.causes.empty());
  EXPECT_EQ(view(*world).bottleneck.causes.front().cause, Cause::kSourceDisk);
  EXPECT_GE(view(*world).summary.history.size(), 3U);
}

TEST(Bottleneck, ASourceTellsItWithItsHeartbeats) {
  const auto world = moving(source());
  wait_for_reads(*world, 3 * kSecondNs);
  const std::vector<Heartbeat> words = world->said<Heartbeat>();
  ASSERT_FALSE(words.empty());
  ASSERT_TRUE(words.back().bottleneck);
  EXPECT_EQ(words.back().bottleneck->cause, Cause::kSourceDisk);
  EXPECT_FALSE(words.back().whole);
  EXPECT_FALSE(words.back().load) << "that is for a destination to tell";
}

TEST(Bottleneck, ADestinationTellsItsLoadAndNoVerdict) {
  const auto world = moving(destination());
  world->pass(3 * kSecondNs);
  const std::vector<Heartbeat> words = world->said<Heartbeat>();
  ASSERT_FALSE(words.empty());
  EXPECT_TRUE(words.back().load);
  EXPECT_FALSE(words.back().bottleneck);
}

TEST(Bottleneck, ADestinationShowsWhatItsSourceSaysAsLongAsItSaysSo) {
  const auto world = moving(destination());
  world->hear(Heartbeat{.bottleneck = kWord});
  world->pass(kSecondNs);
  EXPECT_EQ(view(*world).bottleneck.now.cause, Cause::kSourceDisk);
  EXPECT_EQ(view(*world).bottleneck.now.evidence, kWord.evidence);
  for (int i = 0; i < 5; ++i) {
    world->hear(Heartbeat{});
    world->pass(kSecondNs);
  }
  EXPECT_EQ(view(*world).bottleneck.now.cause, Cause::kNone) << "it has said nothing of it for long";
}

TEST(Bottleneck, TheSourcesLastWordIsOfAllTheTime) {
  const auto world = moving(destination());
  world->hear(Heartbeat{.bottleneck = kWord, .whole = true});
  ASSERT_EQ(view(*world).bottleneck.causes.size(), 2U);
  EXPECT_EQ(view(*world).bottleneck.causes.front().cause, Cause::kSourceDisk);
  EXPECT_NEAR(view(*world).bottleneck.causes.front().share, 0.75, 1e-9);
}

TEST(Bottleneck, ASourceBelievesNoVerdictOfItsPeer) {
  const auto world = moving(source());
  wait_for_reads(*world, 2 * kSecondNs);
  world->hear(Heartbeat{.bottleneck = verdict::Verdict{.cause = Cause::kLimit, .share = 1}, .whole = true});
  wait_for_reads(*world, kSecondNs);
  EXPECT_EQ(view(*world).bottleneck.now.cause, Cause::kSourceDisk);
  EXPECT_EQ(view(*world).bottleneck.causes.front().cause, Cause::kSourceDisk);
}

TEST(Bottleneck, APeerThatSaysNothingOfItIsAsGood) {
  for (const Scene& scene : {source(), destination()}) {
    const auto world = moving(scene);
    for (int i = 0; i < 3; ++i) {
      world->hear(Heartbeat{});
      world->pass(kSecondNs);
    }
    EXPECT_EQ(world->leg_phase(), LegPhase::kMoving) << name_of(scene);
  }
}

TEST(Bottleneck, SurvivesARestart) {
  const auto world = moving(source());
  wait_for_reads(*world, 3 * kSecondNs);
  world->post(LimitAsked{});  // what writes a record
  world->restart(true);
  ASSERT_FALSE(view(*world).bottleneck.causes.empty());
  EXPECT_EQ(view(*world).bottleneck.causes.front().cause, Cause::kSourceDisk);
  EXPECT_FALSE(view(*world).summary.history.empty());
}

TEST(Bottleneck, WhatAPeerSaysIsBounded) {
  Message message = Heartbeat{
      .bottleneck = verdict::Verdict{.cause = Cause::kLimit,
                                     .share = 1,
                                     .evidence = std::vector<std::string>(1000, std::string(5000, '\x1b'))}};
  ASSERT_TRUE(admit(&message));
  const auto& evidence = std::get<Heartbeat>(message).bottleneck->evidence;
  ASSERT_EQ(evidence.size(), verdict::kEvidenceMax);
  for (const std::string& line : evidence) {
    EXPECT_LE(line.size(), kTextBytesMax);
    EXPECT_EQ(line.find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace sluice::transfer::test
