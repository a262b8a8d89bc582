// The life of a neighbour: sought, reachable, probed, lost; and what a stranger's word does to it.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/neighbour_table.h"

#include <gtest/gtest.h>

namespace sluice::net {
namespace {

using Ask = NeighbourTable::Ask;
using State = NeighbourTable::State;
using Word = NeighbourTable::Word;

constexpr LinkAddress kHers = {{2, 0, 0, 0, 0, 7}};
constexpr LinkAddress kStrangers = {{2, 0, 0, 0, 0, 66}};

Address host_numbered(uint8_t number) {
  Address ip;
  ip.bytes[10] = ip.bytes[11] = 0xFF;
  ip.bytes[12] = 10;
  ip.bytes[15] = number;
  return ip;
}

class NeighbourTableTest : public ::testing::Test {
 protected:
  NeighbourTable::Way want(uint64_t confirmed_ns = 0) { return table_.want(kIp, confirmed_ns, now_ns_); }
  bool hear(const LinkAddress& link, Word word) { return table_.hear(kIp, link, word, now_ns_); }
  State state() const { return table_.state(kIp); }
  void reach() {
    want();
    hear(kHers, Word::kAnswer);
    ASSERT_EQ(state(), State::kReachable);
  }
  // Asks whenever it is to be asked, with a neighbour that never answers, until it is lost.
  uint64_t probes_until_lost() {
    uint64_t probes = 0;
    for (int i = 0; i < 1000; ++i) {
      const auto way = want();
      if (way.lost) return probes;
      EXPECT_TRUE(way.known) << "it is used while it is probed";
      EXPECT_NE(way.ask, Ask::kAll);
      if (way.ask == Ask::kNeighbour) ++probes;
      EXPECT_GT(way.again_ns, now_ns_);
      now_ns_ = way.again_ns;
    }
    ADD_FAILURE() << "it is never lost";
    return probes;
  }

  const Address kIp = host_numbered(2);
  NeighbourTable table_;
  uint64_t now_ns_ = 1'000'000'000'000;
};

TEST_F(NeighbourTableTest, IsSoughtOftenThenSeldomUntilItAnswers) {
  uint64_t asked = 0;
  const uint64_t began_ns = now_ns_;
  for (; now_ns_ < began_ns + 11'000'000'000; now_ns_ += 10'000'000) {
    const auto way = want();
    EXPECT_FALSE(way.known);
    if (way.ask == Ask::kAll) ++asked;
  }
  EXPECT_EQ(asked, 20U);
  EXPECT_FALSE(hear(kHers, Word::kAnswer));
  EXPECT_TRUE(want().known);
  EXPECT_EQ(want().link, kHers);
}

TEST_F(NeighbourTableTest, AnswersThatNobodyAskedForAreNothing) {
  hear(kHers, Word::kAnswer);
  hear(kHers, Word::kAnnouncement);
  EXPECT_EQ(state(), State::kNone);
}

TEST_F(NeighbourTableTest, WhoAsksIsKnownAndIsProbedOnceItIsUsed) {
  hear(kHers, Word::kQuestion);
  EXPECT_EQ(state(), State::kHeard);
  const auto way = want();
  EXPECT_TRUE(way.known);
  EXPECT_EQ(way.ask, Ask::kNeighbour);
  hear(kHers, Word::kAnswer);
  EXPECT_EQ(state(), State::kReachable);
}

TEST_F(NeighbourTableTest, ConfirmedByItsFlowsItIsNeverAsked) {
  reach();
  for (int i = 0; i < 1000; ++i) {
    now_ns_ += 250'000'000;
    EXPECT_EQ(want(now_ns_ - 1'000'000).ask, Ask::kNobody);
  }
}

TEST_F(NeighbourTableTest, UnconfirmedItIsProbedAloneAndAnAnswerIsEnough) {
  reach();
  now_ns_ += NeighbourTable::kReachableNs;
  EXPECT_EQ(want().ask, Ask::kNeighbour);
  EXPECT_EQ(state(), State::kProbed);
  EXPECT_EQ(want().ask, Ask::kNobody) << "not twice at once";
  hear(kHers, Word::kAnswer);
  EXPECT_EQ(state(), State::kReachable);
  EXPECT_EQ(want().ask, Ask::kNobody);
}

TEST_F(NeighbourTableTest, SilentItIsLostAndSoughtAnew) {
  reach();
  now_ns_ += NeighbourTable::kReachableNs;
  EXPECT_EQ(probes_until_lost(), NeighbourTable::kProbesMax);
  EXPECT_EQ(state(), State::kSought);
  EXPECT_FALSE(want().known);
  hear(kStrangers, Word::kAnswer);  // it moved
  EXPECT_EQ(want().link, kStrangers);
}

TEST_F(NeighbourTableTest, AnOldConfirmationDoesNotEndAProbe) {
  reach();
  const uint64_t long_ago_ns = now_ns_;
  now_ns_ += NeighbourTable::kReachableNs;
  want(long_ago_ns);
  EXPECT_EQ(state(), State::kProbed);
  now_ns_ += 1;
  want(now_ns_);
  EXPECT_EQ(state(), State::kReachable);
}

// Whatever it says it is, and however often it says it.
TEST_F(NeighbourTableTest, AStrangerChangesNothingOfAReachableOne) {
  for (const Word word : {Word::kAnswer, Word::kQuestion, Word::kAnnouncement}) {
    table_ = {};
    reach();
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(hear(kStrangers, word));
      const auto way = want();
      EXPECT_TRUE(way.known);
      EXPECT_EQ(way.link, kHers);
      if (way.ask == Ask::kNeighbour) hear(kHers, Word::kAnswer);
      now_ns_ += 50'000'000;
    }
  }
}

TEST_F(NeighbourTableTest, AStrangerIsRefutedByTheFlowsOfAnUnhurriedNeighbour) {
  reach();
  hear(kStrangers, Word::kAnswer);
  EXPECT_EQ(state(), State::kProbed);
  now_ns_ += 1'000'000;
  EXPECT_EQ(want(now_ns_).link, kHers);
  EXPECT_EQ(state(), State::kReachable);
}

TEST_F(NeighbourTableTest, ANeighbourThatReallyMovedIsFollowedAfterAMoment) {
  reach();
  EXPECT_TRUE(hear(kStrangers, Word::kAnnouncement));
  const uint64_t began_ns = now_ns_;
  EXPECT_EQ(probes_until_lost(), NeighbourTable::kProbesMax);
  EXPECT_LT(now_ns_ - began_ns, 1'000'000'000U);
  hear(kStrangers, Word::kAnswer);
  EXPECT_EQ(want().link, kStrangers);
}

TEST_F(NeighbourTableTest, TwoThatClaimAnUnusedAddressAreBothAsked) {
  hear(kHers, Word::kQuestion);
  EXPECT_TRUE(hear(kStrangers, Word::kQuestion));
  const auto way = want();
  EXPECT_FALSE(way.known);
  EXPECT_EQ(way.ask, Ask::kAll);
}

// The stranger asks for us while she is sought, and is believed for a moment.
TEST_F(NeighbourTableTest, AnAnswerAfterAStrangersQuestionIsNotLost) {
  EXPECT_EQ(want().ask, Ask::kAll);
  hear(kStrangers, Word::kQuestion);
  EXPECT_EQ(want().link, kStrangers);
  EXPECT_TRUE(hear(kHers, Word::kAnswer));
  EXPECT_EQ(want().ask, Ask::kAll);
  hear(kHers, Word::kAnswer);
  EXPECT_EQ(want().link, kHers);
  EXPECT_EQ(state(), State::kReachable);
}

TEST_F(NeighbourTableTest, AFixedOneIsNeitherAskedNorChanged) {
  table_.fix(kIp, kHers);
  for (const Word word : {Word::kAnswer, Word::kQuestion, Word::kAnnouncement}) {
    EXPECT_TRUE(hear(kStrangers, word));
  }
  now_ns_ += 100 * NeighbourTable::kReachableNs;
  const auto way = want();
  EXPECT_TRUE(way.known);
  EXPECT_EQ(way.link, kHers);
  EXPECT_EQ(way.ask, Ask::kNobody);
}

TEST_F(NeighbourTableTest, StrangersWhoAskTakeNoPlaceThatIsUsed) {
  reach();
  for (uint32_t i = 0; i < 100'000; ++i) {
    Address ip = host_numbered(static_cast<uint8_t>(3 + i % 250));
    ip.bytes[13] = static_cast<uint8_t>(i / 250);
    table_.hear(ip, kStrangers, Word::kQuestion, now_ns_);
  }
  EXPECT_EQ(want().link, kHers);
  EXPECT_EQ(state(), State::kReachable);
}

}  // namespace
}  // namespace sluice::net
