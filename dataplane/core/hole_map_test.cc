// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/hole_map.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace sluice {
namespace {

std::vector<uint32_t> holes_of(const HoleMap& map) {
  std::vector<uint32_t> holes;
  for (uint32_t i = map.next(0); i < map.chunks(); i = map.next(i + 1)) holes.push_back(i);
  return holes;
}

TEST(HoleMap, AllIsMissingUntilItIsTold) {
  HoleMap map;
  map.reset(wire::kChunksPerExtentMax);
  EXPECT_EQ(map.count(), wire::kChunksPerExtentMax);
  map.reset(3);
  EXPECT_EQ(holes_of(map), (std::vector<uint32_t>{0, 1, 2}));
  map.take(3, {});
  EXPECT_EQ(map.count(), 0U);
  EXPECT_EQ(map.next(0), 3U);
}

TEST(HoleMap, WhatIsToldReplacesWhatWasToldBefore) {
  HoleMap map;
  map.reset(200);
  const wire::ChunkRun first[] = {
      {.first = 0, .count = 2}, {.first = 63, .count = 3}, {.first = 199, .count = 1}};
  map.take(200, first);
  EXPECT_EQ(holes_of(map), (std::vector<uint32_t>{0, 1, 63, 64, 65, 199}));
  EXPECT_TRUE(map.has(64));
  EXPECT_FALSE(map.has(66));
  const wire::ChunkRun second[] = {{.first = 64, .count = 1}, {.first = 70, .count = 1}};
  map.take(100, second);
  EXPECT_EQ(holes_of(map), (std::vector<uint32_t>{64, 70, 199})) << "nothing was told of those from 100 on";
  EXPECT_EQ(map.count(), 3U);
}

TEST(HoleMap, WhatIsToldOfChunksThatThereAreNotMeansNothing) {
  HoleMap map;
  map.reset(10);
  const wire::ChunkRun beyond[] = {{.first = 8, .count = 4000}};
  map.take(4096, beyond);
  EXPECT_EQ(holes_of(map), (std::vector<uint32_t>{8, 9}));
  const wire::ChunkRun far[] = {{.first = 4000, .count = 96}};
  map.take(4096, far);
  EXPECT_EQ(map.count(), 0U);
}

TEST(HoleMap, AgreesWithAPlainListOfChunks) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    HoleMap map;
    const uint32_t chunks = 1 + random() % 400;
    map.reset(chunks);
    std::vector<bool> plain(chunks, true);
    for (int told_times = 0; told_times < 4; ++told_times) {
      const uint32_t told = random() % (chunks + 1);
      std::vector<wire::ChunkRun> runs;
      for (uint32_t at = random() % 70; at < told;) {
        const uint32_t count = std::min(told - at, 1 + static_cast<uint32_t>(random() % 70));
        runs.push_back({.first = at, .count = count});
        at += count + 1 + random() % 70;
      }
      map.take(told, runs);
      for (uint32_t i = 0; i < told; ++i) {
        plain[i] = std::any_of(runs.begin(), runs.end(), [&](const wire::ChunkRun& run) {
          return i >= run.first && i - run.first < run.count;
        });
      }
      std::vector<uint32_t> expected;
      for (uint32_t i = 0; i < chunks; ++i) {
        if (plain[i]) expected.push_back(i);
      }
      ASSERT_EQ(holes_of(map), expected);
      ASSERT_EQ(map.count(), expected.size());
    }
  }
}

}  // namespace
}  // namespace sluice
