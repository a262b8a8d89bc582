// SPDX-License-Identifier: Apache-2.0
#include "control/verdict/tally.h"

#include <gtest/gtest.h>

#include "control/verdict/history.h"

namespace sluice::verdict {
namespace {

TEST(Tally, NamesWhatHeldForLongestWithItsLastEvidence) {
  Tally tally;
  EXPECT_EQ(tally.whole().cause, Cause::kNone);
  tally.add({.cause = Cause::kNetwork, .share = 1, .evidence = {"first"}}, 20);
  tally.add({.cause = Cause::kLimit, .share = 0.4, .evidence = {"limit"}}, 50);
  tally.add({.cause = Cause::kNetwork, .share = 0.5, .evidence = {"last"}}, 30);
  tally.add({.cause = Cause::kLimit, .share = 0.4, .evidence = {"limit"}}, 25);
  const Verdict whole = tally.whole();
  EXPECT_EQ(whole.cause, Cause::kLimit);
  EXPECT_DOUBLE_EQ(whole.share, 0.6);
  ASSERT_EQ(tally.shares().size(), 2U);
  EXPECT_EQ(tally.shares()[1].evidence, std::vector<std::string>{"last"});
}

TEST(Tally, WhatNothingHeldIsNamedLast) {
  Tally tally;
  tally.add(Verdict{}, 90);
  tally.add({.cause = Cause::kSourceDisk}, 10);
  EXPECT_EQ(tally.whole().cause, Cause::kSourceDisk);
  EXPECT_DOUBLE_EQ(tally.whole().share, 0.1);
  EXPECT_EQ(tally.shares().back().cause, Cause::kNone);
}

TEST(Tally, GoesOnFromARecord) {
  Tally before;
  before.add({.cause = Cause::kNetwork, .evidence = {"loss"}}, 30);
  Tally now;
  for (const Tally::Row& row : before.rows()) now.add(row);
  now.add({.cause = Cause::kCredit}, 10);
  EXPECT_EQ(now.whole().cause, Cause::kNetwork);
  EXPECT_DOUBLE_EQ(now.whole().share, 0.75);
  EXPECT_EQ(now.whole().evidence, std::vector<std::string>{"loss"});
}

uint64_t bytes_of(const History& history) {
  uint64_t bytes = 0;
  for (const Point& point : history.points()) bytes += point.bytes;
  return bytes;
}

TEST(History, HasFewPointsHoweverLongItIsAndLosesNoByte) {
  History history;
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < 100'000; ++i) {
    history.add({.length_ns = 500'000'000, .bytes = i, .cause = Cause::kNetwork});
    bytes += i;
    ASSERT_LE(history.points().size(), History::kPointsMax);
    ASSERT_EQ(bytes_of(history), bytes);
  }
  EXPECT_GE(history.points().size(), History::kPointsMax / 4);
  History again;
  again.restore(history.points());
  EXPECT_EQ(bytes_of(again), bytes);
  again.restore(std::vector<Point>(100'000, Point{.length_ns = 1, .bytes = 1}));
  EXPECT_LE(again.points().size(), History::kPointsMax);
}

TEST(History, WhatIsJoinedHasTheCauseOfMostOfIt) {
  History history;
  for (size_t i = 0; i <= History::kPointsMax; ++i)
    history.add({.length_ns = i % 2 == 0 ? 3U : 1U, .cause = i % 2 == 0 ? Cause::kLimit : Cause::kCredit});
  for (const Point& point : history.points()) EXPECT_EQ(point.cause, Cause::kLimit);
}

TEST(History, NoTimeIsNoPoint) {
  History history;
  history.add({.length_ns = 0, .bytes = 5});
  EXPECT_TRUE(history.points().empty());
}

}  // namespace
}  // namespace sluice::verdict
