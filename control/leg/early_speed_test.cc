// SPDX-License-Identifier: Apache-2.0
#include "control/leg/early_speed.h"

#include <gtest/gtest.h>

namespace sluice::transfer {
namespace {

constexpr uint64_t kOneMs = 1'000'000;
constexpr uint64_t kPerMs = 5'000;  // 40 Mbit/s

TEST(EarlySpeed, OfAMegabyteIsThatOfItsPath) {
  EarlySpeed speed;
  uint64_t now_ns = 1'000 * kOneMs;
  for (uint64_t ms = 0; ms <= 200; ++ms) speed.look(ms * kPerMs, now_ns += kOneMs);
  EXPECT_NEAR(speed.bps(), 40e6, 1e6);
}

TEST(EarlySpeed, WhatComesAgainARoundTripLateDoesNotCount) {
  EarlySpeed speed;
  uint64_t now_ns = 1'000 * kOneMs;
  for (uint64_t ms = 0; ms <= 190; ++ms) speed.look(ms * kPerMs, now_ns += kOneMs);
  for (uint64_t ms = 0; ms < 200; ++ms) speed.look(190 * kPerMs, now_ns += kOneMs);
  speed.look(200 * kPerMs, now_ns);
  EXPECT_NEAR(speed.bps(), 40e6, 1e6);
}

TEST(EarlySpeed, OfAFewChunksIsNotKnown) {
  EarlySpeed speed;
  EXPECT_EQ(speed.bps(), 0);
  for (uint64_t ms = 0; ms < 50; ++ms) speed.look(ms * kPerMs, (100 + ms) * kOneMs);
  EXPECT_EQ(speed.bps(), 0);
}

TEST(EarlySpeed, KeepsFewNumbersOfALongSession) {
  EarlySpeed speed;
  for (uint64_t ms = 0; ms < 100'000; ++ms) speed.look(ms * kPerMs, (100 + ms) * kOneMs);
  EXPECT_NEAR(speed.bps(), 40e6, 1e6);
}

}  // namespace
}  // namespace sluice::transfer
