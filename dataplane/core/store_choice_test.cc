// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/store_choice.h"

#include <gtest/gtest.h>

#include <functional>

namespace sluice {
namespace {

constexpr uint64_t kTurnBytes = 32 * 8192;
constexpr uint64_t kGiB = 1ULL << 30;

// What a turn takes, by the way it goes and how many bytes were written before it by this call.
using Cost = std::function<uint64_t(bool is_past, uint64_t written)>;

// So many bytes are written, each turn so many; returns how many of them went past the caches.
uint64_t write(StoreChoice& choice, uint64_t bytes, const Cost& cost_ns, uint64_t turn_bytes = kTurnBytes) {
  uint64_t past = 0;
  for (uint64_t written = 0; written < bytes; written += turn_bytes) {
    const bool is_past = choice.past_caches();
    past += is_past ? turn_bytes : 0;
    choice.turn(turn_bytes, cost_ns(is_past, written));
  }
  return past;
}

Cost always(uint64_t through_ns, uint64_t past_ns) {
  return [=](bool is_past, uint64_t) { return is_past ? past_ns : through_ns; };
}

const Cost kQuickLines = always(20'000, 40'000);
const Cost kSlowLines = always(160'000, 40'000);

// One for which lines have been slow long enough.
StoreChoice past_the_caches() {
  StoreChoice choice;
  write(choice, 3 * kGiB, kSlowLines);
  EXPECT_TRUE(choice.past_caches());
  return choice;
}

TEST(StoreChoice, GoesThroughTheCachesAndTriesTheOtherWayRarely) {
  StoreChoice choice;
  EXPECT_FALSE(choice.past_caches());
  EXPECT_LE(write(choice, 16 * kGiB, kQuickLines), 17 * StoreChoice::kTrialPastBytes);
  EXPECT_FALSE(choice.past_caches());
}

TEST(StoreChoice, FollowsWhatIsFaster) {
  StoreChoice choice = past_the_caches();
  const uint64_t past = write(choice, 4 * kGiB, kQuickLines);
  EXPECT_FALSE(choice.past_caches());
  EXPECT_LT(past, 2 * kGiB);
}

TEST(StoreChoice, ALittleIsNotWorthAChange) {
  StoreChoice choice;
  const uint64_t past = write(choice, 8 * kGiB, always(30'000, 27'000));
  EXPECT_LE(past, 9 * StoreChoice::kTrialPastBytes);
}

// Half of the time lines are slow, 64 MiB at a time: 90 us is the mean of a turn through the caches.
TEST(StoreChoice, SlowTimesThatSoonEndAreNoReason) {
  const auto in_turns = [](uint64_t past_ns) {
    return [=](bool is_past, uint64_t written) -> uint64_t {
      return is_past ? past_ns : (written >> 26) % 2 == 0 ? 20'000 : 160'000;
    };
  };
  StoreChoice choice;
  write(choice, kGiB, kQuickLines);
  EXPECT_LE(write(choice, 16 * kGiB, in_turns(80'000)), 20 * StoreChoice::kTrialPastBytes);
  write(choice, 3 * kGiB, in_turns(40'000));
  EXPECT_TRUE(choice.past_caches());
}

TEST(StoreChoice, TheFirstTurnsThroughTheCachesAreNotAllOfATrial) {
  StoreChoice choice = past_the_caches();
  // Each line of a ring of 256 frames of 8 KiB comes from memory once.
  uint64_t through = 0;
  write(choice, 2 * kGiB, [&](bool is_past, uint64_t) -> uint64_t {
    through = is_past ? 0 : through + kTurnBytes;
    return is_past ? 40'000 : through <= 256 * 8192 ? 160'000 : 15'000;
  });
  EXPECT_FALSE(choice.past_caches());
}

TEST(StoreChoice, TrialsInVainBecomeRarer) {
  StoreChoice choice = past_the_caches();
  EXPECT_GT(kGiB - write(choice, kGiB, kSlowLines), 0U);
  write(choice, 16 * kGiB, kSlowLines);
  const uint64_t through = 32 * kGiB - write(choice, 32 * kGiB, kSlowLines);
  EXPECT_GE(through, 3 * StoreChoice::kTrialThroughBytes);
  EXPECT_LE(through, 5 * StoreChoice::kTrialThroughBytes);
}

TEST(StoreChoice, TurnsThatWereInterruptedSayNothing) {
  StoreChoice choice;
  const uint64_t past = write(choice, 8 * kGiB, [](bool is_past, uint64_t written) -> uint64_t {
    const bool interrupted = !is_past && (written / kTurnBytes) % 4 == 0;
    return interrupted ? StoreChoice::kInterruptedNs + 1 : is_past ? 40'000 : 20'000;
  });
  EXPECT_LE(past, 9 * StoreChoice::kTrialPastBytes);
}

TEST(StoreChoice, ShortTurnsAreNotMeasured) {
  StoreChoice choice;
  write(choice, kGiB / 4, always(400'000, 1), StoreChoice::kBytesMin / 2);
  EXPECT_FALSE(choice.past_caches());
  write(choice, 2 * kGiB, always(400'000, 1), StoreChoice::kBytesMin);
  EXPECT_TRUE(choice.past_caches());
}

TEST(StoreChoice, WhatOnlyTheTrialMeasuredIsNoReason) {
  StoreChoice choice;
  for (uint64_t written = 0; written < kGiB;) {
    const uint64_t bytes = choice.past_caches() ? kTurnBytes : StoreChoice::kBytesMin / 2;
    choice.turn(bytes, 20'000);
    written += bytes;
  }
  EXPECT_FALSE(choice.past_caches());
}

}  // namespace
}  // namespace sluice
