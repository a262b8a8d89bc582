// Nothing waits for time to pass: what has to come before something else is waited for by name.
// SPDX-License-Identifier: Apache-2.0
#include "control/async/keyed_pool.h"

#include <gtest/gtest.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <atomic>
#include <future>
#include <map>
#include <thread>

#include "control/async/clock.h"
#include "dataplane/base/progress.h"

namespace sluice::async {
namespace {

constexpr uint32_t kMost = 4;

class KeyedPoolTest : public testing::Test {
 protected:
  // A call that does not return before let_go(), and is running when this returns.
  void hang(const std::string& key, const std::string& owner = "") {
    auto begun = std::make_shared<std::promise<void>>();
    pool_.run(
        {.name = key, .owner = owner},
        [begun, end = end_] {
          begun->set_value();
          end.wait();
          return 0;
        },
        [this](int) { ++ended_; });
    begun->get_future().wait();
  }
  // Returns once the call has come back to the loop.
  void call(const std::string& key) {
    bool done = false;
    pool_.run(
        {.name = key}, [] { return 1; }, [&done](int) { done = true; });
    while (!done) io_.run_one();
  }
  void let_go() { go_.set_value(); }

  asio::io_context io_;
  std::promise<void> go_;
  std::shared_future<void> end_ = go_.get_future().share();
  int ended_ = 0;
  KeyedPool pool_{io_, kMost};
};

TEST_F(KeyedPoolTest, HandsResultsToTheLoop) {
  std::thread::id worked;
  std::thread::id told;
  pool_.run(
      {.name = "a"}, [] { return std::this_thread::get_id(); },
      [&](std::thread::id result) {
        worked = result;
        told = std::this_thread::get_id();
      });
  io_.run();
  EXPECT_NE(worked, std::this_thread::get_id());
  EXPECT_EQ(told, std::this_thread::get_id());
}

TEST_F(KeyedPoolTest, AKeyWhosePlacesAllHangHoldsUpNoOther) {
  for (const char* key : {"hung", "hung too"}) {
    for (uint32_t i = 0; i < kMost; ++i) hang(key);
    for (int i = 0; i < 20; ++i)
      pool_.run(
          {.name = key}, [] { return 0; }, [this](int) { ++ended_; });
  }
  for (int i = 0; i < 3; ++i) call("well");
  EXPECT_EQ(ended_, 0);
  let_go();
  io_.run();
  EXPECT_EQ(ended_, 2 * (4 + 20)) << "what waited behind them is done when they come back";
}

TEST_F(KeyedPoolTest, OfOneKeySoManyRunAtATimeAndNoMoreThreadsAreStarted) {
  constexpr int kCalls = 500;
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  std::atomic<uint32_t> threads = 0;
  int done = 0;
  for (int i = 0; i < kCalls; ++i) {
    pool_.run(
        {.name = "a"},
        [&] {
          const int now = ++running;
          int seen = most;
          while (now > seen && !most.compare_exchange_weak(seen, now)) {
          }
          threads = std::max(threads.load(), pool_.threads());
          --running;
          return 0;
        },
        [&](int) { ++done; });
  }
  io_.run();
  EXPECT_EQ(done, kCalls);
  EXPECT_LE(most, static_cast<int>(kMost));
  EXPECT_LE(threads, kMost);
  std::map<int, int> order;
  for (int i = 0; i < 100; ++i)
    pool_.run(
        {.name = "one", .most = 1}, [i] { return i; },
        [&](int number) { order.emplace(number, order.size()); });
  io_.restart();
  io_.run();
  for (const auto& [number, place] : order) EXPECT_EQ(number, place) << "with one place they run in order";
}

TEST_F(KeyedPoolTest, WhatHangsIsNamedAndWhoWaitsBehindIt) {
  EXPECT_TRUE(pool_.waits(monotonic_ns(), 0).empty());
  const uint64_t before_ns = monotonic_ns();
  for (uint32_t i = 0; i < kMost; ++i) hang("hung", i == 0 ? "first" : "other");
  pool_.run(
      {.name = "hung", .owner = "behind"}, [] { return 0; }, [](int) {});
  const uint64_t now_ns = monotonic_ns() + 1'000'000'000;
  const auto waits = pool_.waits(now_ns, 1'000'000'000);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].key, "hung");
  EXPECT_EQ(waits[0].running, kMost);
  EXPECT_EQ(waits[0].queued, 1U);
  EXPECT_GE(waits[0].waited_ns, 1'000'000'000U);
  EXPECT_LE(waits[0].waited_ns, now_ns - before_ns);
  EXPECT_TRUE(pool_.waits(now_ns, now_ns - before_ns + 1).empty());
  EXPECT_GE(pool_.waited_ns("first", now_ns), 1'000'000'000U);
  EXPECT_GE(pool_.waited_ns("behind", now_ns), 1'000'000'000U) << "in the queue";
  EXPECT_EQ(pool_.waited_ns("stranger", now_ns), 0U);
  let_go();
  io_.run();
  // A thread hands its result over before it is done with the call.
  while (!pool_.waits(now_ns, 0).empty()) std::this_thread::yield();
  EXPECT_EQ(pool_.waited_ns("first", now_ns), 0U);
}

TEST_F(KeyedPoolTest, WhatTakesLongAndGetsFurtherIsNotHeldUp) {
  std::promise<uint64_t> noted;
  pool_.run(
      {.name = "busy", .owner = "it"},
      [&] {
        const uint64_t begun_ns = monotonic_ns();
        while (monotonic_ns() <= begun_ns) std::this_thread::yield();
        base::note_progress();
        noted.set_value(begun_ns);
        end_.wait();
        return 0;
      },
      [](int) {});
  const uint64_t begun_ns = noted.get_future().get();
  const uint64_t now_ns = monotonic_ns();
  EXPECT_LT(pool_.waited_ns("it", now_ns), now_ns - begun_ns);
  let_go();
  io_.run();
  base::note_progress();  // of no call: nothing happens
}

TEST_F(KeyedPoolTest, TheEndDoesNotWaitForWhatNeverComesBack) {
  hang("hung");
  hang("hung");
  bool ran = false;
  for (int i = 0; i < 5; ++i)
    pool_.run(
        {.name = "hung", .most = 2}, [&ran] { return ran = true; }, [](bool) {});
  EXPECT_FALSE(pool_.settle(std::chrono::milliseconds(1)));
  pool_.run(
      {.name = "late"}, [&ran] { return ran = true; }, [](bool) {});
  let_go();
  EXPECT_TRUE(pool_.settle(std::chrono::minutes(1)));
  EXPECT_FALSE(ran) << "what had not begun is forgotten";
}

TEST_F(KeyedPoolTest, ACoroutineWaits) {
  std::optional<int> found;
  const auto wait = [&]() -> asio::awaitable<void> {
    auto work = [] { return 7; };
    const KeyedPart part{.pool = pool_, .key = {.name = "a"}};
    found = co_await part.wait_for(std::move(work));
  };
  asio::co_spawn(io_, wait(), asio::detached);
  io_.run();
  EXPECT_EQ(found, 7);
}

}  // namespace
}  // namespace sluice::async
