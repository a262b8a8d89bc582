// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/replay_window.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace sluice {
namespace {

TEST(ReplayWindow, TakesEachNumberOnce) {
  ReplayWindow window;
  for (const uint64_t number : {0, 1, 5, 3, 4}) {
    EXPECT_TRUE(window.is_new(number)) << number;
    window.mark(number);
    EXPECT_FALSE(window.is_new(number)) << number;
  }
  EXPECT_TRUE(window.is_new(2));
}

TEST(ReplayWindow, AskingChangesNothing) {
  ReplayWindow window;
  EXPECT_TRUE(window.is_new(1'000'000));
  EXPECT_TRUE(window.is_new(7));
}

TEST(ReplayWindow, WhatIsOlderThanItRemembersIsACopy) {
  ReplayWindow window;
  window.mark(5000);
  EXPECT_TRUE(window.is_new(5000 - ReplayWindow::kRemembered + 1));
  EXPECT_FALSE(window.is_new(5000 - ReplayWindow::kRemembered));
  EXPECT_FALSE(window.is_new(0));
}

// Against a set of all numbers.
TEST(ReplayWindow, IsRightForAnyOrder) {
  std::mt19937_64 random(3);
  ReplayWindow window;
  std::set<uint64_t> came;
  uint64_t newest = 0;
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t number = newest + 3 < 2000 || random() % 3 == 0
                                ? newest + random() % (i % 100 == 0 ? 3000 : 4)
                                : newest - random() % 1500;
    const bool old = number < newest && newest - number >= ReplayWindow::kRemembered;
    ASSERT_EQ(window.is_new(number), !old && !came.contains(number)) << i;
    if (!window.is_new(number)) continue;
    window.mark(number);
    came.insert(number);
    newest = std::max(newest, number);
  }
}

}  // namespace
}  // namespace sluice
