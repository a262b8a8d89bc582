// Who runs next, and that two nodes that are full never wait for each other.
// SPDX-License-Identifier: Apache-2.0
#include "control/node/queue/session_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>

namespace sluice::node {
namespace {

using Ids = std::vector<std::string>;
const std::string kOwn;
const std::string kPeer = "peer";

TEST(SessionQueue, RunsAsManyAsThereArePlacesInTheOrderInWhichTheyCame) {
  SessionQueue queue(4, 16);
  for (const char* id : {"a", "b", "c", "d", "e"}) queue.ask(id, kOwn);
  EXPECT_EQ(queue.admit(), (Ids{"a", "b", "c"})) << "one is kept for those whom others begin";
  EXPECT_EQ(queue.place("d"), 1U);
  EXPECT_EQ(queue.place("e"), 2U);
  EXPECT_EQ(queue.waiting(), 2U);
  EXPECT_EQ(queue.place("a"), 0U);
  queue.leave("b");
  EXPECT_EQ(queue.admit(), Ids{"d"});
  EXPECT_EQ(queue.place("e"), 1U);
}

TEST(SessionQueue, KeepsTheLastPlaceForTheOtherKind) {
  for (const auto& [first, second] : {std::pair(kOwn, kPeer), {kPeer, kOwn}}) {
    SessionQueue queue(3, 16);
    for (const char* id : {"a", "b", "c"}) queue.ask(id, first);
    EXPECT_EQ(queue.admit(), (Ids{"a", "b"}));
    queue.ask("x", second);
    queue.ask("y", second);
    EXPECT_EQ(queue.admit(), Ids{"x"}) << "though another came before";
    queue.leave("x");
    EXPECT_EQ(queue.admit(), Ids{"y"});
    queue.leave("a");
    EXPECT_EQ(queue.admit(), Ids{"c"});
  }
}

TEST(SessionQueue, APeerHasItsShareAndHoldsUpNobody) {
  SessionQueue queue(8, 2);
  for (const char* id : {"a", "b", "c"}) queue.ask(id, kPeer);
  queue.ask("x", "other");
  queue.ask("y", kOwn);
  EXPECT_EQ(queue.admit(), (Ids{"a", "x", "y", "b"})) << "its third waits, and nobody for it";
  EXPECT_EQ(queue.place("c"), 1U);
  queue.leave("x");
  EXPECT_TRUE(queue.admit().empty());
  queue.leave("a");
  EXPECT_EQ(queue.admit(), Ids{"c"});
}

TEST(SessionQueue, WhomAFileSystemHoldsUpLeavesItsPlaceToOthers) {
  SessionQueue queue(4, 2);
  for (const char* id : {"a", "b", "c", "d"}) queue.ask(id, kPeer);
  EXPECT_EQ(queue.admit(), (Ids{"a", "b"}));
  queue.set_held_up("a", true);
  EXPECT_EQ(queue.admit(), Ids{"c"});
  queue.set_held_up("b", true);
  queue.set_held_up("c", true);
  EXPECT_EQ(queue.admit(), Ids{"d"});
  EXPECT_TRUE(queue.runs("a")) << "it runs, whatever it waits for";
  for (const char* id : {"x", "y", "z"}) queue.ask(id, kOwn);
  EXPECT_EQ(queue.admit(), (Ids{"x", "y", "z"}));
  queue.set_held_up("a", false);
  queue.ask("e", kPeer);
  queue.ask("w", "other");
  EXPECT_TRUE(queue.admit().empty()) << "what answers again counts again, also beyond the places";
  queue.leave("a");
  queue.leave("d");
  EXPECT_EQ(queue.admit(), Ids{"e"});
  queue.set_held_up("gone", true);
}

TEST(SessionQueue, WhateverOneUserBeginsAnOperatorAndAnotherUserFindAPlace) {
  for (const std::string& caller : {kOwn, kPeer}) {
    SessionQueue queue(32, 16);
    for (int i = 0; i < 40; ++i) queue.ask("u" + std::to_string(i), caller, 0, 7);
    const size_t of_one = queue.admit().size();
    EXPECT_EQ(of_one, 8U) << "half of what users may have";
    queue.ask("of another", caller, 0, 8);
    EXPECT_EQ(queue.admit(), Ids{"of another"});
    for (int i = 0; i < 40; ++i) queue.ask("v" + std::to_string(i), caller, 0, 9);
    queue.admit();
    queue.ask("of an operator", caller);
    EXPECT_EQ(queue.admit(), Ids{"of an operator"}) << "users leave a place";
  }
}

TEST(SessionQueue, AmongThoseThatWaitOperatorsGoFirstThenWhoeverHasLess) {
  SessionQueue queue(8, 4);
  for (const char* id : {"a1", "a2", "a3"}) queue.ask(id, kPeer, 0, 7);
  EXPECT_EQ(queue.admit(), (Ids{"a1", "a2"}));
  queue.ask("b1", kPeer, 0, 8);
  EXPECT_EQ(queue.admit(), Ids{"b1"});
  queue.ask("b2", kPeer, 0, 8);
  queue.ask("o1", kPeer);
  queue.ask("o2", kPeer);
  EXPECT_EQ(queue.admit(), Ids{"o1"});
  for (uint32_t i = 0; const char* id : {"o2", "b2", "a3"}) EXPECT_EQ(queue.place(id), ++i) << id;
  queue.leave("o1");
  EXPECT_EQ(queue.admit(), Ids{"o2"});
  queue.leave("o2");
  EXPECT_TRUE(queue.admit().empty()) << "the last place of a node is not one of its users";
  queue.leave("a1");
  EXPECT_EQ(queue.admit(), Ids{"a3"}) << "each has one, and it came first";
}

TEST(SessionQueue, APlaceThatIsFreeGoesToTheNodeThatHasLess) {
  SessionQueue queue(4, 3);
  for (const char* id : {"a1", "a2", "a3", "a4"}) queue.ask(id, kPeer);
  EXPECT_EQ(queue.admit(), (Ids{"a1", "a2", "a3"}));
  queue.ask("x", "other");
  EXPECT_TRUE(queue.admit().empty()) << "who runs is never put out for it";
  EXPECT_EQ(queue.place("x"), 1U);
  queue.leave("a2");
  EXPECT_EQ(queue.admit(), Ids{"x"});
}

TEST(SessionQueue, OfOnePlaceStillRunsOneOfEachKind) {
  SessionQueue queue(1, 16);
  queue.ask("a", kOwn);
  queue.ask("b", kOwn);
  queue.ask("x", kPeer);
  EXPECT_EQ(queue.admit(), (Ids{"a", "x"}));
}

TEST(SessionQueue, WhoAsksAgainKeepsItsPlaceAndWhoLeavesLosesIt) {
  SessionQueue queue(2, 16);
  for (const char* id : {"a", "b", "c"}) queue.ask(id, kOwn);
  EXPECT_EQ(queue.admit(), Ids{"a"});
  queue.ask("b", kOwn);
  EXPECT_TRUE(queue.admit().empty());
  EXPECT_EQ(queue.place("b"), 1U);
  queue.leave("b");
  queue.ask("b", kOwn);
  EXPECT_TRUE(queue.admit().empty());
  EXPECT_EQ(queue.place("b"), 2U);
  queue.ask("a", kOwn);
  EXPECT_EQ(queue.waiting(), 2U) << "who runs does not wait";
}

TEST(SessionQueue, TheHigherPriorityGoesFirstAndAmongEqualsWhoCameFirst) {
  SessionQueue queue(2, 16);
  queue.ask("runs", kOwn);
  EXPECT_EQ(queue.admit(), Ids{"runs"});
  queue.ask("a", kOwn, -1);
  queue.ask("b", kOwn);
  queue.ask("c", kOwn, 5);
  queue.ask("d", kOwn);
  queue.ask("e", kOwn, 5);
  EXPECT_TRUE(queue.admit().empty()) << "who runs is never put out for it";
  for (uint32_t i = 0; const char* id : {"c", "e", "b", "d", "a"}) EXPECT_EQ(queue.place(id), ++i) << id;
  queue.ask("d", kOwn, 5);
  queue.admit();
  EXPECT_EQ(queue.place("d"), 2U) << "it came before e";
  queue.ask("c", kOwn, -2);
  queue.admit();
  EXPECT_EQ(queue.place("c"), 5U);
  queue.leave("runs");
  EXPECT_EQ(queue.admit(), Ids{"d"});
  queue.step_aside("d");
  EXPECT_EQ(queue.admit(), Ids{"e"});
  queue.ask("d", kOwn, 5);
  queue.admit();
  EXPECT_EQ(queue.place("d"), 1U) << "with its priority, and as it came";
}

TEST(SessionQueue, OfAFormerControlPrioritiesHoldToo) {
  SessionQueue queue(2, 16);
  queue.expect("a", kOwn, 0);
  queue.expect("b", kOwn, 1);
  queue.ask("a", kOwn, 0);
  queue.ask("b", kOwn, 1);
  EXPECT_EQ(queue.admit(), Ids{"b"});
}

TEST(SessionQueue, OfAFormerControlIsKeptInItsOrderAndHoldsUpNobody) {
  SessionQueue queue(2, 16);
  for (const char* id : {"a", "b", "c"}) queue.expect(id, kOwn);
  queue.ask("new", kOwn);
  queue.ask("c", kOwn);
  queue.ask("b", kOwn);
  EXPECT_EQ(queue.admit(), Ids{"b"}) << "the first has not asked, and may never";
  EXPECT_EQ(queue.place("c"), 1U);
  EXPECT_EQ(queue.place("new"), 2U);
  EXPECT_EQ(queue.place("a"), 0U);
}

TEST(SessionQueue, WhoStepsAsideComesBeforeThoseWhoCameLater) {
  SessionQueue queue(2, 16);
  for (const char* id : {"a", "b", "c"}) queue.ask(id, kOwn);
  EXPECT_EQ(queue.admit(), Ids{"a"});
  queue.step_aside("a");
  EXPECT_EQ(queue.admit(), Ids{"b"}) << "it holds up nobody";
  EXPECT_EQ(queue.place("a"), 0U);
  queue.ask("a", kOwn);
  EXPECT_TRUE(queue.admit().empty());
  EXPECT_EQ(queue.place("a"), 1U);
  EXPECT_EQ(queue.place("c"), 2U);
  queue.step_aside("a");
  queue.leave("b");
  EXPECT_EQ(queue.admit(), Ids{"c"}) << "also while it waits";
  queue.leave("a");
  queue.step_aside("a");
  queue.leave("c");
  EXPECT_TRUE(queue.admit().empty());
  EXPECT_EQ(queue.running() + queue.waiting(), 0U);
}

TEST(SessionQueue, WhoseFlowsAreOpenRunsWhoeverWaits) {
  SessionQueue queue(2, 16);
  queue.ask("a", kOwn);
  EXPECT_EQ(queue.admit(), Ids{"a"});
  queue.run("b", kOwn);
  queue.run("c", kOwn);
  EXPECT_EQ(queue.running(), 3U);
  queue.ask("d", kOwn);
  queue.leave("a");
  EXPECT_TRUE(queue.admit().empty());
  queue.leave("b");
  queue.leave("c");
  EXPECT_EQ(queue.admit(), Ids{"d"});
}

// Two nodes whose sessions all need a place at both: the own first, then that of the other, which is asked
// for and, when it is not there, asked for again; the own is given back meanwhile. Whatever the order of
// things, each session runs in the end, and no node has more than its places.
TEST(SessionQueue, TwoNodesThatQueueForEachOtherAllGetTheirTurn) {
  constexpr uint32_t kEach = 12;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto up_to = [&random](uint32_t most) { return static_cast<uint32_t>(1 + random() % most); };
    const std::array<uint32_t, 2> places{up_to(4), up_to(4)};
    std::array<SessionQueue, 2> nodes{SessionQueue(places[0], up_to(3)), SessionQueue(places[1], up_to(3))};
    enum class State : uint8_t { kQueued, kRuns, kDone };
    struct Mover {
      std::string id;
      size_t home;
      uint32_t share;
      State state;
    };
    std::vector<Mover> sessions;
    for (uint32_t i = 0; i < 2 * kEach; ++i)
      sessions.push_back({std::to_string(i), i / kEach, up_to(3) - 1, State::kQueued});
    std::set<std::string> left;
    for (const Mover& each : sessions) left.insert(each.id);
    for (int steps = 0; !left.empty() && steps < 20'000; ++steps) {
      Mover& one = sessions[random() % sessions.size()];
      SessionQueue& own = nodes[one.home];
      SessionQueue& other = nodes[1 - one.home];
      if (one.state == State::kRuns) {
        own.leave(one.id);
        other.leave(one.id);
        one.state = State::kDone;
        left.erase(one.id);
      } else if (one.state == State::kQueued) {
        own.ask(one.id, kOwn, 0, one.share);
        own.admit();
        if (!own.runs(one.id)) continue;
        other.ask(one.id, kPeer, 0, one.share);
        other.admit();
        if (other.runs(one.id)) {
          one.state = State::kRuns;
        } else {
          own.step_aside(one.id);
          if (random() % 8 == 0) other.step_aside(one.id);  // it was not heard of for too long
        }
      }
      for (size_t node = 0; node < 2; ++node) {
        nodes[node].admit();
        ASSERT_LE(nodes[node].running(), std::max(places[node], 2U));
      }
    }
    ASSERT_TRUE(left.empty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice::node
