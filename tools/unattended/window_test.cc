// SPDX-License-Identifier: Apache-2.0
#include "tools/unattended/window.h"

#include <gtest/gtest.h>

namespace sluice::unattended {
namespace {

TEST(Window, MayGoOverMidnight) {
  const auto night = Window::parse("22:00-06:00");
  ASSERT_TRUE(night);
  constexpr int32_t kHourS = 3600;
  for (const int32_t inside_s : {22 * kHourS, 24 * kHourS - 1, 0, 6 * kHourS - 1})
    EXPECT_TRUE(night->contains(inside_s));
  for (const int32_t outside_s : {6 * kHourS, 12 * kHourS, 22 * kHourS - 1})
    EXPECT_FALSE(night->contains(outside_s));
  const auto morning = Window::parse("8:30:10-12:00");
  ASSERT_TRUE(morning);
  EXPECT_FALSE(morning->contains(8 * kHourS + 1809));
  EXPECT_TRUE(morning->contains(8 * kHourS + 1810));
  EXPECT_FALSE(morning->contains(12 * kHourS));
  const auto evening = Window::parse("18:00-24:00");
  ASSERT_TRUE(evening);
  EXPECT_TRUE(evening->contains(24 * kHourS - 1));
  EXPECT_FALSE(evening->contains(0));
  const auto early = Window::parse("24:00-06:00");
  ASSERT_TRUE(early);
  EXPECT_TRUE(early->contains(0));
  EXPECT_FALSE(early->contains(6 * kHourS));
}

TEST(Window, WhatIsNoneIsRefused) {
  for (const char* text :
       {"", "-", "22:00", "22-6", "22:00-", "22:00-22:00", "24:00-00:00", "25:00-06:00", "22:60-06:00",
        "22:0-06:00", "22:00-06:00:00:00", "24:01-06:00", " 22:00-06:00", "22:00--6:00", "-1:00-06:00"})
    EXPECT_FALSE(Window::parse(text)) << text;
}

}  // namespace
}  // namespace sluice::unattended
