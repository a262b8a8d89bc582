// Scrapes do not hold up the loop, and the loop does not hold up scrapes.
// SPDX-License-Identifier: Apache-2.0
#include "control/exporter/snapshots.h"

#include <gtest/gtest.h>

#include <asio/executor_work_guard.hpp>
#include <atomic>
#include <thread>
#include <vector>

namespace sluice::exporter {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class SnapshotsTest : public ::testing::Test {
 protected:
  Snapshots::Look look() {
    return [this] {
      if (std::this_thread::get_id() != loop_id_) on_loop_ = false;
      return metrics::NodeFigures{.turns = ++looks_};
    };
  }
  void run_loop() {
    loop_ = std::thread([this] {
      loop_id_ = std::this_thread::get_id();  // loop_ itself is assigned when this may run already
      io_.run();
    });
  }
  void TearDown() override {
    work_.reset();
    if (loop_.joinable()) loop_.join();
    EXPECT_TRUE(on_loop_);
  }

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::thread loop_;
  std::thread::id loop_id_;  // written and read by the loop
  std::atomic<uint64_t> looks_{0};
  std::atomic<bool> on_loop_{true};
};

TEST_F(SnapshotsTest, HoweverManyScrapeTheLoopIsAskedOnce) {
  Snapshots snapshots(io_, look(), {.fresh = hours(1), .patience = hours(1)});
  std::vector<std::thread> scrapers;
  std::atomic<int> answered{0};
  for (int i = 0; i < 8; ++i) {
    scrapers.emplace_back([&] {
      const Snapshot snapshot = snapshots.newest();
      if (snapshot.figures && snapshot.figures->turns == 1) ++answered;
    });
  }
  run_loop();
  for (std::thread& scraper : scrapers) scraper.join();
  EXPECT_EQ(answered, 8);
  EXPECT_EQ(snapshots.newest().figures->turns, 1U);
  EXPECT_EQ(looks_, 1U);
}

TEST_F(SnapshotsTest, WhatIsNotFreshIsAskedForAgain) {
  Snapshots snapshots(io_, look(), {.fresh = milliseconds(0), .patience = hours(1)});
  run_loop();
  const auto first = snapshots.newest();
  const auto second = snapshots.newest();
  EXPECT_EQ(first.figures->turns, 1U);
  EXPECT_EQ(second.figures->turns, 2U);
  EXPECT_GE(second.taken, first.taken);
}

TEST_F(SnapshotsTest, ALoopThatIsHeldUpIsAskedOnceAndTheLastLookToldAgain) {
  Snapshots snapshots(io_, look(), {.fresh = milliseconds(0), .patience = milliseconds(1)});
  EXPECT_EQ(snapshots.newest().figures, nullptr);
  EXPECT_EQ(snapshots.newest().figures, nullptr);
  io_.poll_one();  // here, and not on a thread of its own
  on_loop_ = true;
  EXPECT_EQ(io_.poll(), 0U) << "a second order lies in the loop";
  EXPECT_EQ(looks_, 1U);
  const Snapshot again = snapshots.newest();
  ASSERT_NE(again.figures, nullptr);
  EXPECT_EQ(again.figures->turns, 1U);
}

TEST_F(SnapshotsTest, NobodyWaitsForALoopThatEnds) {
  Snapshots snapshots(io_, look(), {.fresh = milliseconds(0), .patience = hours(1)});
  std::thread scraper([&] { EXPECT_EQ(snapshots.newest().figures, nullptr); });
  snapshots.stop();
  scraper.join();
  EXPECT_EQ(snapshots.newest().figures, nullptr);
}

TEST_F(SnapshotsTest, AnOrderThatIsLeftInTheLoopLooksAtNothing) {
  {
    Snapshots snapshots(io_, look(), {.fresh = milliseconds(0), .patience = milliseconds(1)});
    (void)snapshots.newest();
  }
  EXPECT_EQ(io_.poll(), 1U);
  EXPECT_EQ(looks_, 0U);
}

}  // namespace
}  // namespace sluice::exporter
