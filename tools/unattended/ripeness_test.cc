// SPDX-License-Identifier: Apache-2.0
#include "tools/unattended/ripeness.h"

#include <gtest/gtest.h>

namespace sluice::unattended {
namespace {

using Names = std::vector<std::string>;

FileId file(uint64_t size, int64_t mtime_ns = 1) { return {.inode = 7, .size = size, .mtime_ns = mtime_ns}; }

TEST(Ripeness, AFileThatWasClosedIsFinishedAfterTheQuietTime) {
  Ripeness ripeness({.quiet_ns = 10});
  ripeness.opened("a", 0);
  EXPECT_EQ(ripeness.ripe(1000, 9), Names()) << "open for however long";
  EXPECT_EQ(ripeness.next_ns(), kNever);
  ripeness.closed("a", file(5), 100);
  EXPECT_EQ(ripeness.next_ns(), 110);
  EXPECT_EQ(ripeness.ripe(109, 9), Names());
  EXPECT_EQ(ripeness.ripe(110, 9), Names{"a"});
  EXPECT_TRUE(ripeness.confirm("a", file(5), 110));
  EXPECT_EQ(ripeness.size(), 0U);
}

TEST(Ripeness, WhatChangesWaitsAnew) {
  Ripeness ripeness({.quiet_ns = 10});
  ripeness.seen("a", file(5), 0);
  ripeness.seen("a", file(5), 8);
  EXPECT_EQ(ripeness.next_ns(), 10) << "it was the same all the time";
  ripeness.seen("a", file(6), 9);
  EXPECT_EQ(ripeness.next_ns(), 19);
  ripeness.seen("a", file(6, 2), 12);
  EXPECT_EQ(ripeness.next_ns(), 22) << "the same size at another time is a change";
  EXPECT_FALSE(ripeness.confirm("a", file(7), 22)) << "between two looks";
  EXPECT_EQ(ripeness.ripe(31, 9), Names());
  EXPECT_EQ(ripeness.ripe(32, 9), Names{"a"});
  EXPECT_TRUE(ripeness.confirm("a", file(7), 32));
}

TEST(Ripeness, AMarkerFinishesAtOnceAndWhereItIsTheRuleNothingElseDoes) {
  Ripeness ripeness({.quiet_ns = 10, .marked_only = true});
  ripeness.closed("a", file(5), 0);
  EXPECT_EQ(ripeness.ripe(1000, 9), Names());
  ripeness.marked("a", 1000);
  EXPECT_EQ(ripeness.ripe(1000, 9), Names{"a"});
  ripeness.marked("early", 1000);
  EXPECT_EQ(ripeness.ripe(1000, 9), Names{"a"}) << "nothing is known of the file itself";
  ripeness.seen("early", file(1), 1001);
  EXPECT_EQ(ripeness.ripe(1001, 9), (Names{"a", "early"}));
  EXPECT_FALSE(ripeness.confirm("a", file(6), 1001));
  EXPECT_EQ(ripeness.ripe(1001, 9), Names{"early"}) << "looked at again, but not at once";
  EXPECT_EQ(ripeness.ripe(1011, 9), (Names{"early", "a"}));
}

TEST(Ripeness, WhatFailedComesLaterAndWhatIsGoneNotAtAll) {
  Ripeness ripeness({.quiet_ns = 10});
  ripeness.later("a", 500);
  ripeness.seen("a", file(5), 0);
  ripeness.closed("b", file(5), 0);
  EXPECT_EQ(ripeness.ripe(100, 9), Names{"b"});
  ripeness.gone("b");
  EXPECT_EQ(ripeness.ripe(499, 9), Names());
  EXPECT_EQ(ripeness.ripe(500, 9), Names{"a"});
}

TEST(Ripeness, WhereNewsWasLostQuietDecides) {
  Ripeness ripeness({.quiet_ns = 10});
  ripeness.opened("a", 0);
  ripeness.lost_count();
  EXPECT_EQ(ripeness.next_ns(), kNever) << "it has to be looked at first";
  ripeness.seen("a", file(5), 20);
  EXPECT_EQ(ripeness.ripe(30, 9), Names{"a"});
}

TEST(Ripeness, NoMoreThanAreWantedTheOldestFirst) {
  Ripeness ripeness({.quiet_ns = 10});
  for (int i = 0; i < 5; ++i) ripeness.closed(std::to_string(i), file(5), 100 - i);
  EXPECT_EQ(ripeness.ripe(200, 2), (Names{"4", "3"}));
}

}  // namespace
}  // namespace sluice::unattended
