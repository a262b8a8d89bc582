// SPDX-License-Identifier: Apache-2.0
#include "control/parts/extent_check.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace sluice::parts {
namespace {

constexpr ObjectId kFile{0};
constexpr LegId kAlpha{0};
constexpr LegId kBeta{1};

ExtentRun extents(uint64_t first, uint64_t count = 1) {
  return {.first = ExtentId(first), .end = ExtentId(first + count)};
}

class ExtentChecks : public testing::Test {
 protected:
  ExtentChecks() {
    check.add(kFile, 100);
    check.asked(kAlpha, kFile, extents(0, 50));
    check.asked(kBeta, kFile, extents(50, 50));
  }
  void written(LegId leg, uint64_t extent, uint64_t crc) {
    check.written(leg, kFile, ExtentId(extent), crc);
    check.check_invariants();
  }
  void said(LegId leg, uint64_t first, const std::vector<uint64_t>& digests) {
    check.said(leg, kFile, ExtentId(first), digests);
    check.check_invariants();
  }

  ExtentCheck check;
};

TEST_F(ExtentChecks, AnExtentCountsOnceItsSourceHasSaidItsDigest) {
  written(kAlpha, 0, 7);
  written(kAlpha, 1, 8);
  EXPECT_TRUE(check.take_verdicts().empty());
  EXPECT_EQ(check.unconfirmed(kAlpha).size(), 2U);
  said(kAlpha, 0, {7, 8, 9});
  written(kAlpha, 2, 9);  // its digest came before
  const ExtentCheck::Verdicts verdicts = check.take_verdicts();
  ASSERT_EQ(verdicts.confirmed.size(), 3U);
  EXPECT_EQ(verdicts.confirmed[2].crc, 9U);
  EXPECT_EQ(verdicts.confirmed[2].extent, ExtentId(2));
  EXPECT_EQ(check.source_of(kFile, ExtentId(1)), kAlpha);
  EXPECT_EQ(check.brought_by(kAlpha, kFile).size(), 1U);
  EXPECT_EQ(check.confirmed_extents(kAlpha), 3U);
  EXPECT_EQ(check.known(kFile)->crc, 9U);
  check.forget(kFile, extents(2));
  EXPECT_FALSE(check.known(kFile));
  EXPECT_TRUE(check.unconfirmed(kAlpha).empty());
}

TEST_F(ExtentChecks, AnotherDigestThanWasWrittenIsWrong) {
  written(kAlpha, 0, 7);
  said(kAlpha, 0, {6});
  const ExtentCheck::Verdicts verdicts = check.take_verdicts();
  ASSERT_EQ(verdicts.wrong.size(), 1U);
  EXPECT_EQ(verdicts.wrong[0].leg, kAlpha);
  EXPECT_FALSE(check.source_of(kFile, ExtentId(0)));
  // Another leg brings it.
  check.asked(kBeta, kFile, extents(0));
  said(kBeta, 0, {7});
  written(kBeta, 0, 7);
  EXPECT_EQ(check.take_verdicts().confirmed.size(), 1U);
}

TEST_F(ExtentChecks, TheDigestOfOneLegSaysNothingOfAnothersBytes) {
  written(kAlpha, 0, 7);
  said(kBeta, 0, {7});
  EXPECT_TRUE(check.take_verdicts().empty());
}

TEST_F(ExtentChecks, ASecondCopyThatIsEqualIsIgnored) {
  check.asked(kBeta, kFile, extents(0));
  written(kAlpha, 0, 7);
  written(kBeta, 0, 7);
  said(kAlpha, 0, {7});
  EXPECT_EQ(check.take_verdicts().confirmed.size(), 1U);
  EXPECT_TRUE(check.unconfirmed(kBeta).empty());
  said(kBeta, 0, {7});
  written(kBeta, 0, 7);
  EXPECT_TRUE(check.take_verdicts().empty());
}

TEST_F(ExtentChecks, TwoCopiesThatDifferAreFetchedAgain) {
  check.asked(kBeta, kFile, extents(0, 2));
  // The second comes before the first is confirmed ...
  written(kAlpha, 0, 7);
  written(kBeta, 0, 8);
  said(kAlpha, 0, {7});
  ExtentCheck::Verdicts verdicts = check.take_verdicts();
  EXPECT_TRUE(verdicts.confirmed.empty());
  ASSERT_EQ(verdicts.conflicts.size(), 1U);
  EXPECT_EQ(verdicts.conflicts[0].first, kBeta);
  EXPECT_FALSE(check.source_of(kFile, ExtentId(0)));
  // ... or after.
  written(kAlpha, 1, 7);
  said(kAlpha, 1, {7});
  EXPECT_EQ(check.take_verdicts().confirmed.size(), 1U);
  written(kBeta, 1, 8);
  verdicts = check.take_verdicts();
  ASSERT_EQ(verdicts.conflicts.size(), 1U);
  EXPECT_TRUE(verdicts.conflicts[0].asked);
  EXPECT_FALSE(check.source_of(kFile, ExtentId(1)));
  EXPECT_EQ(check.confirmed_extents(kAlpha), 0U);
}

// A source that sends what nobody asked of it overwrites what is right.
TEST_F(ExtentChecks, WhatNobodyAskedForIsSeen) {
  written(kAlpha, 0, 7);
  said(kAlpha, 0, {7});
  check.take_verdicts();
  written(kBeta, 0, 7);  // The CRC of the first is not kept, so nobody knows that it is the same.
  const ExtentCheck::Verdicts verdicts = check.take_verdicts();
  ASSERT_EQ(verdicts.conflicts.size(), 1U);
  EXPECT_EQ(verdicts.conflicts[0].second, kBeta);
  EXPECT_FALSE(verdicts.conflicts[0].asked);
}

// A source that lies could bring what is right first, and overwrite it when its digest is confirmed.
TEST_F(ExtentChecks, WhatALegWritesOnceMoreIsFetchedAgain) {
  written(kAlpha, 0, 7);
  said(kAlpha, 0, {7});
  check.take_verdicts();
  written(kAlpha, 0, 8);
  said(kAlpha, 0, {8});
  const ExtentCheck::Verdicts verdicts = check.take_verdicts();
  ASSERT_EQ(verdicts.rewritten.size(), 1U);
  EXPECT_TRUE(verdicts.confirmed.empty() && verdicts.conflicts.empty());
  EXPECT_FALSE(check.source_of(kFile, ExtentId(0)));
}

TEST_F(ExtentChecks, DigestsThatNobodyWaitsForAreNotKept) {
  said(kBeta, 0, std::vector<uint64_t>(50, 7));  // asked of alpha
  written(kBeta, 0, 7);
  EXPECT_TRUE(check.take_verdicts().empty());  // so its word before was forgotten
  check.said(kBeta, ObjectId(77), ExtentId(0), std::vector<uint64_t>(50, 7));
  check.said(kBeta, kFile, ExtentId(99), std::vector<uint64_t>(50, 7));
  check.said(kBeta, kFile, ExtentId(UINT64_MAX), std::vector<uint64_t>(50, 7));
  check.written(kBeta, kFile, ExtentId(100), 7);
  check.check_invariants();
}

TEST_F(ExtentChecks, ALegThatSaysNoDigestsIsInArrears) {
  const ObjectId large(1);
  check.add(large, 1U << 20);
  check.asked(kAlpha, large, extents(0, 1U << 20));
  for (uint64_t extent = 0; extent <= ExtentCheck::kWritesMax; ++extent)
    check.written(kAlpha, large, ExtentId(extent), 1);
  EXPECT_EQ(check.take_verdicts().in_arrears, std::vector<LegId>{kAlpha});
  EXPECT_EQ(check.drop(kAlpha).size(), ExtentCheck::kWritesMax + 1);
  check.check_invariants();
}

TEST_F(ExtentChecks, WhatADroppedLegHasNotConfirmedIsLost) {
  written(kAlpha, 0, 7);
  written(kAlpha, 1, 7);
  written(kBeta, 50, 7);
  said(kAlpha, 0, {7});
  const std::vector<Place> lost = check.drop(kAlpha);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].extent, ExtentId(1));
  said(kAlpha, 1, {7});
  EXPECT_EQ(check.take_verdicts().confirmed.size(), 1U);
  EXPECT_EQ(check.source_of(kFile, ExtentId(0)), kAlpha);
  check.remove(kFile);
  EXPECT_EQ(check.confirmed_extents(kAlpha), 1U);
  EXPECT_FALSE(check.source_of(kFile, ExtentId(0)));
  check.check_invariants();
}

// Two legs and any words: what is confirmed was written and said alike by one leg, and whatever another wrote
// there since was the same.
TEST(ExtentCheck, ConfirmsOnlyWhatOneLegHasWrittenAndSaid) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    ExtentCheck check;
    constexpr uint64_t kExtents = 12;
    check.add(kFile, kExtents);
    std::map<uint64_t, uint64_t> file;  // what the file has; 0: nobody knows
    std::map<uint64_t, uint64_t> counted;
    for (int step = 0; step < 200; ++step) {
      const LegId leg(static_cast<uint32_t>(random() % 2));
      const uint64_t extent = random() % kExtents;
      const uint64_t crc = 1 + random() % 2;
      switch (random() % 5) {
        case 0:
          check.asked(leg, kFile, extents(extent, std::min<uint64_t>(3, kExtents - extent)));
          break;
        case 1:
        case 2: {
          check.written(leg, kFile, ExtentId(extent), crc);
          file[extent] = crc;
          break;
        }
        case 3:
          check.said(leg, kFile, ExtentId(extent), std::vector<uint64_t>{crc, 1 + random() % 2});
          break;
        default:
          if (random() % 10 == 0) check.drop(leg);
      }
      check.check_invariants();
      const ExtentCheck::Verdicts verdicts = check.take_verdicts();
      for (const ExtentCheck::Conflict& conflict : verdicts.conflicts) counted.erase(conflict.extent.value());
      for (const ExtentCheck::Verdict& verdict : verdicts.rewritten) counted.erase(verdict.extent.value());
      for (const ExtentCheck::Verdict& verdict : verdicts.confirmed)
        counted[verdict.extent.value()] = verdict.crc;
      for (const auto& [each, value] : counted) ASSERT_EQ(file[each], value) << "what counts is in the file";
      for (uint64_t each = 0; each < kExtents; ++each) {
        ASSERT_EQ(counted.contains(each), check.source_of(kFile, ExtentId(each)).has_value());
      }
    }
  }
}

// A worker fills in an extent with what comes of both who were asked for it.
TEST(ExtentCheck, ASourceVouchesForTheBytesOfAnExtentThatAnotherBegan) {
  for (const bool said_first : {true, false}) {
    ExtentCheck check;
    check.add(kFile, 4);
    for (const LegId leg : {LegId(0), LegId(1)}) check.asked(leg, kFile, extents(0, 2));
    const std::vector<uint64_t> digests{7, 9};
    if (said_first) check.said(LegId(1), kFile, ExtentId(0), digests);
    for (const uint64_t extent : {0, 1}) check.written(LegId(0), kFile, ExtentId(extent), 7);
    if (!said_first) check.said(LegId(1), kFile, ExtentId(0), digests);
    const ExtentCheck::Verdicts verdicts = check.take_verdicts();
    ASSERT_EQ(verdicts.confirmed.size(), 1U) << "of the other one the digest differs";
    EXPECT_EQ(verdicts.confirmed[0].extent, ExtentId(0));
    EXPECT_EQ(verdicts.confirmed[0].leg, LegId(1));
    EXPECT_TRUE(verdicts.wrong.empty()) << "the first has not said its digest yet";
    check.check_invariants();
  }
}

}  // namespace
}  // namespace sluice::parts
