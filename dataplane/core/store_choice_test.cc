// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/store_choice.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

constexpr uint64_t kTurnBytes = 32 * 8192;
constexpr uint32_t kTurns = 2 * StoreChoice::kTrials * StoreChoice::kTrialEveryPast;  // two windows at least

// So many turns, of which each takes what its way takes; how many of them went past the caches.
uint32_t turns(StoreChoice& choice, uint32_t count, uint64_t through_ns, uint64_t past_ns) {
  uint32_t past = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_past = choice.past_caches();
    past += is_past ? 1 : 0;
    choice.turn(kTurnBytes, is_past ? past_ns : through_ns);
  }
  return past;
}

TEST(StoreChoice, GoesThroughTheCachesAndTriesTheOtherWayRarely) {
  StoreChoice choice;
  EXPECT_FALSE(choice.past_caches());
  EXPECT_EQ(turns(choice, 6400, 20'000, 30'000), 100U);
}

TEST(StoreChoice, FollowsWhatIsFaster) {
  StoreChoice choice;
  turns(choice, kTurns, 20'000, 30'000);
  turns(choice, kTurns, 110'000, 30'000);
  EXPECT_TRUE(choice.past_caches());
  turns(choice, kTurns, 20'000, 30'000);
  EXPECT_FALSE(choice.past_caches());
}

TEST(StoreChoice, ALittleIsNotWorthAChange) {
  StoreChoice choice;
  turns(choice, kTurns, 30'000, 27'000);
  EXPECT_FALSE(choice.past_caches());
}

TEST(StoreChoice, TurnsThatWereInterruptedSayNothing) {
  StoreChoice choice;
  for (uint32_t i = 0; i < 2 * kTurns; ++i) {
    const bool is_past = choice.past_caches();
    choice.turn(kTurnBytes, i % 10 != 0 ? 3'000'000 : is_past ? 30'000 : 20'000);
  }
  EXPECT_FALSE(choice.past_caches());
}

TEST(StoreChoice, ShortTurnsAreNotMeasuredAndEndATrial) {
  StoreChoice choice;
  uint32_t past = 0;
  for (uint32_t i = 0; i < 6400; ++i) {
    past += choice.past_caches() ? 1 : 0;
    choice.turn(StoreChoice::kBytesMin - 1, choice.past_caches() ? 1 : 1'000'000);
  }
  EXPECT_EQ(past, 100U);
}

TEST(StoreChoice, WhatOnlyTheTrialsMeasuredIsNoReason) {
  StoreChoice choice;
  for (uint32_t i = 0; i < 2 * kTurns; ++i)
    choice.turn(choice.past_caches() ? kTurnBytes : StoreChoice::kBytesMin - 1, 20'000);
  EXPECT_FALSE(choice.past_caches());
}

}  // namespace
}  // namespace sluice
