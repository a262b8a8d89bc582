// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/store_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
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
    choice.turn(turn_bytes, cost_ns(is_past, written), false);
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
    choice.turn(bytes, 20'000, false);
    written += bytes;
  }
  EXPECT_FALSE(choice.past_caches());
}

// A sender at a pace, in virtual time: what is due waits for it.
class PacedSender {
 public:
  explicit PacedSender(double bytes_per_ns) : bytes_per_ns_(bytes_per_ns) {}

  // Until so many bytes are due; returns the most that were late.
  uint64_t send(uint64_t bytes, const Cost& cost_ns) {
    double most_late = 0;
    for (const double end_ns = now_ns_ + static_cast<double>(bytes) / bytes_per_ns_; now_ns_ < end_ns;) {
      const double late = now_ns_ * bytes_per_ns_ - static_cast<double>(sent_);
      most_late = std::max(most_late, late);
      if (late < 8192) {
        choice_.turn(0, 50, true);  // as it is in turns that send the last that is due
        now_ns_ += 1'000;
        continue;
      }
      const uint64_t turn = std::min<uint64_t>(kTurnBytes, static_cast<uint64_t>(late) / 8192 * 8192);
      const uint64_t took_ns = cost_ns(choice_.past_caches(), sent_) * turn / kTurnBytes;
      past_ += choice_.past_caches() ? turn : 0;
      choice_.turn(turn, took_ns, false);
      now_ns_ += static_cast<double>(took_ns);
      sent_ += turn;
    }
    return static_cast<uint64_t>(most_late);
  }
  uint64_t past() const { return past_; }

 private:
  StoreChoice choice_;
  const double bytes_per_ns_;
  double now_ns_ = 0;
  uint64_t sent_ = 0, past_ = 0;
};

constexpr double k25Gbps = 25.0 / 8;
constexpr uint64_t kPacerRemembers = 25'000'000 / 8;  // bytes of 1 ms

// Slow lines carry 13 Gbit/s, past the caches 52.
TEST(StoreChoice, WhatSlowLinesCostAPaceComesOffItsIdleTime) {
  PacedSender sender(k25Gbps);
  EXPECT_LT(sender.send(3 * kGiB, kQuickLines), 3 * kTurnBytes);
  EXPECT_LE(sender.past(), 4 * StoreChoice::kTrialPastBytes);
  EXPECT_LT(sender.send(16 * kGiB, kSlowLines), kPacerRemembers);
  EXPECT_GT(sender.past(), 15 * kGiB);
}

TEST(StoreChoice, APaceIsLostForMillisecondsWhereATrialWasJustInVain) {
  PacedSender sender(k25Gbps);
  sender.send(kGiB / 16 + (2 << 20), kQuickLines);  // right behind the first
  EXPECT_EQ(sender.past(), StoreChoice::kTrialPastBytes);
  EXPECT_LT(sender.send(kGiB, kSlowLines), 2 * StoreChoice::kHastyBytes);
}

TEST(StoreChoice, WhoKeepsNoPaceAnyMoreFollowsWhatIsFaster) {
  StoreChoice choice = past_the_caches();
  choice.turn(0, 50, true);
  EXPECT_LT(write(choice, 4 * kGiB, kQuickLines), kGiB);
  EXPECT_FALSE(choice.past_caches());
}

TEST(StoreChoice, APaceThatSlowLinesKeepStaysInTheCaches) {
  PacedSender sender(k25Gbps / 5);
  sender.send(3 * kGiB, kQuickLines);
  EXPECT_LT(sender.send(kGiB / 2, kSlowLines), 3 * kTurnBytes);
  EXPECT_LE(sender.past(), 4 * StoreChoice::kTrialPastBytes);
}

// A sender that is behind for another reason tries in vain, and ever more rarely.
TEST(StoreChoice, HastyTrialsInVainBecomeRarer) {
  StoreChoice choice;
  uint64_t past = 0;
  for (uint64_t written = 0; written < 16 * kGiB; written += 32 << 20) {
    choice.turn(0, 50, true);
    past += write(choice, 32 << 20, kQuickLines);
  }
  EXPECT_FALSE(choice.past_caches());
  EXPECT_LE(past, 26 * StoreChoice::kTrialPastBytes);
}

}  // namespace
}  // namespace sluice
