// SPDX-License-Identifier: Apache-2.0
#include "control/tree/packer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::tree {
namespace {

using catalog::EntryKind;
using catalog::Failure;
using catalog::File;
using catalog::FileKind;

Entry file(const std::string& path, uint64_t size_bytes = 10) {
  return {.path = path, .size_bytes = size_bytes, .mode = 0640, .mtime_ns = 5, .ctime_ns = 6};
}
Entry directory(const std::string& path) {
  return {.path = path, .kind = EntryKind::kDirectory, .mode = 0755};
}
Entry symlink(const std::string& path) { return {.path = path, .kind = EntryKind::kSymlink, .target = "x"}; }
Entry hard_link(const std::string& path, const std::string& target) {
  return {.path = path, .kind = EntryKind::kHardLink, .target = target};
}

std::vector<Entry> list_of(const File& pack) {
  Result<std::vector<Entry>> entries = from_bytes(*pack.pack.list);
  EXPECT_TRUE(entries) << entries.error().message;
  EXPECT_EQ(pack.pack.members, entries->size());
  EXPECT_EQ(pack.size_bytes, layout_of(*entries).size_bytes);
  EXPECT_LE(pack.size_bytes, kPackBytesMax);
  EXPECT_TRUE(pack.name.empty());
  return *entries;
}
std::vector<std::string> paths_of(const File& pack) {
  std::vector<std::string> paths;
  for (const Entry& entry : list_of(pack)) paths.push_back(entry.path);
  return paths;
}

using Paths = std::vector<std::string>;

TEST(Packer, SmallFilesAndSymlinksGoIntoPacksUnderTheNameOfTheirTree) {
  Packer packer;
  packer.begin_tree("exp/dir", "/data/dir", "dir");
  packer.add(file("a"));
  packer.add(symlink("l"));
  packer.add(file("sub/b"));
  packer.add(directory("sub"));
  packer.add(directory(""));
  EXPECT_TRUE(packer.take_large().empty());
  const std::vector<File> packs = packer.take_packs();
  ASSERT_EQ(packs.size(), 1U);
  EXPECT_EQ(packs.front().kind, FileKind::kPack);
  EXPECT_EQ(packs.front().path, "exp/dir");
  EXPECT_EQ(packs.front().shown, "/data/dir (3 names from dir/a on)");
  EXPECT_EQ(paths_of(packs.front()), (Paths{"dir/a", "dir/l", "dir/sub/b"}));
  const std::vector<Entry> entries = list_of(packs.front());
  EXPECT_EQ(entries[0].mode, 0640U);
  EXPECT_EQ(entries[0].mtime_ns, 5);
  EXPECT_EQ(entries[0].ctime_ns, 6);
  EXPECT_EQ(entries[1].target, "x") << "what a symbolic link says is never changed";
  ASSERT_TRUE(packer.has_last());
  const File last = packer.take_last();
  EXPECT_EQ(last.kind, FileKind::kLastPack);
  EXPECT_EQ(paths_of(last), (Paths{"dir/sub", "dir"}));
}

TEST(Packer, WithoutAPrefixNamesArriveAsTheyAre) {
  Packer packer;
  packer.begin_tree("exp/dir/", "/data/dir", "");
  packer.add(file("a"));
  packer.add(hard_link("b", "a"));
  packer.add({.path = "", .kind = EntryKind::kDirectory});
  EXPECT_EQ(paths_of(packer.take_packs().at(0)), Paths{"a"});
  const File last = packer.take_last();
  EXPECT_EQ(paths_of(last), (Paths{"b", "."})) << "the tree itself has no name to arrive under";
  EXPECT_EQ(list_of(last).front().target, "a");
}

TEST(Packer, TheLastPackHasLinksBeforeDirectoriesOfAllTrees) {
  Packer packer;
  for (const char* tree : {"one", "two"}) {
    packer.begin_tree(std::string("exp/") + tree, tree, tree);
    packer.add(directory("d/e"));
    packer.add(hard_link("d/l", "f"));
    packer.add(directory("d"));
    packer.add(directory(""));
  }
  EXPECT_TRUE(packer.take_packs().empty());
  const File last = packer.take_last();
  EXPECT_EQ(paths_of(last),
            (Paths{"one/d/l", "two/d/l", "one/d/e", "one/d", "one", "two/d/e", "two/d", "two"}));
  EXPECT_EQ(list_of(last).front().target, "one/f");
  EXPECT_FALSE(packer.has_last());
}

TEST(Packer, APackIsOfOneTreeFromWhichItIsFilled) {
  Packer packer;
  for (const char* tree : {"one", "two", "three"}) {
    packer.begin_tree(std::string("exp/") + tree, tree, tree);
    if (std::string_view(tree) != "two") packer.add(file("a"));
  }
  const std::vector<File> packs = packer.take_packs();
  ASSERT_EQ(packs.size(), 2U);
  EXPECT_EQ(packs[0].path, "exp/one");
  EXPECT_EQ(paths_of(packs[0]), Paths{"one/a"});
  EXPECT_EQ(packs[1].path, "exp/three");
  EXPECT_EQ(paths_of(packs[1]), Paths{"three/a"});
  EXPECT_FALSE(packer.has_last());
}

TEST(Packer, APackIsClosedBeforeItBecomesTooLargeOrHasTooManyNames) {
  Packer packer({.large_bytes = 1000, .pack_bytes = 3000, .pack_entries = 5});
  packer.begin_tree("exp/d", "d", "d");
  for (int i = 0; i < 20; ++i) packer.add(file(std::to_string(i), 0));
  for (int i = 20; i < 30; ++i) packer.add(file(std::to_string(i), 1000));
  const std::vector<File> packs = packer.take_packs();
  size_t names = 0;
  for (const File& pack : packs) {
    EXPECT_LE(pack.size_bytes, 3000U);
    EXPECT_LE(pack.pack.members, 5U);
    for (const Entry& entry : list_of(pack)) EXPECT_EQ(entry.path, "d/" + std::to_string(names++));
  }
  EXPECT_EQ(names, 30U);
  EXPECT_EQ(packs.size(), 4U + 5U);
}

TEST(Packer, OneFileFitsWhateverTheLimitOfAPack) {
  Packer packer({.large_bytes = 1000, .pack_bytes = 10, .pack_entries = 5});
  packer.begin_tree("exp/d", "d", "d");
  packer.add(file("a", 1000));
  packer.add(file("b", 1000));
  EXPECT_EQ(packer.take_packs().size(), 2U);
}

TEST(Packer, ALargeFileIsAnObjectOfItsOwn) {
  Packer packer({.large_bytes = 1000});
  packer.begin_tree("exp/d", "/data/d", "d");
  packer.add(file("small", 1000));
  packer.add(file("sub/large\n", 1001));
  EXPECT_EQ(packer.large_count(), 1U);
  std::vector<Packer::Large> large = packer.take_large();
  ASSERT_EQ(large.size(), 1U);
  EXPECT_EQ(packer.large_count(), 0U);
  EXPECT_EQ(large[0].file.name, "d/sub/large\n");
  EXPECT_EQ(large[0].file.path, "exp/d/sub/large\n");
  EXPECT_EQ(large[0].file.shown.find('\n'), std::string::npos);
  EXPECT_EQ(large[0].file.size_bytes, 1001U);
  EXPECT_EQ(large[0].file.kind, FileKind::kFile);
  large[0].entry.failure = Failure::kUnreadable;  // it could not be opened
  packer.add(std::move(large[0].entry));
  const std::vector<File> packs = packer.take_packs();
  ASSERT_EQ(packs.size(), 1U);
  const std::vector<Entry> entries = list_of(packs.front());
  EXPECT_EQ(paths_of(packs.front()), (Paths{"d/small", "d/sub/large\n"}));
  EXPECT_EQ(entries[1].failure, Failure::kUnreadable);
  EXPECT_EQ(entries[1].size_bytes, 0U);
}

TEST(Packer, WhatCannotBeSentTravelsAsAFailureWithoutBytes) {
  Packer packer;
  packer.begin_tree("exp/d", "d", "d");
  Entry lost = file("lost", 1U << 30);
  lost.failure = Failure::kForbidden;
  packer.add(lost);
  Entry link = symlink("link");
  link.failure = Failure::kVanished;
  packer.add(link);
  Entry closed = directory("closed");
  closed.failure = Failure::kForbidden;
  packer.add(closed);
  EXPECT_FALSE(packer.has_last()) << "a directory that nobody can read is not made";
  const std::vector<Entry> entries = list_of(packer.take_packs().at(0));
  ASSERT_EQ(entries.size(), 3U);
  for (const Entry& entry : entries) {
    EXPECT_NE(entry.failure, Failure::kNone);
    EXPECT_EQ(entry.size_bytes, 0U);
    EXPECT_TRUE(entry.target.empty());
  }
}

// A path that no pack can have would have the peer refuse all of it.
TEST(Packer, ANameThatIsTooLongWithItsTreesIsAFailureBeneathThatTree) {
  std::string deep;
  for (int i = 0; i < 2046; ++i) deep += "d/";
  deep += "abc";
  ASSERT_TRUE(catalog::good_path(deep)) << "in its tree it is a path";
  Packer packer;
  packer.begin_tree("exp/d", "d", "tree");
  packer.add(file(deep));
  packer.add(directory(deep));
  packer.add(hard_link("short", deep));
  packer.add(hard_link(deep, "short"));
  const std::vector<File> packs = packer.take_packs();
  ASSERT_EQ(packs.size(), 1U);
  for (const Entry& entry : list_of(packs.front())) {
    EXPECT_EQ(entry.failure, Failure::kName) << entry.path;
    EXPECT_TRUE(entry.path.starts_with("tree/")) << "a peer that asked for the tree takes it";
    EXPECT_TRUE(catalog::good_path(entry.path));
    EXPECT_TRUE(entry.target.empty());
  }
  EXPECT_EQ(packs.front().pack.members, 4U);
  EXPECT_FALSE(packer.has_last());
}

TEST(Packer, LimitsGrowWithTheNumberOfPacks) {
  Packer packer({.large_bytes = 100, .pack_bytes = 1000, .pack_entries = 1});
  packer.begin_tree("exp/d", "d", "d");
  for (int i = 0; i < 3500; ++i) packer.add(file(std::to_string(i), 0));
  const std::vector<File> packs = packer.take_packs();
  EXPECT_LT(packs.size(), 2500U);
  EXPECT_EQ(packs[998].pack.members, 1U);
  EXPECT_EQ(packs[1000].pack.members, 4U);
  size_t names = 0;
  for (const File& pack : packs) names += pack.pack.members;
  EXPECT_EQ(names, 3500U);
}

TEST(Packer, TreesWithoutAPackDoNotMakeLimitsGrow) {
  Packer packer({.large_bytes = 100, .pack_bytes = 1000, .pack_entries = 1});
  packer.begin_tree("exp/d", "d", "d");
  for (int i = 0; i < 1000; ++i) packer.add(file(std::to_string(i), 0));  // 999 are closed
  for (int i = 0; i < 9; ++i) packer.begin_tree("exp/d", "d", "d");
  packer.add(file("large", 401));
  EXPECT_EQ(packer.large_count(), 1U);
}

TEST(Packer, LimitsGrowWithTheNumberOfLargeFilesUpToTheirEnd) {
  Packer packer({.large_bytes = 100});
  packer.begin_tree("exp/d", "d", "d");
  for (int i = 0; i < 999; ++i) packer.add(file(std::to_string(i), 200));
  EXPECT_EQ(packer.large_count(), 999U);
  packer.add(file("next", 401));
  EXPECT_EQ(packer.large_count(), 1000U);
  packer.add(file("small now", 400));
  EXPECT_EQ(packer.large_count(), 1000U);
  for (int i = 0; i < 20000; ++i) packer.add(file(std::to_string(i), 33U << 20));
  EXPECT_EQ(packer.large_count(), 21000U) << "such a file is never in a pack";
}

}  // namespace
}  // namespace sluice::tree
