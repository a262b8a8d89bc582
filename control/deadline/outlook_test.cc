// SPDX-License-Identifier: Apache-2.0
#include "control/deadline/outlook.h"

#include <gtest/gtest.h>

namespace sluice::deadline {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kMb = 1'000'000;

const Path kBeta{.peer = "beta"};

Load running(const Path& path, uint64_t bytes_left, double rate_bps = 0) {
  return {.path = path, .running = true, .bytes_left = bytes_left, .cap_bps = 1e10, .rate_bps = rate_bps};
}
Load waiting(const Path& path, uint64_t bytes_left, int64_t order) {
  return {.path = path, .order = order, .bytes_left = bytes_left, .cap_bps = 1e10};
}

struct Node {
  Outlook outlook;
  uint64_t now_ns = 1000 * kSecondNs;

  explicit Node(uint32_t places = 31) : outlook(places) {}
  // A session alone on its path, which then ends.
  void measure(const Path& path, double rate_bps, int seconds = 20, Limit limit = Limit::kPath) {
    outlook.set("measures", running(path, 1, rate_bps));
    for (int i = 0; i < seconds; ++i) {
      now_ns += kSecondNs;
      outlook.sample("measures", {.rate_bps = rate_bps, .limit = limit}, now_ns);
    }
    outlook.remove("measures");
  }
  double ahead(const Load& load) const { return outlook.ahead_s("new", load, now_ns).value_or(-1); }
};

TEST(Outlook, KnowsThePathOfAPeerForAnHour) {
  Node node;
  EXPECT_FALSE(node.outlook.speed(kBeta, node.now_ns));
  node.measure(kBeta, 80e6, 2);
  EXPECT_FALSE(node.outlook.speed(kBeta, node.now_ns)) << "two seconds tell too little";
  node.measure(kBeta, 80e6);
  ASSERT_TRUE(node.outlook.speed(kBeta, node.now_ns));
  EXPECT_DOUBLE_EQ(node.outlook.speed(kBeta, node.now_ns)->mean_bps, 80e6);
  EXPECT_FALSE(node.outlook.speed({.peer = "gamma"}, node.now_ns));
  EXPECT_FALSE(node.outlook.speed({.peer = "beta", .outgoing = false}, node.now_ns));
  EXPECT_FALSE(node.outlook.speed({.peer = "beta", .generated = true}, node.now_ns)) << "that has no disk";
  EXPECT_FALSE(node.outlook.speed(kBeta, node.now_ns + Outlook::kRecentNs + kSecondNs));
}

TEST(Outlook, AShortSessionTellsAboutHowFastAPathIs) {
  Node node;
  EXPECT_EQ(node.outlook.about_bps(kBeta, node.now_ns), 0);
  node.outlook.brief(kBeta, 40e6, node.now_ns);
  EXPECT_DOUBLE_EQ(node.outlook.about_bps(kBeta, node.now_ns), 40e6);
  node.outlook.brief(kBeta, 20e6, node.now_ns);
  EXPECT_DOUBLE_EQ(node.outlook.about_bps(kBeta, node.now_ns), 30e6) << "one may have been unlucky";
  EXPECT_FALSE(node.outlook.speed(kBeta, node.now_ns)) << "no deadline is judged by it";
  EXPECT_EQ(node.outlook.about_bps(kBeta, node.now_ns + Outlook::kRecentNs + kSecondNs), 0);
  node.measure(kBeta, 80e6);
  EXPECT_DOUBLE_EQ(node.outlook.about_bps(kBeta, node.now_ns), 80e6) << "samples tell more";
}

TEST(Outlook, WhatSessionsTakeBesidesTheirDataIsKnownOfThoseThatEnded) {
  Node node;
  EXPECT_EQ(node.outlook.besides_s(kBeta, 100 * kMb, node.now_ns), 0);
  node.measure(kBeta, 80e6);
  node.outlook.ended(kBeta, {.bytes = 100 * kMb, .seconds = 11}, node.now_ns);
  node.outlook.ended(kBeta, {.bytes = 1 * kMb, .seconds = 1.6}, node.now_ns);
  EXPECT_DOUBLE_EQ(node.outlook.besides_s(kBeta, 1 * kMb, node.now_ns), 1.25);
  node.outlook.ended(kBeta, {.bytes = 10 * kMb, .seconds = 3.25, .cap_bps = 40e6}, node.now_ns);
  EXPECT_DOUBLE_EQ(node.outlook.besides_s(kBeta, 1 * kMb, node.now_ns), (1 + 1.5 + 1.25) / 3);
  EXPECT_EQ(node.outlook.besides_s({.peer = "gamma"}, kMb, node.now_ns), 0);
  EXPECT_EQ(node.outlook.besides_s(kBeta, kMb, node.now_ns + Outlook::kRecentNs + kSecondNs), 0);
}

// Each was too short for its rate to be measured: so the next one was admitted as the first, and late as it.
TEST(Outlook, SessionsThatWereTooShortToBeMeasuredTellWhatOneTakes) {
  Node node;
  node.outlook.ended(kBeta, {.bytes = 30 * kMb, .seconds = 2.5}, node.now_ns);
  EXPECT_DOUBLE_EQ(node.outlook.besides_s(kBeta, 30 * kMb, node.now_ns), 2.5);
  EXPECT_DOUBLE_EQ(node.outlook.besides_s(kBeta, 90 * kMb, node.now_ns), 2.5);
  EXPECT_EQ(node.outlook.besides_s(kBeta, 29 * kMb, node.now_ns), 0) << "fewer bytes may be faster";
}

TEST(Outlook, TheLastMinuteCounts) {
  Node node;
  node.measure(kBeta, 10e6, 100);
  node.measure(kBeta, 80e6, 60);
  EXPECT_DOUBLE_EQ(node.outlook.speed(kBeta, node.now_ns)->mean_bps, 80e6);
}

TEST(Outlook, WhatACapHeldDownIsALeastSpeed) {
  Node node;
  node.measure(kBeta, 80e6, 20, Limit::kCap);
  EXPECT_TRUE(node.outlook.speed(kBeta, node.now_ns)->at_least);
  node.measure(kBeta, 60e6, 20, Limit::kSourceDisk);
  EXPECT_TRUE(node.outlook.speed(kBeta, node.now_ns)->at_least) << "it was faster under a cap";
  node.measure(kBeta, 100e6, 20, Limit::kSourceDisk);
  EXPECT_FALSE(node.outlook.speed(kBeta, node.now_ns)->at_least);
  EXPECT_EQ(node.outlook.speed(kBeta, node.now_ns)->limit, Limit::kSourceDisk);
}

TEST(Outlook, SessionsThatShareAPathAreMeasuredTogetherAndOnce) {
  Node node;
  node.outlook.set("a", running(kBeta, kMb, 30e6));
  node.outlook.set("b", running(kBeta, kMb, 50e6));
  for (int i = 0; i < 10; ++i) {
    node.outlook.sample("a", {.rate_bps = 30e6}, node.now_ns);
    node.outlook.sample("b", {.rate_bps = 50e6, .limit = Limit::kCap}, node.now_ns);
  }
  const auto speed = node.outlook.speed(kBeta, node.now_ns);
  ASSERT_TRUE(speed);
  EXPECT_DOUBLE_EQ(speed->mean_bps, 80e6);
  EXPECT_DOUBLE_EQ(speed->samples, 10);
  EXPECT_FALSE(speed->at_least) << "one of them had what was left";
  EXPECT_DOUBLE_EQ(node.outlook.others_bps("a", kBeta), 50e6);
}

TEST(Ahead, NobodyWaitsForNobody) {
  Node node;
  EXPECT_EQ(node.ahead(waiting(kBeta, 100 * kMb, 1)), 0) << "nothing is known";
  node.measure(kBeta, 80e6);
  EXPECT_NEAR(node.ahead(waiting(kBeta, 100 * kMb, 1)), 0, 0.01);
  Load slow = waiting(kBeta, 100 * kMb, 1);
  slow.cap_bps = 8e6;
  EXPECT_NEAR(node.ahead(slow), 0, 0.01) << "its cap is not somebody else";
}

TEST(Ahead, ASessionThatRunsTakesItsPart) {
  Node node;
  node.measure(kBeta, 80e6);
  node.outlook.set("other", running(kBeta, 100 * kMb, 80e6));
  EXPECT_NEAR(node.ahead(waiting(kBeta, 100 * kMb, 1)), 10, 0.1) << "20 s instead of 10";
  EXPECT_NEAR(node.ahead(waiting(kBeta, 50 * kMb, 1)), 5, 0.1);
  node.outlook.set("other", running({.peer = "gamma"}, 100 * kMb, 80e6));
  EXPECT_NEAR(node.ahead(waiting(kBeta, 100 * kMb, 1)), 0, 0.01) << "another peer has another path";
}

TEST(Ahead, WhoComesFirstHasItsTurnFirst) {
  Node node(1);
  node.measure(kBeta, 80e6);
  node.outlook.set("runs", running(kBeta, 100 * kMb, 80e6));
  node.outlook.set("waits", waiting(kBeta, 200 * kMb, 5));
  EXPECT_NEAR(node.ahead(waiting(kBeta, 100 * kMb, 9)), 30, 0.1);
  EXPECT_NEAR(node.ahead(waiting(kBeta, 100 * kMb, 3)), 10, 0.1) << "it was asked for before";
  node.outlook.set("waits", waiting({.peer = "gamma"}, 200 * kMb, 5));
  EXPECT_NEAR(node.ahead(waiting(kBeta, 100 * kMb, 9)), 10, 0.1) << "nobody knows how long that takes";
  node.measure({.peer = "gamma"}, 40e6);
  EXPECT_NEAR(node.ahead(waiting(kBeta, 100 * kMb, 9)), 50, 0.1);
}

TEST(Ahead, WhatIsReservedIsNotTakenFromWhoHasIt) {
  Node node;
  node.measure(kBeta, 80e6);
  Load other = running(kBeta, 700 * kMb, 40e6);
  Load own = waiting(kBeta, 100 * kMb, 1);
  own.reserved_bps = 60e6;
  node.outlook.set("other", other);
  const double favoured_s = node.ahead(own);
  EXPECT_LT(favoured_s, 4) << "it gets 60 of 80 Mbit/s";
  other.reserved_bps = 64e6;
  node.outlook.set("other", other);
  EXPECT_GT(node.ahead(own), 35) << "64 of 80 Mbit/s are another's";
}

TEST(Ahead, AStandstillIsNoTime) {
  Node node(1);
  node.measure(kBeta, 80e6);
  Load stuck = running(kBeta, 100 * kMb);
  stuck.cap_bps = 0;
  node.outlook.set("stuck", stuck);
  EXPECT_FALSE(node.outlook.ahead_s("new", waiting(kBeta, 100 * kMb, 1), node.now_ns));
}

}  // namespace
}  // namespace sluice::deadline
