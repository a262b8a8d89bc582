// How deep a buffer is, from rounds that lost.
// SPDX-License-Identifier: Apache-2.0
#include "control/rate/buffer_depth.h"

#include <gtest/gtest.h>

namespace sluice::rate {
namespace {

constexpr uint64_t kRoundNs = 20'000'000;

class BufferDepthTest : public testing::Test {
 protected:
  void rounds(double seconds, double loss, double longest_s, double shortest_s = 0) {
    for (const uint64_t end_ns = now_ns_ + static_cast<uint64_t>(seconds * 1e9); now_ns_ < end_ns;) {
      now_ns_ += kRoundNs;
      depth_.take({.duration_ns = kRoundNs, .datagrams = 1000, .loss = loss}, longest_s, shortest_s, 0.0005,
                  now_ns_);
    }
  }
  double seconds() const { return depth_.seconds(); }

 private:
  BufferDepth depth_;
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
  for (int i = 0; i < 4; ++i) rounds(1, 0.01, queue_s /= 2);
  EXPECT_EQ(seconds(), 0);
  rounds(20, 0.01, 4e-3);
  EXPECT_EQ(seconds(), 0) << "nor soon again";
}

TEST_F(BufferDepthTest, IsOfNoInterestWhereItIsGreat) {
  rounds(3, 0.01, 20e-3);
  EXPECT_EQ(seconds(), 0);
}

}  // namespace
}  // namespace sluice::rate
