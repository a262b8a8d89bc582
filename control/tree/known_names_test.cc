// SPDX-License-Identifier: Apache-2.0
#include "control/tree/known_names.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "control/tree/packer.h"

namespace sluice::tree {
namespace {

using catalog::EntryKind;
using catalog::File;
using catalog::FileKind;

Entry found(const std::string& path, uint64_t size_bytes = 10) {
  return {.path = path, .size_bytes = size_bytes};
}

// What a tree of so many small and large files comes to, as of a walk: each directory after what is in it.
void add_all(Packer& packer, int files, const std::string& skip = {}) {
  packer.begin_tree("exp/d", "/data/d", "d");
  for (int i = 0; i < files; ++i) {
    const std::string name = "f" + std::to_string(1000 + i);
    if (name != skip) packer.add(found(name, i % 10 == 9 ? 500 : 10));
  }
  packer.add({.path = "hard", .kind = EntryKind::kHardLink, .target = "f1000"});
  packer.add({.path = "", .kind = EntryKind::kDirectory});
}

std::vector<std::string> names_of(const std::vector<File>& files) {
  std::vector<std::string> names;
  for (const File& file : files) {
    if (!file.packed()) {
      names.push_back(file.name);
      continue;
    }
    const Result<std::vector<Entry>> entries = from_bytes(*file.pack.list);
    for (const Entry& entry : *entries) names.push_back(entry.path);
  }
  std::sort(names.begin(), names.end());
  return names;
}

constexpr PackerLimits kLimits{.large_bytes = 100, .pack_bytes = 1U << 20, .pack_entries = 8};

std::vector<File> rest_of(Packer& packer) {
  std::vector<File> files = packer.take_packs();
  for (Packer::Large& large : packer.take_large()) files.push_back(std::move(large.file));
  if (packer.has_last()) files.push_back(packer.take_last());
  return files;
}

TEST(KnownNames, AreThoseOfFilesAndOfWhatIsInPacks) {
  Packer packer(kLimits);
  add_all(packer, 30);
  const std::vector<File> files = rest_of(packer);
  Result<KnownNames> known = KnownNames::of(files);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->packs(), 5U) << "the last one as well";
  EXPECT_EQ(known->large(), 3U);
  for (const std::string& name : names_of(files)) {
    EXPECT_TRUE(known->take(name)) << name;
    EXPECT_FALSE(known->take(name)) << "once each: " << name;
  }
  EXPECT_FALSE(known->take("d/f10"));
  EXPECT_FALSE(known->take("d/f10000"));
  EXPECT_FALSE(known->take(""));
}

TEST(KnownNames, OfTwoAreTwo) {
  const std::vector<File> files = {{.name = "a"}, {.name = "a"}};
  Result<KnownNames> known = KnownNames::of(files);
  EXPECT_TRUE(known->take("a"));
  EXPECT_TRUE(known->take("a"));
  EXPECT_FALSE(known->take("a"));
}

TEST(KnownNames, AListThatCannotBeReadIsAnError) {
  File pack{.kind = FileKind::kPack};
  pack.pack.list = std::make_shared<const std::string>("no list");
  EXPECT_FALSE(KnownNames::of(std::vector<File>{pack}));
}

// Whatever was taken before a source's control died, what it lists then and what it had noted are the tree.
TEST(KnownNames, APackerThatGoesOnMakesTheRestWhereverTheFirstOneWasCut) {
  Packer whole(kLimits);
  add_all(whole, 60);
  const std::vector<std::string> all = names_of(rest_of(whole));
  for (int cut = 0; cut <= 60; ++cut) {
    SCOPED_TRACE(cut);
    Packer first(kLimits);
    first.begin_tree("exp/d", "/data/d", "d");
    for (int i = 0; i < cut; ++i) first.add(found("f" + std::to_string(1000 + i), i % 10 == 9 ? 500 : 10));
    std::vector<File> noted = first.take_closed();  // what is in the open pack is lost with it
    for (Packer::Large& large : first.take_large()) noted.push_back(std::move(large.file));
    Result<KnownNames> known = KnownNames::of(noted);
    ASSERT_TRUE(known);
    Packer second(kLimits, std::move(*known));
    add_all(second, 60);
    for (File& file : rest_of(second)) noted.push_back(std::move(file));
    EXPECT_EQ(names_of(noted), all);
    EXPECT_EQ(noted.back().kind, FileKind::kLastPack);
  }
}

TEST(KnownNames, WhatIsGoneOrNewMeanwhileDisturbsNothingElse) {
  Packer first(kLimits);
  first.begin_tree("exp/d", "/data/d", "d");
  for (int i = 0; i < 20; ++i) first.add(found("f" + std::to_string(1000 + i)));
  std::vector<File> noted = first.take_closed();
  ASSERT_EQ(noted.size(), 2U);
  Packer second(kLimits, std::move(*KnownNames::of(noted)));
  second.begin_tree("exp/d", "/data/d", "d");
  second.add(found("a new one"));
  for (int i = 0; i < 20; ++i) {
    if (i != 3) second.add(found("f" + std::to_string(1000 + i)));
  }
  EXPECT_EQ(names_of(rest_of(second)),
            (std::vector<std::string>{"d/a new one", "d/f1016", "d/f1017", "d/f1018", "d/f1019"}));
}

// What was noted counts for the limits, so a session that lists again and again takes what one list takes.
TEST(KnownNames, LimitsGrowOverWhatIsKnown) {
  const std::vector<File> noted(1000, File{.name = "x"});
  Packer packer({.large_bytes = 100}, std::move(*KnownNames::of(noted)));
  packer.begin_tree("exp/d", "/data/d", "d");
  packer.add(found("small now", 400));
  packer.add(found("large", 401));
  EXPECT_EQ(packer.large_count(), 1U);
}

}  // namespace
}  // namespace sluice::tree
