// The simulator's own parts: a fake that is kinder than the real thing would prove nothing.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tools/sim/file_system.h"
#include "tools/sim/journal.h"
#include "tools/sim/runner.h"

namespace sluice::sim {
namespace {

const std::vector<uint8_t> kData(4096, 0xA5);

uint64_t synced_file(FileSystem& files, const std::string& name) {
  const uint64_t inode = files.create(name);
  files.resize(inode, kData.size());
  files.end_sync(files.begin_sync(inode), true);
  files.sync_directory();
  return inode;
}

TEST(FileSystem, WhatWasSyncedSurvivesALossOfPowerAndTheRestMayNot) {
  int kept = 0;
  int torn = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    FileSystem files(seed, 1, 512);
    const uint64_t synced = synced_file(files, "synced");
    files.write(synced, 0, kData.data(), kData.size());
    files.end_sync(files.begin_sync(synced), true);
    const uint64_t lost = synced_file(files, "lost");
    files.write(lost, 0, kData.data(), kData.size());
    files.lose_power();
    EXPECT_EQ(files.inode(synced)->now, kData);
    const auto& now = files.inode(lost)->now;
    const auto whole = std::count(now.begin(), now.end(), 0xA5);
    kept += whole == 4096 ? 1 : 0;
    torn += whole > 0 && whole < 4096 ? 1 : 0;
  }
  EXPECT_GT(kept, 10);
  EXPECT_GT(torn, 10);
  EXPECT_LT(kept + torn, 190);
}

TEST(FileSystem, AWriteDuringASyncIsNotCoveredByIt) {
  int lost = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    FileSystem files(seed, 1, 512);
    const uint64_t inode = synced_file(files, "a");
    const uint64_t sync = files.begin_sync(inode);
    files.write(inode, 0, kData.data(), kData.size());
    files.end_sync(sync, true);
    files.lose_power();
    lost += files.inode(inode)->now == kData ? 0 : 1;
  }
  EXPECT_GT(lost, 20);
}

TEST(FileSystem, AfterAFailedSyncALaterOneBringsNothingBack) {
  int lost = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    FileSystem files(seed, 1, 512);
    const uint64_t inode = synced_file(files, "a");
    files.write(inode, 0, kData.data(), kData.size());
    files.end_sync(files.begin_sync(inode), false);
    files.end_sync(files.begin_sync(inode), true);
    files.lose_power();
    lost += files.inode(inode)->now == kData ? 0 : 1;
  }
  EXPECT_GT(lost, 90);
}

TEST(FileSystem, ARenameIsUndoneUnlessItsDirectoryWasSynced) {
  int undone = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    FileSystem files(seed, 1, 512);
    const uint64_t inode = synced_file(files, "part");
    ASSERT_TRUE(files.rename("part", "final"));
    EXPECT_FALSE(files.rename("part", "other"));
    files.lose_power();
    EXPECT_EQ(files.find("part") + files.find("final"), inode) << "one name, never none or two";
    undone += files.find("part") == inode ? 1 : 0;
    if (files.find("part") != 0) files.rename("part", "final");
    files.sync_directory();
    files.lose_power();
    EXPECT_EQ(files.find("final"), inode);
  }
  EXPECT_GT(undone, 20);
  EXPECT_LT(undone, 80);
}

TEST(Journal, APowerfulCommitMakesThoseBeforeItDurable) {
  Journal journal;
  Random random(1);
  Transaction quick{.session = "a"};
  quick.batch.files = {{.file = catalog::FileId(0), .record = {.name = "file"}}};
  journal.commit(quick, transfer::Durability::kProcess);
  Transaction end{.session = "a"};
  end.batch.record = transfer::Record{.id = "a", .state = transfer::RecordState::kSucceeded};
  journal.commit(end, transfer::Durability::kPower);
  journal.lose_power(random);
  EXPECT_EQ(journal.sessions().at("a").record.state, transfer::RecordState::kSucceeded);
  EXPECT_EQ(journal.sessions().at("a").files.size(), 1U);
}

TEST(Plan, ACourseChangesNothingOfASessionBetweenTwoNodes) {
  for (uint64_t seed = 1; seed < 200; ++seed) {
    const Plan plan = make_plan(seed);
    EXPECT_EQ(plan.course, course_of(seed));
    if (plan.course != Course::kTwoNodes) continue;
    EXPECT_EQ(plan.text(), make_plan(seed, Course::kTwoNodes).text());
  }
}

TEST(Plan, OfSeveralSourcesOneIsAsItShouldBe) {
  uint64_t lies = 0;
  for (uint64_t seed = 1; seed < 500; ++seed) {
    const Plan plan = make_plan(seed, Course::kSources);
    const SourcesPlan& s = plan.several;
    bool good = false;
    for (uint32_t node = 0; node < plan.nodes(); ++node) {
      good |= is_source(node) && (s.lie == Lie::kNone || s.liar != node) &&
              (s.changes_ns == 0 || s.changes != node) && (s.dies_ns == 0 || s.dies != node);
    }
    EXPECT_TRUE(good) << plan.text();
    lies += s.lie == Lie::kNone ? 0 : 1;
  }
  EXPECT_GT(lies, 50U);
}

TEST(Plan, OneSeedFixesEverything) {
  EXPECT_EQ(make_plan(7).text(), make_plan(7).text());
  EXPECT_NE(make_plan(7).text(), make_plan(8).text());
  const Outcome first = World(make_plan(11)).run();
  const Outcome second = World(make_plan(11)).run();
  EXPECT_EQ(first.failure, "");
  EXPECT_EQ(first.hash, second.hash);
  EXPECT_GT(first.events, 0U);
}

}  // namespace
}  // namespace sluice::sim
