// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet/plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tools/fleet/plan/lognormal_for_test.h"

namespace sluice::fleet {
namespace {

constexpr uint64_t kMiB = 1U << 20;
constexpr uint64_t kNameCost = 1 * kMiB;

struct Planned {
  std::vector<std::vector<Piece>> pieces;  // by item
  std::vector<Planner::Load> loads;
  uint64_t total = 0;
  size_t memory_bytes = 0;

  double worst_over_mean() const {
    uint64_t largest = 0;
    uint64_t sum = 0;
    for (const auto& load : loads) {
      largest = std::max(largest, load.cost);
      sum += load.cost;
    }
    return static_cast<double>(largest) * static_cast<double>(loads.size()) / static_cast<double>(sum);
  }
};

Planned plan(const std::vector<Item>& items, const PlannerOptions& options) {
  Planner planner(options);
  for (const Item& item : items) planner.consider(item);
  planner.settle();
  Planned planned;
  for (const Item& item : items) {
    const auto pieces = planner.place(item);
    planned.pieces.emplace_back(pieces.begin(), pieces.end());
  }
  planned.loads = planner.loads();
  planned.total = planner.total_cost();
  planned.memory_bytes = planner.memory_bytes();
  return planned;
}

std::vector<Item> lognormal(size_t count, uint64_t seed = 7) {
  // As the field has them: most are small, few hold most of the bytes.
  LognormalSizes sizes(100e3, 2.5, seed);
  std::vector<Item> items(count);
  for (Item& item : items) item.bytes = sizes.next();
  return items;
}

// Each byte is in one piece, and what the loads say is what the pieces are.
void expect_whole(const std::vector<Item>& items, const Planned& planned, const PlannerOptions& options) {
  std::vector<Planner::Load> loads(options.shards);
  for (size_t i = 0; i < items.size(); ++i) {
    uint64_t next = 0;
    ASSERT_FALSE(planned.pieces[i].empty());
    for (const Piece& piece : planned.pieces[i]) {
      ASSERT_EQ(piece.offset, next) << "item " << i;
      ASSERT_LT(piece.shard, options.shards);
      if (next != 0) {
        ASSERT_EQ(piece.offset % options.align_bytes, 0U);
      }
      next += piece.bytes;
      loads[piece.shard].bytes += piece.bytes;
      loads[piece.shard].cost += piece.bytes + items[i].names * options.name_cost_bytes;
    }
    ASSERT_EQ(next, items[i].bytes) << "item " << i;
  }
  for (uint32_t shard = 0; shard < options.shards; ++shard) {
    EXPECT_EQ(loads[shard].bytes, planned.loads[shard].bytes);
    EXPECT_EQ(loads[shard].cost, planned.loads[shard].cost);
  }
}

TEST(Planner, LognormalSizesAreWithinOnePercentOfTheMean) {
  const PlannerOptions options{.shards = 1000, .name_cost_bytes = kNameCost, .align_bytes = 4 * kMiB};
  const std::vector<Item> items = lognormal(2'000'000);
  const Planned planned = plan(items, options);
  expect_whole(items, planned, options);
  EXPECT_LE(planned.worst_over_mean(), 1.01);
  EXPECT_LE(planned.memory_bytes, 32U << 20);
}

TEST(Planner, OneFileThatIsMostOfAllIsCutIntoContiguousRanges) {
  const PlannerOptions options{.shards = 8, .name_cost_bytes = kNameCost, .align_bytes = kMiB};
  std::vector<Item> items(2000, Item{.bytes = kMiB});
  items[1234].bytes = 8000 * kMiB + 17;
  const Planned planned = plan(items, options);
  expect_whole(items, planned, options);
  EXPECT_LE(planned.worst_over_mean(), 1.01);
  // As few ranges as there are shards that it fills; a few more where all are full.
  std::map<uint32_t, int> ranges;
  for (const Piece& piece : planned.pieces[1234]) ++ranges[piece.shard];
  EXPECT_LE(planned.pieces[1234].size(), 9U);
  for (const auto& [shard, count] : ranges) EXPECT_EQ(count, 1) << shard;
}

TEST(Planner, WhatFitsIsNotCut) {
  const PlannerOptions options{.shards = 4, .align_bytes = kMiB};
  std::vector<Item> items(400, Item{.bytes = 10 * kMiB});
  const Planned planned = plan(items, options);
  for (const auto& pieces : planned.pieces) EXPECT_EQ(pieces.size(), 1U);
  EXPECT_DOUBLE_EQ(planned.worst_over_mean(), 1.0);
}

TEST(Planner, WhatDisturbsNoBalanceIsNotCut) {
  Planner planner({.shards = 3, .align_bytes = kMiB});
  std::vector<Item> items(1000, {.bytes = 2 * kMiB});  // each less than a hundredth of a shard
  for (const Item& item : items) planner.consider(item);
  planner.settle();
  for (const Item& item : items) EXPECT_EQ(planner.place(item).size(), 1U);
}

TEST(Planner, WithoutACutTheLargestBoundsIt) {
  const PlannerOptions options{.shards = 4, .align_bytes = 0};
  std::vector<Item> items(300, Item{.bytes = kMiB});
  items.back().bytes = 300 * kMiB;
  const Planned planned = plan(items, options);
  expect_whole(items, planned, options);
  EXPECT_EQ(planned.pieces.back().size(), 1U);
  const auto largest =
      std::max_element(planned.loads.begin(), planned.loads.end(),
                       [](const auto& one, const auto& other) { return one.cost < other.cost; });
  EXPECT_EQ(largest->cost, 300 * kMiB);
}

TEST(Planner, HardLinksStayTogetherAndAreNeverCut) {
  const PlannerOptions options{.shards = 3, .name_cost_bytes = 10, .align_bytes = 1};
  const std::vector<Item> items = {
      {.bytes = 5000, .names = 4}, {.bytes = 100}, {.bytes = 100}, {.bytes = 5000, .whole = true}};
  const Planned planned = plan(items, options);
  expect_whole(items, planned, options);
  EXPECT_EQ(planned.pieces[0].size(), 1U);
  EXPECT_EQ(planned.pieces[3].size(), 1U);
}

TEST(Planner, EmptyFilesCountByTheirNames) {
  const PlannerOptions options{.shards = 10, .name_cost_bytes = 1000};
  const std::vector<Item> items(100'000, Item{.bytes = 0});
  const Planned planned = plan(items, options);
  for (const auto& load : planned.loads) EXPECT_NEAR(static_cast<double>(load.names), 10'000, 100);
}

TEST(Planner, NamesThatFollowOneAnotherMostlyStayTogether) {
  const PlannerOptions options{.shards = 10, .name_cost_bytes = 1000};
  const std::vector<Item> items(1'000'000, Item{.bytes = 0});
  const Planned planned = plan(items, options);
  size_t changes = 0;
  for (size_t i = 1; i < items.size(); ++i)
    changes += planned.pieces[i].front().shard != planned.pieces[i - 1].front().shard ? 1 : 0;
  EXPECT_LE(changes, 4 * kUnits * options.shards);
}

TEST(Planner, EqualListsGiveEqualPlans) {
  const PlannerOptions options{.shards = 16, .name_cost_bytes = kNameCost, .align_bytes = kMiB};
  const std::vector<Item> items = lognormal(20'000);
  const Planned one = plan(items, options);
  const Planned other = plan(items, options);
  for (size_t i = 0; i < items.size(); ++i) {
    ASSERT_EQ(one.pieces[i].size(), other.pieces[i].size());
    for (size_t k = 0; k < one.pieces[i].size(); ++k) {
      ASSERT_EQ(one.pieces[i][k].shard, other.pieces[i][k].shard);
      ASSERT_EQ(one.pieces[i][k].offset, other.pieces[i][k].offset);
    }
  }
}

TEST(Planner, FewerItemsThanShards) {
  const PlannerOptions options{.shards = 50, .align_bytes = 0};
  const std::vector<Item> items = {{.bytes = 1}, {.bytes = 2}, {.bytes = 0}};
  const Planned planned = plan(items, options);
  expect_whole(items, planned, options);
}

TEST(Planner, NothingAtAll) {
  const Planned planned = plan({}, {.shards = 3});
  EXPECT_EQ(planned.total, 0U);
}

// Many shapes of lists, each with an end of all that may be.
TEST(Planner, TheBoundHoldsForManyLists) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const PlannerOptions options{.shards = static_cast<uint32_t>(1 + seed * 7 % 64),
                                 .name_cost_bytes = seed % 3 * 100'000,
                                 .align_bytes = 65536};
    LognormalSizes sizes(1e6, 0.2 * static_cast<double>(seed % 20), seed);
    std::vector<Item> items(20'000);
    for (Item& item : items) item.bytes = sizes.next();
    const Planned planned = plan(items, options);
    expect_whole(items, planned, options);
    EXPECT_LE(planned.worst_over_mean(), 1.011) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice::fleet
