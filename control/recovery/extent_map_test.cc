// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/extent_map.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice::recovery {
namespace {

constexpr uint32_t kExtent = 65536;

TEST(ExtentMap, CountsExtentsAndBytesWithAShortLastOne) {
  ExtentMap map(3 * kExtent + 1, kExtent);
  EXPECT_EQ(map.extents(), 4U);
  EXPECT_EQ(map.extent_length(2), kExtent);
  EXPECT_EQ(map.extent_length(3), 1U);
  EXPECT_TRUE(map.set(3));
  EXPECT_EQ(map.set_bytes(), 1U);
  EXPECT_FALSE(map.set(3)) << "a second completion of the same extent counts nothing";
  EXPECT_EQ(map.set_bytes(), 1U);
  for (uint64_t i = 0; i < 3; ++i) map.set(i);
  EXPECT_TRUE(map.complete());
  EXPECT_EQ(map.set_bytes(), map.size_bytes());
  EXPECT_TRUE(map.clear(1));
  EXPECT_FALSE(map.clear(1));
  EXPECT_FALSE(map.complete());
}

TEST(ExtentMap, AnEmptyObjectIsComplete) {
  const ExtentMap map(0, kExtent);
  EXPECT_TRUE(map.complete());
  EXPECT_TRUE(map.missing(0, 100, 10).empty());
}

TEST(ExtentMap, RecognisesOnlyWholeExtents) {
  const ExtentMap map(2 * kExtent + 10, kExtent);
  uint64_t extent = 99;
  EXPECT_TRUE(map.is_extent(kExtent, kExtent, &extent));
  EXPECT_EQ(extent, 1U);
  EXPECT_TRUE(map.is_extent(2 * kExtent, 10, &extent));
  EXPECT_FALSE(map.is_extent(2 * kExtent, 11, &extent));
  EXPECT_FALSE(map.is_extent(1, kExtent, &extent));
  EXPECT_FALSE(map.is_extent(3 * kExtent, kExtent, &extent));
  EXPECT_FALSE(map.is_extent(0, 0, &extent));
}

TEST(ExtentMap, MissingRangesAreCutToTheQuestion) {
  ExtentMap map(10 * kExtent, kExtent);
  map.set(3);
  map.set(4);
  const std::vector<Range> runs = map.missing(kExtent + 100, 6 * kExtent, 10);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0], (Range{kExtent + 100, 2 * kExtent - 100}));
  EXPECT_EQ(runs[1], (Range{5 * kExtent, 2 * kExtent + 100}));
  EXPECT_EQ(map.missing(0, ~uint64_t{0}, 1).size(), 1U);
  EXPECT_TRUE(map.complete(3 * kExtent, 2 * kExtent));
  EXPECT_FALSE(map.complete(3 * kExtent, 2 * kExtent + 1));
}

TEST(ExtentMap, MissingAgreesWithABitByBitCount) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    ExtentMap map(random() % (300 * kExtent) + 1, kExtent);
    for (uint64_t i = 0; i < map.extents(); ++i) {
      if (random() % 3 != 0) map.set(i);
    }
    uint64_t missing_bytes = 0;
    uint64_t previous_end = 0;
    for (const Range& run : map.missing(0, map.size_bytes(), ~size_t{0})) {
      EXPECT_GE(run.offset, previous_end);
      previous_end = run.offset + run.length;
      for (uint64_t at = run.offset; at < previous_end; at += kExtent) EXPECT_FALSE(map.is_set(at / kExtent));
      missing_bytes += run.length;
    }
    EXPECT_EQ(missing_bytes + map.set_bytes(), map.size_bytes());
  }
}

TEST(ExtentMap, JoinsNeighbouringExtents) {
  const ExtentMap map(5 * kExtent + 7, kExtent);
  const std::vector<Range> ranges = join_extents(map, {5, 0, 1, 4});
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[0], (Range{0, 2 * kExtent}));
  EXPECT_EQ(ranges[1], (Range{4 * kExtent, kExtent + 7}));
}

}  // namespace
}  // namespace sluice::recovery
