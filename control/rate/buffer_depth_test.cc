// How deep a buffer is, from rounds that lost.
// SPDX-License-Identifier: Apache-2.0
#include "control/rate/buffer_depth.h"

#include <gtest/gtest.h>

namespace sluice::rate {
namespace {

constexpr uint64_t kRoundNs = 20'000'000;

class BufferDepthTest : public testing::Test {
 protected:
  // Whether the loss turned out to be the path's own. One round of ten loses nothing, with an empty queue.
  bool rounds(double seconds, double loss, double longest_s, double shortest_s = 0) {
    bool own = false;
    for (const uint64_t end_ns = now_ns_ + static_cast<uint64_t>(seconds * 1e9); now_ns_ < end_ns;) {
      now_ns_ += kRoundNs;
      const bool calm = calms_ && ++number_ % 10 == 0;
      const Round round{.duration_ns = kRoundNs,
                        .datagrams = 1000,
                        .loss = calm ? 0 : loss,
                        .delivered_bps = delivered_bps_};
      own |= depth_.take(round, calm ? 0 : longest_s, calm ? 0 : shortest_s, 0.0005, now_ns_).has_value();
    }
    return own;
  }
  void restart_for(double seconds) {
    now_ns_ += static_cast<uint64_t>(seconds * 1e9);
    depth_.restart(now_ns_);
  }
  double seconds() const { return depth_.seconds(); }

  double delivered_bps_ = 1e9;
  bool calms_ = true;

 private:
  BufferDepth depth_;
  uint64_t number_ = 0;
  uint64_t now_ns_ = 1'000'000'000;
};

TEST_F(BufferDepthTest, IsTheLeastQueueThatLost) {
  rounds(2, 0, 9e-3);
  EXPECT_EQ(seconds(), 0) << "nothing was lost";
  rounds(0.5, 0.01, 5e-3);
  rounds(0.1, 0.01, 4e-3);
  rounds(0.1, 0, 1e-3);
  rounds(1, 0.01, 6e-3);
  EXPECT_DOUBLE_EQ(seconds(), 4e-3);
}

TEST_F(BufferDepthTest, IsForgottenWhenNothingIsLostForLong) {
  rounds(2, 0.01, 4e-3);
  rounds(5, 0, 1e-3);
  EXPECT_DOUBLE_EQ(seconds(), 4e-3);
  rounds(7, 0, 1e-3);
  EXPECT_EQ(seconds(), 0);
}

TEST_F(BufferDepthTest, IsForgottenWhenAQueueStandsAboveIt) {
  rounds(2, 0.01, 4e-3);
  rounds(0.1, 0, 8e-3, 6e-3);
  EXPECT_EQ(seconds(), 0);
}

// A law that makes its queue shorter and shorter loses as much: that is the path's.
TEST_F(BufferDepthTest, IsNotBelievedWhereLossDoesNotGoWithTheQueue) {
  double queue_s = 4e-3;
  rounds(1.5, 0.01, queue_s);
  bool own = false;
  for (int i = 0; i < 4; ++i) own |= rounds(1, 0.01, queue_s /= 2);
  EXPECT_TRUE(own);
  EXPECT_EQ(seconds(), 0);
  rounds(20, 0.01, 4e-3);
  EXPECT_EQ(seconds(), 0) << "nor soon again";
  rounds(20, 0.01, 4e-3);
  EXPECT_DOUBLE_EQ(seconds(), 4e-3) << "but at last";
}

TEST_F(BufferDepthTest, IsNotBelievedWhereTheDelayNeverFalls) {
  calms_ = false;
  EXPECT_FALSE(rounds(1.5, 0.01, 3e-3));
  EXPECT_TRUE(rounds(3, 0.01, 3e-3));
  EXPECT_EQ(seconds(), 0);
}

TEST_F(BufferDepthTest, IsNotBelievedWhereHardlyAnythingComesThrough) {
  rounds(3, 0.01, 4e-3);
  delivered_bps_ = 0.2e9;
  EXPECT_FALSE(rounds(3, 0.01, 4e-3)) << "others may take most";
  EXPECT_DOUBLE_EQ(seconds(), 4e-3);
  delivered_bps_ = 0.05e9;
  EXPECT_TRUE(rounds(3, 0.01, 4e-3));
  EXPECT_EQ(seconds(), 0);
}

TEST_F(BufferDepthTest, IsForgottenEvenWhereNothingCanBeSeenOfIt) {
  rounds(2, 0.01, 4e-3);
  restart_for(11);
  EXPECT_EQ(seconds(), 0) << "disordered";
  rounds(2, 0.01, 4e-3);
  EXPECT_DOUBLE_EQ(seconds(), 4e-3);
  rounds(12, 0.01, 30e-3);
  EXPECT_EQ(seconds(), 0) << "losing, with long queues";
}

TEST_F(BufferDepthTest, IsNoQueueThatCouldBeKeptWhereItIsTiny) {
  EXPECT_FALSE(rounds(3, 0.01, 0.2e-3));
  EXPECT_EQ(seconds(), 0);
}

TEST_F(BufferDepthTest, IsOfNoInterestWhereItIsGreat) {
  rounds(3, 0.01, 20e-3);
  EXPECT_EQ(seconds(), 0);
}

}  // namespace
}  // namespace sluice::rate
