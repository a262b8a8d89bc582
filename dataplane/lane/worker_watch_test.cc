// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/worker_watch.h"

#include <gtest/gtest.h>

namespace sluice::lane {
namespace {

TEST(WorkerWatch, EachWorkerHasToTurnEachTime) {
  WorkerEpochs epochs;
  for (int i = 0; i < 2; ++i) epochs.push_back(std::make_unique<std::atomic<uint64_t>>(0));
  WorkerWatch watch(epochs);
  EXPECT_FALSE(watch.all_turned()) << "none has begun";
  *epochs[0] = 3;
  EXPECT_FALSE(watch.all_turned()) << "one is stuck";
  *epochs[1] = 1;
  EXPECT_TRUE(watch.all_turned());
  EXPECT_FALSE(watch.all_turned()) << "none since then";
  *epochs[1] = 2;
  EXPECT_FALSE(watch.all_turned());
  *epochs[0] = 4;
  EXPECT_TRUE(watch.all_turned());
}

TEST(ClockWatch, TellsOfEachPartingOnce) {
  const auto board = std::make_unique<board::Board>();
  ClockWatch watch(*board);
  EXPECT_TRUE(watch.take_news().empty());
  auto& count = board->workers[1].counters[static_cast<uint32_t>(board::Counter::clock_partings)];
  count = 1;
  const auto news = watch.take_news();
  ASSERT_EQ(news.size(), 1U);
  EXPECT_TRUE(news[0].starts_with("worker 1: ")) << news[0];
  EXPECT_TRUE(watch.take_news().empty());
  count = 2;
  EXPECT_EQ(watch.take_news().size(), 1U);
}

}  // namespace
}  // namespace sluice::lane
