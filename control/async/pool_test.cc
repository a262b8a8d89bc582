// Nothing waits for time to pass: what has to come before something else is waited for by name.
// SPDX-License-Identifier: Apache-2.0
#include "control/async/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace sluice::async {
namespace {

TEST(Pool, HandsResultsToTheLoop) {
  asio::io_context io;
  Pool pool(io);
  const auto loop = std::this_thread::get_id();
  std::thread::id worked;
  std::thread::id told;
  pool.run([] { return std::this_thread::get_id(); },
           [&](std::thread::id result) {
             worked = result;
             told = std::this_thread::get_id();
           });
  io.run();  // ends when there is nothing more to hand over
  EXPECT_NE(worked, loop);
  EXPECT_EQ(told, loop);
}

TEST(Pool, OneSerialRunsItsWorkOneAfterTheOtherInOrder) {
  constexpr int kWorks = 500;
  asio::io_context io;
  Pool pool(io);
  struct Lane {
    Pool::Serial serial;
    std::atomic<int> running = 0;
    std::vector<int> began;  // by whoever runs, one at a time
    std::vector<int> told;
  };
  std::vector<std::unique_ptr<Lane>> lanes;
  for (int i = 0; i < 3; ++i) lanes.push_back(std::make_unique<Lane>(pool.serial()));
  std::atomic<int> most = 0;
  for (int i = 0; i < kWorks; ++i) {
    for (const auto& lane : lanes) {
      pool.run_on(
          lane->serial,
          [&most, one = lane.get(), i] {
            const int running = ++one->running;
            if (running > most) most = running;
            one->began.push_back(i);
            --one->running;
            return i;
          },
          [one = lane.get()](int number) { one->told.push_back(number); });
    }
  }
  io.run();
  EXPECT_EQ(most, 1);
  for (const auto& lane : lanes) {
    ASSERT_EQ(lane->began.size(), static_cast<size_t>(kWorks));
    EXPECT_TRUE(std::is_sorted(lane->began.begin(), lane->began.end()));
    EXPECT_EQ(lane->told, lane->began) << "the loop hears of them in that order, too";
  }
}

TEST(Pool, WhatBlocksOneSerialHoldsUpNoOther) {
  asio::io_context io;
  Pool pool(io);
  Pool::Serial slow = pool.serial();
  Pool::Serial quick = pool.serial();
  std::promise<void> quick_has_run;
  bool slow_was_told = false;
  pool.run_on(
      slow,
      [&, ran = quick_has_run.get_future()]() mutable {
        return ran.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
      },
      [&](bool in_time) { slow_was_told = in_time; });
  pool.run_on(
      quick,
      [&] {
        quick_has_run.set_value();
        return 0;
      },
      [](int) {});
  io.run();
  EXPECT_TRUE(slow_was_told);
}

// So an operator is told of a pause once the journal has it.
TEST(Pool, WhoeverWaitsOnASerialFindsAllThatWasAskedOfItBefore) {
  asio::io_context io;
  Pool pool(io);
  Pool::Serial serial = pool.serial();
  int done = 0;
  for (int i = 0; i < 100; ++i) {
    pool.run_on(
        serial, [] { return 1; }, [&](int one) { done += one; });
  }
  std::optional<int> found;
  const auto wait = [&]() -> asio::awaitable<void> {
    auto work = [] { return true; };
    co_await pool.wait_on(serial, std::move(work));
    found = done;
  };
  asio::co_spawn(io, wait(), asio::detached);
  io.run();
  EXPECT_EQ(found, 100);
}

}  // namespace
}  // namespace sluice::async
