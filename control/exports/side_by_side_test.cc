// SPDX-License-Identifier: Apache-2.0
#include "control/exports/side_by_side.h"

#include <gtest/gtest.h>
#include <sys/fsuid.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "dataplane/base/progress.h"

namespace sluice::exports {
namespace {

constexpr SideBySide kAtOnce{.threads_max = 4, .slow_ns = 0};
constexpr SideBySide kNever{.threads_max = 4, .slow_ns = UINT64_MAX};

TEST(SideBySide, EachPieceIsDoneOnce) {
  for (const size_t count : {0, 1, 4, 5, 1000}) {
    std::vector<std::atomic<int>> done(count);
    std::atomic<bool> thread_in_bounds = true;
    side_by_side(count, kAtOnce, [&](size_t number, size_t thread) {
      ++done[number];
      if (thread >= kAtOnce.threads_max) thread_in_bounds = false;
      return true;
    });
    for (size_t number = 0; number < count; ++number) EXPECT_EQ(done[number], 1) << number << " of " << count;
    EXPECT_TRUE(thread_in_bounds);
  }
}

// Each of four waits until the others have begun.
TEST(SideBySide, PiecesThatTakeLongAreDoneTogether) {
  std::latch together(4);
  std::set<size_t> threads;
  std::mutex mutex;
  side_by_side(8, kAtOnce, [&](size_t number, size_t thread) {
    if (number < 4) return true;
    together.arrive_and_wait();
    const std::lock_guard lock(mutex);
    return threads.insert(thread).second;
  });
  EXPECT_EQ(threads, (std::set<size_t>{0, 1, 2, 3}));
}

TEST(SideBySide, QuickPiecesAreTheCallers) {
  std::set<std::thread::id> threads;
  side_by_side(1000, kNever, [&](size_t, size_t thread) {
    EXPECT_EQ(thread, 0U);
    threads.insert(std::this_thread::get_id());
    return true;
  });
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
}

TEST(SideBySide, AfterOneThatFailsNoneIsBegun) {
  size_t last = 0;
  side_by_side(1000, kNever, [&](size_t number, size_t) {
    last = number;
    return number < 3;
  });
  EXPECT_EQ(last, 3U);
}

TEST(SideBySide, HelpersNoteTheCallersProgressAndHaveItsRights) {
  constexpr uid_t kOther = 65534;
  const auto rights = [] { return static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))); };
  const uid_t before = rights();
  ::setfsuid(kOther);  // in vain, if this is not root
  const uid_t callers = rights();
  std::atomic<uint64_t> progress_ns = 0;
  base::progress_ns = &progress_ns;
  std::latch together(4);
  std::atomic<int> alike = 0;
  side_by_side(8, kAtOnce, [&](size_t number, size_t) {
    if (number >= 4) together.arrive_and_wait();
    alike += base::progress_ns == &progress_ns && rights() == callers ? 1 : 0;
    return true;
  });
  base::progress_ns = nullptr;
  ::setfsuid(before);
  EXPECT_EQ(alike, 8);
  EXPECT_NE(progress_ns, 0U);
}

}  // namespace
}  // namespace sluice::exports
