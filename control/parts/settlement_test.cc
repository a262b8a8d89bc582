// Which version of a file is tried, and what of it is fetched.
// SPDX-License-Identifier: Apache-2.0
#include "control/parts/settlement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace sluice::parts {
namespace {

constexpr LegId kHas0(0);
constexpr LegId kHas1(1);
constexpr LegId kHas2(2);
constexpr uint64_t kSettledExtents = 21;

class SettlementTest : public testing::Test {
 protected:
  void join_all() {
    for (const LegId leg : {kHas0, kHas1, kHas2}) settlement_.join(leg);
  }
  // Each answers what it is asked; `damaged`: this leg has another extent 13. Returns the most that was asked
  // of a leg at a time, in extents.
  uint64_t answer_all(std::vector<LegId> damaged) {
    uint64_t most = 0;
    for (std::vector<Portion> asked = settlement_.take_questions(); !asked.empty();
         asked = settlement_.take_questions()) {
      std::map<LegId, uint64_t> extents;
      for (const Portion& portion : asked) {
        for (const Range& range : portion.ranges) {
          std::vector<uint64_t> digests;
          for (uint64_t at = range.offset; at < range.end(); at += 1000) {
            const bool other = at == 13'000 && is_among(damaged, portion.leg);
            digests.push_back(at + (other ? 1 : 0));
          }
          extents[portion.leg] += digests.size();
          most = std::max(most, extents[portion.leg]);
          settlement_.said(portion.leg, ExtentId(range.offset / 1000), digests);
        }
      }
    }
    return most;
  }

  Settlement settlement_{ObjectId(0), kSettledExtents * 1000 - 1, 1000};
};

TEST_F(SettlementTest, EachIsAskedForAllAndForFewAtATime) {
  join_all();
  EXPECT_FALSE(settlement_.ready());
  EXPECT_LE(answer_all({}), Settlement::kUnansweredMax);
  EXPECT_TRUE(settlement_.ready());
  EXPECT_EQ(settlement_.answers(), 3 * kSettledExtents);
}

TEST_F(SettlementTest, WhatMostHaveIsTriedFirstAndThenTheOther) {
  join_all();
  answer_all({kHas0});
  EXPECT_EQ(settlement_.best(), kHas1);
  EXPECT_TRUE(settlement_.same(kHas1, kHas2));
  EXPECT_FALSE(settlement_.same(kHas1, kHas0));
  settlement_.refuse(kHas2);
  EXPECT_EQ(settlement_.best(), kHas0) << "gamma's version is beta's";
  settlement_.refuse(kHas0);
  EXPECT_FALSE(settlement_.best());
}

TEST_F(SettlementTest, OnlyWhatASourceBroughtOtherwiseDoesNotFit) {
  join_all();
  answer_all({kHas0});
  EXPECT_TRUE(settlement_.fits(ExtentId(12), kHas0, kHas1));
  EXPECT_FALSE(settlement_.fits(ExtentId(13), kHas0, kHas1));
  EXPECT_TRUE(settlement_.fits(ExtentId(13), kHas2, kHas1));
  EXPECT_FALSE(settlement_.fits(ExtentId(12), std::nullopt, kHas1)) << "nobody knows who brought it";
}

TEST_F(SettlementTest, WhoLeavesIsNotWaitedForAndWhatItSaidStays) {
  join_all();
  const uint64_t digest = 0;
  settlement_.said(kHas0, ExtentId(0), {&digest, 1});
  settlement_.leave(kHas0);
  answer_all({});
  EXPECT_TRUE(settlement_.ready());
  EXPECT_FALSE(settlement_.knows(kHas0));
  EXPECT_EQ(settlement_.best(), kHas1);
  EXPECT_TRUE(settlement_.fits(ExtentId(0), kHas0, kHas1));
  settlement_.join(kHas0);
  EXPECT_FALSE(settlement_.ready()) << "it is asked for the rest";
  answer_all({});
  EXPECT_TRUE(settlement_.same(kHas0, kHas1));
}

TEST_F(SettlementTest, WhoIsSilentIsNotWaitedForAndItsAnswersCount) {
  join_all();
  const std::vector<Portion> asked = settlement_.take_questions();
  settlement_.dismiss(kHas0);
  settlement_.join(kHas0);
  EXPECT_TRUE(settlement_.take_questions().empty()) << "it owes the first answers";
  settlement_.dismiss(kHas0);
  const std::vector<uint64_t> all(kSettledExtents, 7);
  for (const LegId leg : {kHas1, kHas2}) settlement_.said(leg, ExtentId(0), all);
  EXPECT_TRUE(settlement_.ready());
  settlement_.said(kHas0, ExtentId(0), all);
  EXPECT_TRUE(settlement_.same(kHas0, kHas1));
}

TEST_F(SettlementTest, TheFirstWordCounts) {
  settlement_.join(kHas0);
  settlement_.join(kHas1);
  const std::vector<uint64_t> all(kSettledExtents, 7);
  settlement_.said(kHas0, ExtentId(0), all);
  settlement_.said(kHas1, ExtentId(0), all);
  const std::vector<uint64_t> others(kSettledExtents + 5, 8);
  settlement_.said(kHas1, ExtentId(0), others);
  EXPECT_TRUE(settlement_.same(kHas0, kHas1));
}

}  // namespace
}  // namespace sluice::parts
