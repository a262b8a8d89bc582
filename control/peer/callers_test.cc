// SPDX-License-Identifier: Apache-2.0
#include "control/peer/callers.h"

#include <gtest/gtest.h>

namespace sluice::peer {
namespace {

using Id = Callers::Id;

TEST(Callers, AnAddressHasItsBoundAndTheOldestOfItGoes) {
  Callers callers({.strangers = 100, .strangers_of_address = 2, .idle_of_peer = 1});
  const Id first = callers.came("a").id;
  const Id second = callers.came("a").id;
  EXPECT_FALSE(callers.came("b").let_go);
  EXPECT_EQ(callers.came("a").let_go, first);
  EXPECT_EQ(callers.came("a").let_go, second);
  EXPECT_EQ(callers.strangers(), 3U);
}

TEST(Callers, OfAllStrangersTheOldestOfTheAddressWithTheMostGoes) {
  Callers callers({.strangers = 4, .strangers_of_address = 3, .idle_of_peer = 1});
  EXPECT_FALSE(callers.came("a").let_go);
  const Id of_b = callers.came("b").id;
  EXPECT_FALSE(callers.came("b").let_go);
  EXPECT_FALSE(callers.came("c").let_go);
  EXPECT_EQ(callers.came("d").let_go, of_b) << "though a is older";
}

TEST(Callers, OfAddressesWithEquallyManyTheOneThatWaitedTheLongestGoes) {
  Callers callers({.strangers = 3, .strangers_of_address = 3, .idle_of_peer = 1});
  const Id first = callers.came("z").id;
  const Id second = callers.came("a").id;
  callers.came("m");
  EXPECT_EQ(callers.came("b").let_go, first) << "not the first in the alphabet";
  EXPECT_EQ(callers.came("c").let_go, second);
}

TEST(Callers, WhereSomebodyWasTrustedStrangersFromElsewhereDisplaceNobody) {
  Callers callers({.strangers = 4, .strangers_of_address = 2, .at_known_addresses = 3, .idle_of_peer = 1});
  const Id known = callers.came("home", true).id;
  for (int i = 0; i < 1000; ++i) callers.came(std::to_string(i));
  EXPECT_TRUE(callers.knows(known));
  EXPECT_EQ(callers.strangers(), 5U);
  callers.came("home", true);
  EXPECT_EQ(callers.came("home", true).let_go, known) << "each address has its bound";
  callers.came("office", true);
  EXPECT_TRUE(callers.came("third", true).let_go);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(callers.oldest_stranger());
  EXPECT_EQ(callers.strangers(), 3U) << "they go last";
  EXPECT_TRUE(callers.oldest_stranger());
  EXPECT_FALSE(callers.trusted(callers.came("home", true).id, "beta"));
}

TEST(Callers, WhoIsTrustedIsNoStrangerAnyMore) {
  Callers callers({.strangers = 1, .strangers_of_address = 1, .idle_of_peer = 2});
  const Id friends = callers.came("a").id;
  EXPECT_FALSE(callers.trusted(friends, "beta"));
  const Id stranger = callers.came("a").id;
  EXPECT_EQ(callers.came("a").let_go, stranger);
  EXPECT_EQ(callers.count(), 2U);
}

TEST(Callers, IdleOnesOfAPeerDisplaceEachOtherAndBusyOnesStay) {
  Callers callers({.strangers = 9, .strangers_of_address = 9, .idle_of_peer = 2});
  std::vector<Id> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(callers.came("a").id);
  EXPECT_FALSE(callers.trusted(ids[0], "beta"));
  EXPECT_FALSE(callers.set_busy(ids[0], true));
  EXPECT_FALSE(callers.trusted(ids[1], "beta"));
  EXPECT_FALSE(callers.trusted(ids[2], "beta"));
  EXPECT_FALSE(callers.trusted(ids[3], "gamma")) << "of another peer";
  EXPECT_EQ(callers.trusted(ids[4], "beta"), ids[1]);
  EXPECT_EQ(callers.set_busy(ids[0], false), ids[0]) << "it was hung up on, and is the oldest";
  EXPECT_EQ(callers.count(), 3U);
}

TEST(Callers, WhoIsGoneIsCountedNoMore) {
  Callers callers({.strangers = 2, .strangers_of_address = 2, .idle_of_peer = 1});
  const Id first = callers.came("a").id;
  const Id second = callers.came("a").id;
  callers.gone(first);
  callers.gone(first);
  EXPECT_FALSE(callers.came("a").let_go);
  EXPECT_FALSE(callers.trusted(first, "beta"));
  EXPECT_FALSE(callers.set_busy(first, true));
  EXPECT_EQ(callers.oldest_stranger(), second);
  EXPECT_TRUE(callers.oldest_stranger());
  EXPECT_FALSE(callers.oldest_stranger());
  EXPECT_EQ(callers.count(), 0U);
}

}  // namespace
}  // namespace sluice::peer
