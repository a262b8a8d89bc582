// SPDX-License-Identifier: Apache-2.0
#include "control/leg/arrival.h"

#include <gtest/gtest.h>

#include "control/words/terms.h"

namespace sluice::transfer {
namespace {

struct Case {
  Arrival arrival;
  board::FlowFigures figures{};
  uint64_t now_ns = kSecondNs;

  Case() { arrival.begin({.peer = "beta", .peer_ports = {47003, 47000}, .own_ports = {47100}}); }
  std::string source(uint64_t bytes_done = 0) {
    for (int i = 0; i < 4; ++i) arrival.look_at_source(figures, bytes_done, now_ns += kSecondNs);
    return arrival.waiting_for();
  }
  std::string destination(bool source_blames_network) {
    for (int i = 0; i < 4; ++i)
      arrival.look_at_destination(figures, source_blames_network, now_ns += kSecondNs);
    return arrival.waiting_for();
  }
};

TEST(Arrival, ASourceThatHasSentNothingMissesNothing) {
  Case one;
  EXPECT_EQ(one.source(), "");
  EXPECT_TRUE(one.arrival.evidence().empty());
}

TEST(Arrival, ASourceSaysAtWhichPortsOfItsPeerNothingArrives) {
  Case one;
  one.figures.chunks = 40;
  one.figures.retransmitted_chunks = 2;
  one.figures.statuses = 7;
  EXPECT_EQ(one.source(),
            "network (no data arrives at beta's UDP ports 47000 to 47003: let UDP through its firewall)");
  const auto evidence = one.arrival.evidence();
  ASSERT_EQ(evidence.size(), 2U);
  EXPECT_EQ(evidence[0], "no data arrives at beta's UDP ports 47000 to 47003 (sent 42 datagrams)");
  EXPECT_EQ(evidence[1], "let UDP through the firewall of beta, and those on the path");
  one.figures.peer_datagrams = 1;
  EXPECT_EQ(one.source(), "") << "one has arrived";
  EXPECT_TRUE(one.arrival.evidence().empty());
}

// Then nobody can say which way it is that is closed.
TEST(Arrival, WithoutAnyAnswerBothWaysAreNamed) {
  Case one;
  one.figures.chunks = 40;
  EXPECT_EQ(one.source(),
            "network (no answer comes from beta's UDP ports 47000 to 47003: let UDP through the firewalls)");
  const auto evidence = one.arrival.evidence();
  ASSERT_EQ(evidence.size(), 2U);
  EXPECT_NE(evidence[1].find("this node's UDP port 47100"), std::string::npos) << evidence[1];
  EXPECT_EQ(one.source(1), "") << "the peer says over the control connection that it has something";
}

TEST(Arrival, IsNotJudgedBeforeDataCouldHaveCome) {
  Case one;
  one.figures.chunks = 40;
  one.arrival.look_at_source(one.figures, 0, one.now_ns);
  one.arrival.look_at_source(one.figures, 0, one.now_ns + Arrival::kMissedNs - 1);
  EXPECT_EQ(one.arrival.waiting_for(), "");
  one.arrival.look_at_source(one.figures, 0, one.now_ns + Arrival::kMissedNs);
  EXPECT_NE(one.arrival.waiting_for(), "");
}

TEST(Arrival, ADestinationThatGotNothingSaysSoIfItsSourceBlamesTheNetwork) {
  Case one;
  EXPECT_EQ(one.destination(false), "") << "the source may wait for its disk";
  EXPECT_EQ(one.destination(true),
            "network (nothing has arrived at this node's UDP port 47100: let UDP through its firewall)");
  EXPECT_TRUE(one.arrival.evidence().empty()) << "the source's verdict has them";
  one.figures.chunks = 1;
  EXPECT_EQ(one.destination(true), "");
}

}  // namespace
}  // namespace sluice::transfer
