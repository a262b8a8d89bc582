// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/sync_plan.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

using Kind = api::NameDifference;
using Lists = std::vector<SyncPlan::List>;

constexpr SyncPlan::Limits kLimits{.names = 4, .bytes = 100, .large_files = 2, .large_file_bytes = 1000};

api::NameDifference difference(Kind::Kind kind, const std::string& path, uint64_t size = 1) {
  api::NameDifference made;
  made.set_kind(kind);
  const bool is_directory = path.ends_with('/');
  made.set_path(is_directory ? path.substr(0, path.size() - 1) : path);
  made.set_type(is_directory ? api::NameEntry::DIRECTORY : api::NameEntry::FILE);
  if (!is_directory) made.set_size(size);
  return made;
}

std::string removals(const SyncPlan& plan) {
  std::string text;
  for (const auto& each : plan.removals()) text += each.path + (each.is_directory ? "/ " : " ");
  return text;
}

TEST(SyncPlan, ADirectoryComesAfterWhatIsInIt) {
  SyncPlan plan(false, kLimits);
  for (const char* path : {"a/", "a/b/", "a/b/f", "a/f"}) plan.add(difference(Kind::MISSING, path));
  plan.add(difference(Kind::DIFFERENT, "c/"));
  EXPECT_EQ(plan.lists(), (Lists{{"a/b/f", "a/f", "c", "a/b"}, {"a"}}));
  EXPECT_EQ(plan.bytes(), 2U);
  EXPECT_TRUE(plan.lists_after_removal().empty());
}

TEST(SyncPlan, NothingMakesNoList) {
  SyncPlan plan(true, kLimits);
  plan.add(difference(Kind::SOURCE_PROBLEM, "a"));
  plan.add(difference(Kind::DESTINATION_PROBLEM, "b"));
  EXPECT_TRUE(plan.lists().empty() && plan.lists_after_removal().empty() && plan.removals().empty());
  EXPECT_EQ(plan.differences(), 0U);
}

TEST(SyncPlan, EachLimitEndsAList) {
  SyncPlan many(false, kLimits);
  for (const char* path : {"a", "b", "c", "d", "e"}) many.add(difference(Kind::MISSING, path));
  EXPECT_EQ(many.lists(), (Lists{{"a", "b", "c", "d"}, {"e"}}));
  SyncPlan large(false, kLimits);
  for (const char* path : {"a", "b", "c"}) large.add(difference(Kind::MISSING, path, 1000));
  large.add(difference(Kind::MISSING, "d", 999));
  EXPECT_EQ(large.lists(), (Lists{{"a", "b"}, {"c", "d"}}));
  SyncPlan bytes(false, kLimits);
  const std::string path(60, 'x');
  bytes.add(difference(Kind::MISSING, path + "1"));
  bytes.add(difference(Kind::MISSING, path + "2"));
  EXPECT_EQ(bytes.lists(), (Lists{{path + "1"}, {path + "2"}}));
}

TEST(SyncPlan, OnlyOnRequestIsAnythingRemoved) {
  SyncPlan plan(false, kLimits);
  plan.add(difference(Kind::EXTRA, "a"));
  EXPECT_TRUE(plan.removals().empty());
}

TEST(SyncPlan, AnExtraDirectoryGoesAsOne) {
  SyncPlan plan(true, kLimits);
  for (const char* path : {"a/b/c", "a/b/", "a/d", "a/", "a.x", "e/f"})
    plan.add(difference(Kind::EXTRA, path));
  EXPECT_EQ(removals(plan), "a/ a.x e/f ");
}

TEST(SyncPlan, WhatIsOfAnotherKindThereIsNotSent) {
  using Entry = api::NameEntry;
  SyncPlan plan(true, kLimits);
  const auto add = [&plan](const std::string& path, Entry::Type type, Entry::Type there, uint64_t size = 1) {
    api::NameDifference made =
        difference(there == Entry::UNKNOWN ? Kind::MISSING : Kind::DIFFERENT, path, size);
    made.set_type(type);
    made.set_destination_type(there);
    plan.add(made);
  };
  add("a", Entry::FILE, Entry::DIRECTORY);
  add("b", Entry::DIRECTORY, Entry::FILE);
  add("b/f", Entry::FILE, Entry::UNKNOWN);
  add("b.x", Entry::FILE, Entry::FILE);
  add("c", Entry::LINK, Entry::FIFO);
  add("d", Entry::LINK, Entry::FILE);
  add("e", Entry::FILE, Entry::LINK, 1000);
  add("f", Entry::FILE, Entry::LINK, 1001);
  add("g", Entry::DIRECTORY, Entry::DIRECTORY, 0);
  EXPECT_EQ(plan.lists(), (Lists{{"b.x", "d", "e", "g"}}));
  EXPECT_EQ(plan.bytes(), 1002U);
  std::string refused;
  for (const auto& each : plan.refusals()) refused += each.path + " ";
  ASSERT_EQ(refused, "a b b/f c f ");
  EXPECT_EQ(plan.refusals().front().reason,
            "is of another kind there: a directory is never replaced by a file; remove it there, or rename "
            "one of them");
}

TEST(SyncPlan, KnowsWhatWasMadeWhereSomethingIsRemoved) {
  SyncPlan plan(true, kLimits);
  for (const char* path : {"d/new", "e/new", "Top/"}) plan.add(difference(Kind::MISSING, path));
  plan.add(difference(Kind::DIFFERENT, "d/other"));
  plan.add(difference(Kind::EXTRA, "d/x"));
  plan.add(difference(Kind::EXTRA, "top/"));
  const std::map<std::string, std::set<std::string>> wanted = {{"", {"Top"}}, {"d", {"new"}}};
  EXPECT_EQ(plan.made_beside_removals(), wanted);
}

TEST(SyncPlan, DirectoriesThatLoseNamesAreSentAfterwards) {
  SyncPlan plan(true, kLimits);
  plan.add(difference(Kind::DIFFERENT, "a/"));
  plan.add(difference(Kind::EXTRA, "a/x"));
  plan.add(difference(Kind::DIFFERENT, "b/"));
  plan.add(difference(Kind::EXTRA, "c/d/x"));
  plan.add(difference(Kind::EXTRA, "c/x"));
  plan.add(difference(Kind::EXTRA, "k/x"));
  plan.add(difference(Kind::KEPT, "k/"));
  plan.add(difference(Kind::EXTRA, "x"));
  EXPECT_EQ(plan.lists(), (Lists{{"b"}}));
  EXPECT_EQ(plan.lists_after_removal(), (Lists{{"c/d", "c", "a"}})) << "k is not at the source";
  EXPECT_EQ(plan.directories_after_removal(), (SyncPlan::List{"a"})) << "the others are the same";
}

}  // namespace
}  // namespace sluice::cli
