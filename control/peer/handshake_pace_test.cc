// SPDX-License-Identifier: Apache-2.0
#include "control/peer/handshake_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sluice::peer {
namespace {

constexpr uint64_t kMsNs = 1'000'000;
constexpr uint64_t kStartNs = 5'000'000'000;
constexpr HandshakePace::Limits kLimits{.strangers = {.per_s = 100, .at_once = 5},
                                        .known_address = {.per_s = 1000, .at_once = 2},
                                        .known_addresses = 3};

std::string address(uint32_t number) { return "10.0.0." + std::to_string(number); }

TEST(HandshakePace, StrangersOfAllAddressesShareOnePace) {
  HandshakePace pace(kLimits);
  std::vector<uint64_t> begins_ns;
  for (uint32_t i = 0; i < 105; ++i) begins_ns.push_back(pace.take(address(i), kStartNs).begins_ns);
  EXPECT_EQ(std::ranges::count(begins_ns, kStartNs), 5);
  EXPECT_EQ(begins_ns.back(), kStartNs + 1000 * kMsNs);
  EXPECT_EQ(pace.known_addresses(), 0U) << "it keeps nothing of them";
}

TEST(HandshakePace, WhoComesNoFasterThanThePaceNeverWaits) {
  HandshakePace pace(kLimits);
  for (uint64_t now_ns = kStartNs; now_ns < 10 * kStartNs; now_ns += 10 * kMsNs)
    EXPECT_EQ(pace.take("10.0.0.1", now_ns).begins_ns, now_ns);
}

TEST(HandshakePace, AnyWindowHasNoMoreThanThePaceAndThoseAtOnce) {
  HandshakePace pace(kLimits);
  std::vector<uint64_t> begins_ns;
  uint64_t now_ns = kStartNs;
  for (uint32_t i = 0; i < 3000; ++i) {
    now_ns += i % 97 == 0 ? 200 * kMsNs : i * 7919 % 13 * kMsNs;
    begins_ns.push_back(pace.take(address(i % 7), now_ns).begins_ns);
    EXPECT_GE(begins_ns.back(), now_ns);
  }
  ASSERT_TRUE(std::ranges::is_sorted(begins_ns)) << "first come, first served";
  for (size_t from = 0; from < begins_ns.size(); ++from) {
    const auto end = std::ranges::upper_bound(begins_ns, begins_ns[from] + 100 * kMsNs);
    EXPECT_LE(end - begins_ns.begin() - static_cast<ptrdiff_t>(from), 5 + 10);
  }
}

TEST(HandshakePace, AnAddressAtWhichSomebodyIsTrustedIsNotHeldUpByStrangers) {
  HandshakePace pace(kLimits);
  pace.trusted("192.0.2.1", kStartNs);
  for (uint32_t i = 0; i < 1000; ++i) pace.take(address(i), kStartNs);
  const HandshakePace::Turn turn = pace.take("192.0.2.1", kStartNs);
  EXPECT_TRUE(turn.known);
  EXPECT_EQ(turn.begins_ns, kStartNs);
  EXPECT_EQ(pace.take("192.0.2.1", kStartNs).begins_ns, kStartNs);
  EXPECT_EQ(pace.take("192.0.2.1", kStartNs).begins_ns, kStartNs + kMsNs) << "it has a pace, too";
}

TEST(HandshakePace, WhoGoesAwayBeforeItsTurnHoldsNobodyUp) {
  HandshakePace pace(kLimits);
  pace.trusted("192.0.2.1", kStartNs);
  for (uint32_t i = 0; i < 10'000; ++i) {
    pace.give_back(address(i), pace.take(address(i), kStartNs));
    pace.give_back("192.0.2.1", pace.take("192.0.2.1", kStartNs));
  }
  EXPECT_EQ(pace.take("10.0.0.1", kStartNs).begins_ns, kStartNs);
  EXPECT_EQ(pace.take("192.0.2.1", kStartNs).begins_ns, kStartNs);
  pace.give_back("of an address that is forgotten", {.begins_ns = kStartNs, .known = true});
}

TEST(HandshakePace, ItKnowsSoManyAddressesAndForgetsTheOneOfTheLongestAgo) {
  HandshakePace pace(kLimits);
  for (uint32_t i = 0; i < 3; ++i) pace.trusted(address(i), kStartNs + i);
  pace.trusted(address(0), kStartNs + 10);
  pace.trusted(address(3), kStartNs + 11);
  EXPECT_EQ(pace.known_addresses(), 3U);
  EXPECT_TRUE(pace.take(address(0), kStartNs).known);
  EXPECT_FALSE(pace.take(address(1), kStartNs).known);
}

}  // namespace
}  // namespace sluice::peer
