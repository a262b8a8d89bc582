// The time that the loss detector waits for what is only late, learnt on a path that keeps no order.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "control/recovery/loss_detector.h"
#include "dataplane/base/time_for_test.h"
#include "dataplane/core/lateness.h"
#include "dataplane/core/seq_window.h"

namespace sluice::recovery {
namespace {

// A path with delays of an exponential distribution, and a receiver as a worker is one.
class Path {
 public:
  Path(double mean_ms, double loss) : delay_(1 / mean_ms), loss_(loss), words_(kBits / 64) {
    window_ = SeqWindow(words_.data(), kBits);
  }
  // `per_ms` datagrams leave each millisecond.
  void run(uint64_t ms, uint64_t per_ms) {
    for (const uint64_t until_ns = now_ns_ + ms * kMs; now_ns_ < until_ns; now_ns_ += kMs) {
      for (uint64_t i = 0; i < per_ms; ++i, ++sent_) {
        if (std::uniform_real_distribution<>(0, 1)(random_) < loss_) continue;
        arrivals_.emplace(now_ns_ + static_cast<uint64_t>(delay_(random_) * 1e6), std::pair(sent_, now_ns_));
      }
      for (; !arrivals_.empty() && arrivals_.begin()->first <= now_ns_; arrivals_.erase(arrivals_.begin())) {
        arrive(arrivals_.begin()->second.first, arrivals_.begin()->second.second);
      }
      lost_.clear();
      const WindowView view(words_.data(), kBits, window_.end());
      seen_.lateness_ns = lateness_.latest_ns();
      detector_.step(view, seen_, now_ns_, 4096, &lost_);
      for (const board::Gap& gap : lost_) reported_ += gap.count;
    }
  }
  // Of all datagrams: those that were reported lost and came after all, since the last call.
  double late_share() {
    const double share = static_cast<double>(seen_.late_chunks - late_before_) /
                         static_cast<double>(seen_.datagrams - datagrams_before_);
    late_before_ = seen_.late_chunks;
    datagrams_before_ = seen_.datagrams;
    return share;
  }
  LossDetector& detector() { return detector_; }
  void keep_order() { delay_ = std::exponential_distribution<>(1e9); }
  void keep(uint64_t memory_ns) { seen_.memory_ns = memory_ns; }
  uint64_t reported() const { return reported_; }
  uint64_t sent() const { return sent_; }

 private:
  static constexpr uint32_t kBits = 1U << 18;

  void arrive(uint64_t seq, uint64_t sent_ns) {
    if (window_.check(seq) != SeqWindow::Novelty::kNew) return;
    ++seen_.datagrams;
    if (seq < detector_.settled_below()) ++seen_.late_chunks;
    const bool overtaken = seq < window_.end();
    window_.mark(seq);
    lateness_.arrived(static_cast<int64_t>(now_ns_ - sent_ns), overtaken, now_ns_);
  }

  std::mt19937_64 random_{11};
  std::exponential_distribution<> delay_;
  double loss_;
  std::vector<std::atomic<uint64_t>> words_;
  SeqWindow window_;
  Lateness lateness_;
  LossDetector detector_;
  LossDetector::Seen seen_;
  std::vector<board::Gap> lost_;
  std::multimap<uint64_t, std::pair<uint64_t, uint64_t>> arrivals_;
  uint64_t now_ns_ = 1000 * kMs;
  uint64_t sent_ = 0;
  uint64_t reported_ = 0;
  uint64_t late_before_ = 0;
  uint64_t datagrams_before_ = 0;
};

// HIPSTER's channel (docs/SOURCES.md): delays of mean 147 ms, no order, and most datagrams lost.
TEST(Reordering, ThatIsLongIsLearnt) {
  for (const double loss : {0.0, 0.63}) {
    SCOPED_TRACE(loss);
    Path path(147, loss);
    path.run(5000, 20);
    path.late_share();
    path.run(5000, 20);
    EXPECT_GT(path.detector().reorder_ns(), 300 * kMs);
    EXPECT_LT(path.detector().reorder_ns(), 1000 * kMs) << "nor for the last one of many";
    EXPECT_LT(path.late_share(), 0.10);
  }
}

TEST(Reordering, IsForgottenOnAPathThatKeepsOrder) {
  Path path(147, 0);
  path.run(5000, 20);
  ASSERT_GT(path.detector().reorder_ns(), 300 * kMs);
  path.keep_order();
  path.run(60'000, 5);
  EXPECT_LE(path.detector().reorder_ns(), LossDetector::kReorderStartNs);
}

// While an extent waits, its buffer is held: with little memory it is better to repeat.
TEST(Reordering, IsWaitedForNoLongerThanMemoryLasts) {
  Path path(147, 0);
  path.keep(120 * kMs);
  path.run(10'000, 20);
  EXPECT_LE(path.detector().reorder_ns(), 120 * kMs);
  EXPECT_GE(path.detector().reorder_ns(), 100 * kMs);
  path.keep(10 * kMs);
  path.run(100, 20);
  EXPECT_EQ(path.detector().reorder_ns(), LossDetector::kReorderMaxNs) << "what a little memory always holds";
}

// A few that come late, as on any path, are no reason to wait long for all.
TEST(Reordering, OfAFewIsNotWaitedForForLong) {
  Path path(5, 0.001);
  path.run(10'000, 20);
  EXPECT_LE(path.detector().reorder_ns(), LossDetector::kReorderMaxNs);
  EXPECT_LT(path.reported(), path.sent() / 10);
}

TEST(Reordering, TheWindowLastsForAsLongAsItsBytesDo) {
  LossDetector detector;
  uint64_t now_ns = 1000 * kMs;
  EXPECT_EQ(detector.lasts_ns(1 << 20, 0, now_ns), UINT64_MAX) << "nothing has come yet";
  uint64_t lasts_ns = 0;
  for (uint64_t bytes = 0; bytes < 10'000'000; bytes += 1000)
    lasts_ns = detector.lasts_ns(2'000'000, bytes, now_ns += kMs);
  EXPECT_NEAR(static_cast<double>(lasts_ns), 1e9, 1e7) << "1 MB/s: half of the window lasts a second";
}

}  // namespace
}  // namespace sluice::recovery
