// What is learnt of a path and a disk: the window that a sender wants, lateness, the speed of a disk.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/base/time_for_test.h"
#include "dataplane/core/credit_wish.h"
#include "dataplane/core/drain_rate.h"
#include "dataplane/core/lateness.h"
#include "dataplane/core/recent_loss.h"
#include "dataplane/core/repetition.h"

namespace sluice {
namespace {

constexpr uint32_t kMiB = 1U << 20;

// After a while on a path that loses `loss` of what is sent.
uint32_t wish(uint64_t rate_bps, uint64_t rtt_ns, double loss, uint32_t extent_bytes = kMiB) {
  CreditWish wish;
  CreditWish::Path path{
      .rate_bps = rate_bps, .rtt_ns = rtt_ns, .chunk_bytes = 8192, .extent_bytes = extent_bytes};
  for (uint64_t now_ns = 1000 * kMs; now_ns < 3000 * kMs; now_ns += kMs) {
    path.sent += 100;
    path.lost = static_cast<uint64_t>(static_cast<double>(path.sent) * loss);
    wish.update(path, now_ns);
  }
  return wish.extents();
}

TEST(CreditWish, CoversThePathAndItsGrowth) {
  EXPECT_EQ(wish(10'000'000'000, 0, 0), 0U) << "no round trip is known";
  const uint32_t on_the_path = 10'000'000'000 / 8 / 5 / kMiB;  // 200 ms
  EXPECT_GE(wish(10'000'000'000, 200 * kMs, 0), 2 * on_the_path);
  EXPECT_LE(wish(10'000'000'000, 200 * kMs, 0), 3 * on_the_path);
  EXPECT_LE(wish(10'000'000'000, kMs / 10, 0), 24U) << "a short path needs next to nothing";
  EXPECT_GT(wish(100'000'000'000, 200 * kMs, 0, 65536), 60'000U);
  EXPECT_EQ(wish(UINT64_MAX, 1000 * kMs, 0.5), CreditWish::kMost);
}

// 1 Gbit/s, 100 ms, 1 %: 12 extents are on the path, and two in three have a hole.
TEST(CreditWish, GrowsWithLossAsExtentsStayOpenForTheirRepair) {
  const uint32_t clean = wish(1'000'000'000, 100 * kMs, 0);
  const uint32_t lossy = wish(1'000'000'000, 100 * kMs, 0.01);
  EXPECT_GE(clean, 24U);
  EXPECT_GE(lossy, clean + clean / 3);
  EXPECT_GE(wish(1'000'000'000, 100 * kMs, 0.10), lossy + clean / 3);
  EXPECT_LT(wish(1'000'000'000, 100 * kMs, 0.65), 20 * clean);
}

TEST(Lateness, IsTheDelayBeyondTheShortestOfWhatWasOvertaken) {
  Lateness lateness;
  const int64_t skew_ns = -7'000'000'000'000;  // clocks of two machines
  uint64_t now_ns = 1000 * kMs;
  lateness.arrived(skew_ns + 10'000'000, false, now_ns);
  lateness.arrived(skew_ns + 90'000'000, false, now_ns += kMs);
  EXPECT_EQ(lateness.latest_ns(), 0U) << "a longer way is no reordering";
  lateness.arrived(skew_ns + 150'000'000, true, now_ns += kMs);
  EXPECT_EQ(lateness.latest_ns(), 140 * kMs);
  lateness.arrived(skew_ns + 20'000'000, true, now_ns += kMs);
  EXPECT_EQ(lateness.latest_ns(), 140 * kMs);
  for (int i = 0; i < 2; ++i) lateness.arrived(skew_ns + 10'000'000, false, now_ns += Lateness::kSpanNs);
  EXPECT_EQ(lateness.latest_ns(), 0U) << "it was long ago";
}

TEST(Lateness, AFalseSendTimeIsForgotten) {
  Lateness lateness;
  uint64_t now_ns = 1000 * kMs;
  lateness.arrived(5'000'000, false, now_ns);
  lateness.arrived(INT64_MIN, false, now_ns);
  lateness.arrived(INT64_MAX, true, now_ns);
  lateness.arrived(15'000'000, true, now_ns);
  EXPECT_LE(lateness.latest_ns(), Lateness::kMostNs);
  for (int i = 0; i < 3; ++i) {
    lateness.arrived(5'000'000, false, now_ns += Lateness::kSpanNs);
    lateness.arrived(15'000'000, true, now_ns);
  }
  EXPECT_EQ(lateness.latest_ns(), 10 * kMs);
}

// A disk of so many bytes a millisecond, and 100 buffers of 100 kB that fill up at another speed.
struct Node {
  void run(int ms, double fills, double drains) {
    for (int i = 0; i < ms; ++i) {
      now_ns += kMs;
      queued = std::min(queued + fills, 100 * kBuffer);
      const double written = std::min(queued, drains);
      queued -= written;
      drain.written(static_cast<uint64_t>(written));
      const auto writing = static_cast<uint32_t>(queued / kBuffer);
      drain.sample({.all = 100, .free = 100 - writing, .writing = writing}, now_ns);
    }
  }
  static constexpr double kBuffer = 100'000;
  DrainRate drain;
  double queued = 0;
  uint64_t now_ns = 1000 * kMs;
};

TEST(DrainRate, GivesNoAdviceWhileTheDiskKeepsUp) {
  Node node;
  node.run(1000, 100'000, 500'000);
  EXPECT_EQ(node.drain.advice_bps(), 0U);
}

TEST(DrainRate, AdvisesTheDisksSpeedAndLessAsBuffersFill) {
  Node node;
  node.run(1000, 100'000, 20'000);  // 800 and 160 Mbit/s
  EXPECT_NEAR(static_cast<double>(node.drain.advice_bps()), 80e6, 8e6) << "all buffers are full: half";
  // Whoever follows the advice ends near the disk's speed, with about half of the buffers used.
  for (int i = 0; i < 5000; ++i) node.run(1, static_cast<double>(node.drain.advice_bps()) / 8e3, 20'000);
  EXPECT_NEAR(static_cast<double>(node.drain.advice_bps()), 160e6, 16e6);
  EXPECT_GT(node.queued, 20 * Node::kBuffer);
  EXPECT_LT(node.queued, 80 * Node::kBuffer);
}

TEST(DrainRate, ADiskThatStandsStillAndGoesOn) {
  Node node;
  node.run(500, 100'000, 20'000);
  node.run(10'000, 100'000, 0);
  EXPECT_EQ(node.drain.advice_bps(), DrainRate::kLeastBps);
  node.run(500, 10'000, 20'000);
  EXPECT_GT(node.drain.advice_bps(), 50'000'000U);
  node.run(2000, 1'000, 20'000);
  EXPECT_EQ(node.drain.advice_bps(), 0U) << "it has nothing to do any more";
}

TEST(DrainRate, SaysNothingBeforeWritesHaveEnded) {
  Node node;
  node.run(300, 500'000, 0);  // all buffers are at the disk, and its first write takes long
  EXPECT_EQ(node.drain.advice_bps(), 0U);
  node.run(1, 500'000, 200'000);
  node.run(100, 500'000, 0);
  EXPECT_EQ(node.drain.advice_bps(), 0U) << "two ends of writes make a speed, one makes none";
  node.run(60, 500'000, 400'000);
  EXPECT_GT(node.drain.advice_bps(), 700'000'000U);
  Node still;
  still.run(1100, 500'000, 0);
  EXPECT_EQ(still.drain.advice_bps(), DrainRate::kLeastBps) << "a second without a write is told";
}

TEST(DrainRate, TimeWithoutWorkIsNoSlownessOfTheDisk) {
  Node node;
  node.drain.sample({.all = 100, .free = 80, .writing = 20}, node.now_ns += kMs);
  node.drain.written(20 * kMiB);
  node.drain.idle();
  node.drain.sample({.all = 100, .free = 80, .writing = 20}, node.now_ns += 5000 * kMs);
  EXPECT_EQ(node.drain.advice_bps(), 0U) << "it has only begun again";
}

TEST(RecentLoss, FollowsWhatWasLostLately) {
  RecentLoss loss;
  loss.update(100, 100);
  EXPECT_EQ(loss.share(), 0.0) << "of so few nothing follows";
  for (uint64_t i = 1; i <= 20; ++i) loss.update(1000 * i, 600 * i);
  EXPECT_NEAR(loss.share(), 0.6, 0.01);
  for (uint64_t i = 1; i <= 20; ++i) loss.update(20'000 + 1000 * i, 12'000);
  EXPECT_LT(loss.share(), 0.01);
  loss.update(1'000'000, 0);
  EXPECT_GE(loss.share(), 0.0) << "what was late came after all";
}

TEST(Repetition, IsForChannelsThatLoseMuch) {
  for (const double loss : {0.0, 0.01, 0.1}) {
    const Repetition repetition(loss);
    EXPECT_FALSE(repetition.called_for());
    EXPECT_EQ(repetition.copies(5), 1U);
    EXPECT_EQ(repetition.passes(1000), 0U);
  }
}

TEST(Repetition, SendsMoreAtOnceEachTimeAndNoMoreThanNeeded) {
  const Repetition most(0.63);
  EXPECT_EQ(most.copies(0), 1U);
  EXPECT_EQ(most.copies(1), 2U);
  EXPECT_EQ(most.copies(2), 4U);
  EXPECT_EQ(most.copies(255), Repetition::kCopiesMax);
  EXPECT_EQ(Repetition(0.2).copies(9), 3U) << "0.2^3 is less than one in fifty";
  EXPECT_EQ(most.passes(1120), 31U);  // 1120 * 0.63^31 is less than 1/1000
  EXPECT_EQ(Repetition(1.0).passes(4096), Repetition::kPassesMax);
}

TEST(Repetition, SaysWhatItsCopiesCost) {
  for (const double loss : {0.0, 0.01, 0.1})
    EXPECT_NEAR(Repetition(loss).transmissions(), 1 / (1 - loss), 1e-3);
  // Of two, the second is for nothing as often as the first arrives; and so on.
  EXPECT_NEAR(Repetition(0.5).transmissions(), 2.27, 0.01);
  EXPECT_NEAR(Repetition(0.62).transmissions(), 1.2 / (1 - 0.62), 0.01);
}

}  // namespace
}  // namespace sluice
