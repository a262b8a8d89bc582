// SPDX-License-Identifier: Apache-2.0
#include "control/peer/frame_memory.h"

#include <gtest/gtest.h>

namespace sluice::peer {
namespace {

class FrameMemoryTest : public testing::Test {
 protected:
  std::unique_ptr<FrameMemory::Lease> lease(const std::string& peer, size_t bytes) {
    return FrameMemory::lease(memory_, peer, bytes, [this] { ++woken_; });
  }
  std::shared_ptr<FrameMemory> memory_ = std::make_shared<FrameMemory>(100, 1000);
  int woken_ = 0;
};

TEST_F(FrameMemoryTest, OneFrameOfAPeerAtATime) {
  auto first = lease("a", 10);
  auto second = lease("a", 10);
  auto other = lease("b", 10);
  EXPECT_TRUE(first->granted());
  EXPECT_FALSE(second->granted());
  EXPECT_TRUE(other->granted());
  woken_ = 0;
  first.reset();
  EXPECT_TRUE(second->granted());
  EXPECT_EQ(woken_, 1);
  EXPECT_EQ(memory_->in_bytes(), 20U);
}

TEST_F(FrameMemoryTest, AllTogetherHaveABoundAndTheFirstInTurnIsNotOvertaken) {
  auto a = lease("a", 60);
  auto b = lease("b", 60);
  auto c = lease("c", 10);
  EXPECT_FALSE(b->granted());
  EXPECT_FALSE(c->granted()) << "though there would be room";
  b.reset();
  EXPECT_TRUE(c->granted()) << "who gives up his turn holds up nobody";
  a.reset();
  c.reset();
  EXPECT_EQ(memory_->in_bytes(), 0U);
}

TEST_F(FrameMemoryTest, MoreThanThereIsCountsAsAllOfIt) {
  auto huge = lease("a", 1U << 30);
  EXPECT_TRUE(huge->granted());
  EXPECT_EQ(memory_->in_bytes(), 100U);
}

TEST_F(FrameMemoryTest, WhatWaitsToBeWrittenHasABoundForThoseWhoHaveMuch) {
  EXPECT_TRUE(memory_->may_queue(FrameMemory::kSmallQueueBytes, 1000));
  memory_->queued(1000);
  EXPECT_FALSE(memory_->may_queue(FrameMemory::kSmallQueueBytes, 1));
  EXPECT_TRUE(memory_->may_queue(0, 10)) << "a little is always possible";
  memory_->left(1000);
  EXPECT_TRUE(memory_->may_queue(FrameMemory::kSmallQueueBytes, 1));
}

}  // namespace
}  // namespace sluice::peer
