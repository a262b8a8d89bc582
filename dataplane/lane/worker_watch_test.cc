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

TEST(ArrivalWatch, TellsOnceOfFramesThatNoWorkerSees) {
  const auto board = std::make_unique<board::Board>();
  ArrivalWatch watch(*board);
  const auto& counters = board->workers[1].counters;
  auto& missed = board->workers[0].counters[static_cast<uint32_t>(board::Counter::rx_missed)];
  auto& taken = board->workers[1].counters[static_cast<uint32_t>(board::Counter::rx_frames)];
  ASSERT_EQ(&counters[static_cast<uint32_t>(board::Counter::rx_frames)], &taken);
  EXPECT_TRUE(watch.take_news().empty());
  missed = 5;
  taken = 1;
  EXPECT_TRUE(watch.take_news().empty()) << "some came";
  missed = 7;
  const auto news = watch.take_news();
  ASSERT_EQ(news.size(), 1U);
  EXPECT_TRUE(news[0].starts_with("2 frames arrived within a second that the device had no room for"))
      << news[0];
  missed = 9;
  EXPECT_TRUE(watch.take_news().empty()) << "it was said";
  EXPECT_TRUE(watch.take_news().empty());
  missed = 10;
  EXPECT_EQ(watch.take_news().size(), 1U) << "it had been over";
}

TEST(ArrivalWatch, TellsOnceOfAnotherPortWithTheSameLinkAddress) {
  const auto board = std::make_unique<board::Board>();
  ArrivalWatch watch(*board);
  auto& count = board->workers[0].counters[static_cast<uint32_t>(board::Counter::neighbour_own_link)];
  EXPECT_TRUE(watch.take_news().empty());
  for (const size_t sentences : {1U, 0U, 0U}) {
    count = count + 1;
    EXPECT_EQ(watch.take_news().size(), sentences);
  }
}

}  // namespace
}  // namespace sluice::lane
