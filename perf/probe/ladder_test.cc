// Each policy on virtual time: what it sends, and what a stall makes of it.
// SPDX-License-Identifier: Apache-2.0
#include "perf/probe/ladder.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::probe {
namespace {

constexpr uint64_t kStartNs = 5'000'000'123;
// 1 Gbit/s of 10000 bytes on the wire: one frame in 80 us, 12500 a second, 12.5 a millisecond.
constexpr Pace kPace{.rate_bps = 1'000'000'000, .wire_bytes = 10'000, .start_ns = kStartNs};
constexpr uint64_t kFrameNs = 80'000;
constexpr uint64_t kTurnNs = 10'000;

// Times of the frames that leave in [from, to) of the pace, looked at every kTurnNs, at most `burst` a turn.
template <typename Policy>
std::vector<uint64_t> drive(Policy& policy, uint64_t from_ns, uint64_t to_ns, uint32_t burst = 100'000) {
  std::vector<uint64_t> times_ns;
  for (uint64_t at = from_ns; at < to_ns; at += kTurnNs) {
    for (uint32_t n = 0; n < burst && policy.ready(kStartNs + at); ++n) {
      policy.sent(kStartNs + at);
      times_ns.push_back(at);
    }
  }
  return times_ns;
}

uint64_t longest_burst(const std::vector<uint64_t>& times_ns) {
  uint64_t longest = 0;
  for (size_t i = 0, first = 0; i < times_ns.size(); ++i) {
    if (times_ns[i] != times_ns[first]) first = i;
    longest = std::max<uint64_t>(longest, i - first + 1);
  }
  return longest;
}

TEST(Ladder, UnpacedSendsWheneverItIsAsked) {
  Unpaced policy(kPace);
  EXPECT_EQ(drive(policy, 0, 10 * kTurnNs, 32).size(), 320U);
}

TEST(Ladder, SlotSecondSendsTheBudgetAtOnceAtEachSecond) {
  SlotSecond policy(kPace);
  const auto times_ns = drive(policy, 0, 3 * kSecondNs);
  ASSERT_EQ(times_ns.size(), 3 * 12'500U);
  EXPECT_EQ(longest_burst(times_ns), 12'500U);
  EXPECT_EQ(times_ns[12'500], kSecondNs);
  EXPECT_EQ(policy.next_ns(), kStartNs + 3 * kSecondNs);
}

TEST(Ladder, SlotMillisecondLosesTheFractionOfAFrame) {
  SlotMillisecond policy(kPace);
  const auto times_ns = drive(policy, 0, kSecondNs);
  EXPECT_EQ(times_ns.size(), 12'000U);
  EXPECT_EQ(longest_burst(times_ns), 12U);
}

TEST(Ladder, SlotsNeitherMakeUpForMissedOnesNorSendNothing) {
  SlotMillisecond policy(kPace);
  EXPECT_EQ(drive(policy, 0, kTurnNs).size(), 12U);
  EXPECT_EQ(drive(policy, 50 * kTurnNs * 100, 50 * kTurnNs * 100 + kTurnNs).size(), 12U);
  SlotMillisecond slow({.rate_bps = 1'000'000, .wire_bytes = 10'000, .start_ns = kStartNs});
  EXPECT_EQ(drive(slow, 0, 10 * 1'000'000).size(), 10U);
}

TEST(Ladder, HistorySendsOneFrameAtATimeAtTheRate) {
  History policy(kPace);
  const auto times_ns = drive(policy, 0, 3 * kSecondNs);
  EXPECT_NEAR(static_cast<double>(times_ns.size()), 37'500, 1);
  EXPECT_EQ(longest_burst(times_ns), 1U);
}

TEST(Ladder, HistoryRepeatsTheBurstBehindAStallEverySecond) {
  History policy(kPace);
  drive(policy, 0, kSecondNs);
  constexpr uint64_t kStallNs = 8'000'000;
  const auto after = drive(policy, kSecondNs + kStallNs, 2 * kSecondNs);
  const auto burst = longest_burst(after);
  constexpr uint64_t kMissed = kStallNs / kFrameNs;
  EXPECT_GE(burst, kMissed - 1);
  EXPECT_LE(burst, kMissed + 1);
  EXPECT_EQ(longest_burst(drive(policy, 2 * kSecondNs, 3 * kSecondNs)), burst);
}

TEST(Ladder, BucketSendsAtTheRateAndForgetsAStall) {
  Bucket policy(kPace);
  const auto times_ns = drive(policy, 0, kSecondNs);
  EXPECT_NEAR(static_cast<double>(times_ns.size()), 12'500, 3);
  const auto after = drive(policy, kSecondNs + 8'000'000, 2 * kSecondNs);
  EXPECT_LE(longest_burst(after), 3U);
}

}  // namespace
}  // namespace sluice::probe
