// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/extent_map.h"

#include <gtest/gtest.h>

#include <random>

#include "control/recovery/numbers_for_test.h"

namespace sluice::recovery {
namespace {

TEST(ExtentMap, CountsExtentsAndBytesWithAShortLastOne) {
  ExtentMap map(layout_of(3 * kExtent + 1));
  EXPECT_EQ(map.extents(), 4U);
  EXPECT_EQ(map.range_of(ExtentId(2)), extents(ExtentId(2)));
  EXPECT_EQ(map.range_of(ExtentId(3)), (Range{.offset = 3 * kExtent, .length = 1}));
  EXPECT_TRUE(map.set(ExtentId(3)));
  EXPECT_EQ(map.set_bytes(), 1U);
  EXPECT_FALSE(map.set(ExtentId(3))) << "a second completion of the same extent counts nothing";
  EXPECT_EQ(map.set_bytes(), 1U);
  for (ExtentId extent; extent < ExtentId(3); ++extent) map.set(extent);
  EXPECT_TRUE(map.complete());
  EXPECT_EQ(map.set_bytes(), map.size_bytes());
  EXPECT_TRUE(map.clear(ExtentId(1)));
  EXPECT_FALSE(map.clear(ExtentId(1)));
  EXPECT_FALSE(map.complete());
}

TEST(ExtentMap, AnEmptyObjectIsComplete) {
  const ExtentMap map(layout_of(0));
  EXPECT_TRUE(map.complete());
  EXPECT_TRUE(map.missing({.offset = 0, .length = 100}, 10).empty());
}

TEST(ExtentMap, RecognisesOnlyWholeExtents) {
  const ExtentMap map(layout_of(2 * kExtent + 10));
  EXPECT_EQ(map.extent_of(extents(ExtentId(1))), ExtentId(1));
  EXPECT_EQ(map.extent_of({.offset = 2 * kExtent, .length = 10}), ExtentId(2));
  EXPECT_FALSE(map.extent_of({.offset = 2 * kExtent, .length = 11}));
  EXPECT_FALSE(map.extent_of({.offset = 1, .length = kExtent}));
  EXPECT_FALSE(map.extent_of(extents(ExtentId(3))));
  EXPECT_FALSE(map.extent_of({.offset = 0, .length = 0}));
  EXPECT_FALSE(map.extent_of({.offset = ~uint64_t{0}, .length = kExtent}));
}

TEST(ExtentMap, MissingRangesAreCutToTheQuestion) {
  ExtentMap map(layout_of(10 * kExtent));
  map.set(ExtentId(3));
  map.set(ExtentId(4));
  const std::vector<Range> runs = map.missing({.offset = kExtent + 100, .length = 6 * kExtent}, 10);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0], (Range{.offset = kExtent + 100, .length = 2 * kExtent - 100}));
  EXPECT_EQ(runs[1], (Range{.offset = 5 * kExtent, .length = 2 * kExtent + 100}));
  EXPECT_EQ(map.missing({.offset = 0, .length = ~uint64_t{0}}, 1).size(), 1U);
  EXPECT_TRUE(map.complete(extents(ExtentId(3), 2)));
  EXPECT_FALSE(map.complete({.offset = 3 * kExtent, .length = 2 * kExtent + 1}));
}

TEST(ExtentMap, MissingAgreesWithABitByBitCount) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    ExtentMap map(layout_of(random() % (300 * kExtent) + 1));
    for (ExtentId extent; extent < map.end_id(); ++extent) {
      if (random() % 3 != 0) map.set(extent);
    }
    uint64_t missing_bytes = 0;
    uint64_t previous_end = 0;
    for (const Range& run : map.missing({.offset = 0, .length = map.size_bytes()}, ~size_t{0})) {
      EXPECT_GE(run.offset, previous_end);
      previous_end = run.end();
      for (uint64_t at = run.offset; at < previous_end; at += kExtent)
        EXPECT_FALSE(map.is_set(map.extent_at(at)));
      missing_bytes += run.length;
    }
    EXPECT_EQ(missing_bytes + map.set_bytes(), map.size_bytes());
  }
}

TEST(ExtentMap, RunsAreAsIfEachExtentWereSet) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 100; ++round) {
    // More than one page of words.
    ExtentMap runs(layout_of(random() % (100'000 * uint64_t{kExtent}) + 1));
    ExtentMap each(layout_of(runs.size_bytes()));
    for (int i = 0; i < 8; ++i) {
      const uint64_t first = random() % runs.extents();
      const uint64_t end = first + random() % (runs.extents() - first + 1);
      uint64_t bytes = 0;
      for (ExtentId extent(first); extent < ExtentId(end); ++extent)
        if (each.set(extent)) bytes += each.range_of(extent).length;
      EXPECT_EQ(runs.set(ExtentRun{ExtentId(first), ExtentId(end)}), bytes);
      const ExtentId gone(random() % runs.extents());
      EXPECT_EQ(runs.clear(gone), each.clear(gone));
      const uint64_t gone_end = gone.value() + random() % (runs.extents() - gone.value() + 1) / 4;
      uint64_t cleared = 0;
      for (ExtentId extent = gone; extent < ExtentId(gone_end); ++extent)
        if (each.clear(extent)) cleared += each.range_of(extent).length;
      EXPECT_EQ(runs.clear(ExtentRun{gone, ExtentId(std::max(gone.value(), gone_end))}), cleared);
    }
    runs.check_invariants();
    EXPECT_TRUE(runs.contains(each) && each.contains(runs));
    EXPECT_EQ(runs.set_bytes(), each.set_bytes());
    EXPECT_EQ(runs.set_bytes({ExtentId(0), runs.end_id()}), each.set_bytes());
    uint64_t missing = 0;
    for (const ExtentRun& run : runs.missing(ExtentRun{ExtentId(0), runs.end_id()})) {
      EXPECT_FALSE(runs.is_set(run.first) || runs.is_set(ExtentId(run.end.value() - 1)));
      missing += runs.bytes_of(run).length;
    }
    EXPECT_EQ(missing + runs.set_bytes(), runs.size_bytes());
  }
}

TEST(ExtentMap, WholeExtentsOfARange) {
  const ExtentMap map(layout_of(3 * kExtent + 1));
  const auto whole = [&](uint64_t offset, uint64_t length) {
    const ExtentRun run = map.whole_in({.offset = offset, .length = length});
    return std::pair(run.first.value(), run.end.value());
  };
  EXPECT_EQ(whole(1, 2 * kExtent), std::pair(uint64_t{1}, uint64_t{2}));
  EXPECT_EQ(whole(0, ~uint64_t{0}), std::pair(uint64_t{0}, uint64_t{4}));
  EXPECT_EQ(whole(3 * kExtent, 1), std::pair(uint64_t{3}, uint64_t{4}));
  const auto [first, end] = whole(kExtent + 1, 10);
  EXPECT_EQ(first, end) << "none";
}

TEST(ExtentMap, JoinsNeighbouringExtents) {
  const ExtentMap map(layout_of(5 * kExtent + 7));
  const std::vector<Range> ranges = join_extents(map, {ExtentId(5), ExtentId(0), ExtentId(1), ExtentId(4)});
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[0], (extents(ExtentId(0), 2)));
  EXPECT_EQ(ranges[1], (Range{.offset = 4 * kExtent, .length = kExtent + 7}));
}

}  // namespace
}  // namespace sluice::recovery
