// Who shares a path, and how.
// SPDX-License-Identifier: Apache-2.0
#include "control/rate/paths.h"

#include <gtest/gtest.h>

#include <vector>

#include "dataplane/base/time_for_test.h"

namespace sluice::rate {
namespace {

// Sessions that send as they may over a path that loses nothing and has no queue.
struct Session {
  std::unique_ptr<Share> share;
  PathReport report{.rtt_ns = kMs, .rtt_min_ns = kMs, .delay_known = true, .datagram_bytes = 8300};
  bool busy = true;
  double owed = 0;  // datagrams
  PathReport past;  // of its flows, before it joined
};

struct Node {
  Paths paths;
  std::vector<Session> sessions;
  uint64_t now_ns = 1'000 * kMs;

  Session& join(const std::string& peer, Mode mode, uint64_t cap_bps) {
    sessions.push_back({.share = paths.join(peer, {.mode = mode, .cap_bps = cap_bps}, now_ns)});
    return sessions.back();
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      now_ns += kMs;
      for (Session& each : sessions) {
        PathReport& report = each.report;
        if (each.busy) each.owed += static_cast<double>(each.share->rate_bps()) / 8 / 8300 / 1000;
        report.sent = each.past.sent + static_cast<uint64_t>(each.owed);
        report.received_end = each.past.received_end + static_cast<uint64_t>(each.owed);
        report.received = each.past.received + static_cast<uint64_t>(each.owed);
        ++report.statuses;
        report.last_peer_ns = now_ns;
        (void)each.share->step(report, each.busy, now_ns);
      }
    }
  }
};

TEST(Paths, SessionsToOnePeerDivideWhatOneLawAllows) {
  for (const Mode mode : {Mode::kAdaptive, Mode::kCubic}) {
    Node node;
    for (int i = 0; i < 3; ++i) node.join("peer", mode, 3'000'000'000);
    node.run(2000);
    uint64_t sum = 0;
    for (const Session& each : node.sessions) sum += each.share->rate_bps();
    EXPECT_GT(sum, 6'000'000'000U);
    EXPECT_LE(sum, 9'000'000'000U);
    for (const Session& each : node.sessions)
      EXPECT_NEAR(static_cast<double>(each.share->rate_bps()), static_cast<double>(sum) / 3, 1e6);
  }
}

// A share of flows that were adopted: they have counted for long, and lost much.
TEST(Paths, WhatHappenedBeforeAShareIsNoNews) {
  for (const Mode mode : {Mode::kAdaptive, Mode::kCubic}) {
    Node node;
    node.join("peer", mode, 3'000'000'000);
    node.join("other", mode, 3'000'000'000);
    PathReport& old = node.sessions.back().report;
    old.sent = old.received_end = 1'000'000;
    old.received = 600'000;
    old.statuses = 1000;
    node.sessions.back().past = old;
    for (int i = 0; i < 500; ++i) {
      node.run(1);
      ASSERT_EQ(node.sessions[1].share->rate_bps(), node.sessions[0].share->rate_bps()) << i;
    }
  }
}

TEST(Paths, WhoHasNothingToSendLeavesItToTheOthers) {
  Node node;
  node.join("peer", Mode::kAdaptive, 4'000'000'000);
  node.join("peer", Mode::kAdaptive, 4'000'000'000);
  node.run(2000);
  const uint64_t both = node.sessions[0].share->rate_bps();
  node.sessions[1].busy = false;
  node.run(50);
  EXPECT_GT(node.sessions[0].share->rate_bps(), both * 9 / 10);
  EXPECT_GT(node.sessions[1].share->rate_bps(), 0U) << "its probes still leave";
  EXPECT_LT(node.sessions[1].share->rate_bps(), both / 10);
}

TEST(Paths, NobodyIsAboveItsOwnCapAndOthersTakeWhatIsLeft) {
  Node node;
  node.join("peer", Mode::kAdaptive, 1'000'000'000);
  node.join("peer", Mode::kAdaptive, 8'000'000'000);
  node.run(2000);
  EXPECT_EQ(node.sessions[0].share->rate_bps(), 1'000'000'000U);
  EXPECT_GT(node.sessions[1].share->rate_bps(), 2'000'000'000U);
  node.sessions[1].share->set_cap(500'000'000);
  EXPECT_LE(node.sessions[1].share->rate_bps(), 500'000'000U) << "at once";
  node.run(50);
  EXPECT_LE(node.sessions[0].share->rate_bps() + node.sessions[1].share->rate_bps(), 1'500'000'000U);
}

TEST(Paths, WhatASessionNeedsToBeInTimeItGetsFirst) {
  for (const Mode mode : {Mode::kAdaptive, Mode::kCubic}) {
    Node node;
    node.join("peer", mode, 1'000'000'000'000);
    node.join("peer", mode, 1'000'000'000'000);
    node.run(10);
    const uint64_t both_bps = node.sessions[0].share->rate_bps() + node.sessions[1].share->rate_bps();
    EXPECT_LT(node.sessions[0].share->rate_bps(), both_bps * 3 / 4);
    node.sessions[0].share->reserve(both_bps * 3 / 4);
    node.run(1);
    EXPECT_GE(node.sessions[0].share->rate_bps(), both_bps * 3 / 4);
    EXPECT_GE(node.sessions[1].share->rate_bps(), both_bps / 10);
    node.sessions[0].share->reserve(0);
    node.run(1);
    EXPECT_EQ(node.sessions[0].share->rate_bps(), node.sessions[1].share->rate_bps());
  }
}

TEST(Paths, ThePeersDiskHasAWordInEveryMode) {
  for (const Mode mode : {Mode::kAdaptive, Mode::kCubic, Mode::kFixed}) {
    Node node;
    node.join("peer", mode, 2'000'000'000);
    node.join("peer", mode, 2'000'000'000);
    node.run(1000);
    node.sessions[0].report.advice_bps = 300'000'000;
    node.run(10);
    EXPECT_EQ(node.sessions[0].share->rate_bps(), 300'000'000U);
    EXPECT_GT(node.sessions[1].share->rate_bps(), 1'500'000'000U) << "who has another disk takes the rest";
    node.sessions[0].report.advice_bps = 0;
    node.run(500);
    EXPECT_GT(node.sessions[0].share->rate_bps(), 1'500'000'000U);
  }
}

TEST(Paths, AFixedRateIsNobodyElses) {
  Node node;
  node.join("peer", Mode::kFixed, 2'000'000'000);
  node.join("peer", Mode::kFixed, 2'000'000'000);
  node.run(200);
  for (const Session& each : node.sessions) EXPECT_EQ(each.share->rate_bps(), 2'000'000'000U);
}

TEST(Paths, OtherPeersAndModesHavePathsOfTheirOwn) {
  Node node;
  node.join("a", Mode::kAdaptive, 2'000'000'000);
  node.run(1000);
  const uint64_t alone = node.sessions[0].share->rate_bps();
  node.join("b", Mode::kAdaptive, 2'000'000'000);
  node.join("a", Mode::kCubic, 2'000'000'000);
  node.run(1);
  EXPECT_EQ(node.sessions[0].share->rate_bps(), alone);
}

TEST(Paths, WhoLeavesTakesNothingWithIt) {
  Node node;
  node.join("peer", Mode::kAdaptive, 2'000'000'000);
  node.join("peer", Mode::kAdaptive, 2'000'000'000);
  node.run(1000);
  node.sessions.pop_back();
  node.run(50);
  EXPECT_EQ(node.sessions[0].share->rate_bps(), 2'000'000'000U);
}

}  // namespace
}  // namespace sluice::rate
