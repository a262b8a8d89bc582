// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/bottleneck.h"

#include <gtest/gtest.h>

#include <deque>

#include "tools/wire/random.h"

namespace sluice::emulator {
namespace {

constexpr uint64_t kStartNs = 1'000'000'000;

class BottleneckRate : public testing::TestWithParam<uint64_t> {};

TEST_P(BottleneckRate, IsExactForFramesOfAllLengths) {
  const uint64_t rate_bps = GetParam();
  Bottleneck link({.bits_per_s = rate_bps});
  Draws draws(1, 1, Stage::kDelay);
  uint64_t bits = 0;
  uint64_t leaves_ns = 0;
  for (int i = 0; i < 100'000; ++i) {
    const uint32_t bytes = 60 + draws.below(9000);
    bits += 8ULL * bytes;
    ASSERT_TRUE(link.enter(bytes, kStartNs, &leaves_ns));
    const double wanted_ns = static_cast<double>(bits) * 1e9 / static_cast<double>(rate_bps);
    ASSERT_NEAR(static_cast<double>(leaves_ns - kStartNs), wanted_ns, 1 + wanted_ns * 1e-12) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, BottleneckRate,
                         testing::Values(56'000, 999'999'937, 4'000'000'000, 100'000'000'000, 7'777'777'777));

TEST(Bottleneck, OverheadTakesTimeToo) {
  Bottleneck link({.bits_per_s = 1'000'000'000, .overhead_bytes = 24});
  uint64_t leaves_ns = 0;
  ASSERT_TRUE(link.enter(101, kStartNs, &leaves_ns));
  EXPECT_EQ(leaves_ns - kStartNs, 1000U);
}

TEST(Bottleneck, DoesNotDelayWhatComesSlower) {
  Bottleneck link({.bits_per_s = 1'000'000'000});
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t now_ns = kStartNs + i * 8001;
    uint64_t leaves_ns = 0;
    ASSERT_TRUE(link.enter(1000, now_ns, &leaves_ns));
    ASSERT_EQ(leaves_ns, now_ns + 8000);
  }
}

// Twice as much comes as fits: the link is never idle, half is dropped, and never more waits than allowed.
TEST(Bottleneck, DropsAtTheTailWhatTheQueueDoesNotHold) {
  constexpr uint64_t kQueueBytes = 100'000;
  Bottleneck link({.bits_per_s = 1'000'000'000, .queue_bytes = kQueueBytes});
  uint64_t taken = 0;
  uint64_t leaves_ns = 0;
  constexpr uint64_t kFrames = 100'000;
  for (uint64_t i = 0; i < kFrames; ++i) {
    const uint64_t now_ns = kStartNs + i * 4000;
    uint64_t this_leaves_ns = 0;
    if (!link.enter(1000, now_ns, &this_leaves_ns)) continue;
    ++taken;
    leaves_ns = this_leaves_ns;
    ASSERT_LE(link.queue_bytes(), kQueueBytes);
    ASSERT_LE(leaves_ns - now_ns, kQueueBytes * 8);
  }
  EXPECT_EQ(leaves_ns - kStartNs, taken * 8000);
  EXPECT_NEAR(static_cast<double>(taken), kFrames / 2.0 + 100, 2);
}

TEST(Bottleneck, WhatWaitsPassesAtTheRate) {
  Bottleneck link({.bits_per_s = 1'000'000'000});
  uint64_t leaves_ns = 0;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(link.enter(1000, kStartNs, &leaves_ns));
  EXPECT_EQ(link.waiting_bytes(kStartNs), 10'000U);
  EXPECT_EQ(link.waiting_bytes(kStartNs + 8000), 9000U);
  EXPECT_EQ(link.waiting_bytes(kStartNs + 80'000), 0U);
  EXPECT_EQ(link.waiting_bytes(kStartNs + 1'000'000), 0U);
  link.set({});
  EXPECT_EQ(link.waiting_bytes(kStartNs), 0U);
}

TEST(Bottleneck, TakesAFrameLongerThanTheQueueWhenIdle) {
  Bottleneck link({.bits_per_s = 1'000'000, .queue_bytes = 500});
  uint64_t leaves_ns = 0;
  EXPECT_TRUE(link.enter(9000, kStartNs, &leaves_ns));
  EXPECT_FALSE(link.enter(100, kStartNs, &leaves_ns));
}

TEST(Bottleneck, WithoutRateTakesNoTimeAndKeepsOrderWhenItIsTakenAway) {
  Bottleneck link({.bits_per_s = 1'000'000});
  uint64_t leaves_ns = 0;
  uint64_t next_ns = 0;
  ASSERT_TRUE(link.enter(1000, kStartNs, &leaves_ns));
  link.set({});
  ASSERT_TRUE(link.enter(1000, kStartNs + 1, &next_ns));
  EXPECT_EQ(next_ns, leaves_ns);
  ASSERT_TRUE(link.enter(1000, leaves_ns + 5, &next_ns));
  EXPECT_EQ(next_ns, leaves_ns + 5);
}

}  // namespace
}  // namespace sluice::emulator
