// SPDX-License-Identifier: Apache-2.0
#include "control/parts/run_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "control/parts/outstanding.h"
#include "control/parts/source_runs.h"
#include "dataplane/base/check.h"

namespace sluice::parts {
namespace {

// Before main(), so that it holds for every test of this program.
[[maybe_unused]] const bool kLooking = [] {
  base::set_dchecks(true);
  return true;
}();

ExtentRun run_of(uint64_t first, uint64_t end) { return {.first = ExtentId(first), .end = ExtentId(end)}; }

TEST(RunSet, JoinsNeighboursAndKnowsItsLongestRun) {
  RunSet set;
  set.add(run_of(0, 4));
  set.add(run_of(8, 12));
  EXPECT_EQ(set.all().size(), 2U);
  set.add(run_of(4, 8));
  ASSERT_EQ(set.all().size(), 1U);
  EXPECT_EQ(set.longest().end, ExtentId(12));
  set.remove(run_of(5, 6));
  EXPECT_EQ(set.longest().first, ExtentId(6));
  EXPECT_EQ(set.run_at(ExtentId(4))->end, ExtentId(5));
  EXPECT_FALSE(set.contains(ExtentId(5)));
  EXPECT_EQ(set.extents(), 11U);
}

// Whatever is put in and taken out, it holds what a plain set of extents holds.
TEST(RunSet, IsASetOfExtents) {
  std::mt19937_64 random(1);
  RunSet runs;
  std::set<uint64_t> plain;
  for (int step = 0; step < 5000; ++step) {
    const uint64_t first = random() % 200;
    const uint64_t end = first + random() % 12;
    const bool add = random() % 2 == 0;
    add ? runs.add(run_of(first, end)) : runs.remove(run_of(first, end));
    for (uint64_t extent = first; extent < end; ++extent) {
      if (add) {
        plain.insert(extent);
      } else {
        plain.erase(extent);
      }
    }
    runs.check_invariants();
    ASSERT_EQ(runs.extents(), plain.size());
    const uint64_t probe = random() % 220;
    ASSERT_EQ(runs.contains(ExtentId(probe)), plain.contains(probe));
    uint64_t within = 0;
    for (const ExtentRun& part : runs.within(run_of(50, 100)))
      within += part.end.value() - part.first.value();
    ASSERT_EQ(within, static_cast<uint64_t>(std::distance(plain.lower_bound(50), plain.lower_bound(100))));
  }
}

TEST(Outstanding, IsInTheOrderInWhichItWasAsked) {
  Outstanding outstanding;
  outstanding.add({.object = ObjectId(1), .run = run_of(8, 12)});
  outstanding.add({.object = ObjectId(0), .run = run_of(0, 4)});
  outstanding.add({.object = ObjectId(0), .run = run_of(4, 6)});  // one with the piece before
  std::vector<Piece> all = outstanding.all();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].object, ObjectId(1));
  EXPECT_EQ(all[1].run.end, ExtentId(6));
  outstanding.remove(ObjectId(1), run_of(9, 10));
  all = outstanding.all();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].run.end, ExtentId(9));
  EXPECT_EQ(all[1].run.first, ExtentId(10));
  outstanding.set_copied(ObjectId(0), run_of(5, 6), true);
  EXPECT_EQ(outstanding.copied_extents(), 1U);
  EXPECT_TRUE(outstanding.at(ObjectId(0), ExtentId(5))->copied);
  EXPECT_FALSE(outstanding.at(ObjectId(0), ExtentId(4))->copied);
  std::vector<uint64_t> firsts;
  outstanding.from_the_end([&](const Piece& piece) {
    firsts.push_back(piece.run.first.value());
    return firsts.size() < 3;
  });
  EXPECT_EQ(firsts, (std::vector<uint64_t>{5, 0, 10}));
  outstanding.check_invariants();
}

TEST(SourceRuns, KeepLongRunsAsOne) {
  SourceRuns runs;
  for (uint64_t extent = 0; extent < 1000; ++extent) {
    runs.set(ExtentId((extent * 7) % 1000), LegId((extent * 7) % 1000 < 600 ? 0 : 1));
    runs.check_invariants();
  }
  ASSERT_EQ(runs.of(LegId(0)).size(), 1U);
  EXPECT_EQ(runs.of(LegId(0))[0].end, ExtentId(600));
  EXPECT_EQ(runs.at(ExtentId(600)), LegId(1));
  const std::vector<SourceRuns::Run> removed = runs.remove(run_of(599, 601));
  ASSERT_EQ(removed.size(), 2U);
  EXPECT_EQ(removed[1].leg, LegId(1));
  EXPECT_FALSE(runs.at(ExtentId(600)));
  runs.check_invariants();
}

}  // namespace
}  // namespace sluice::parts
