// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "control/catalog/asked_names.h"
#include "control/catalog/entry.h"

namespace sluice::catalog {
namespace {

TEST(GoodPath, IsRelativeAndHasNoPartThatLeadsElsewhere) {
  for (const char* path : {"a", "a/b", "...", "a/..b/c..", ".a", " ", "-", "a\nb", "\xff\xfe/\x01", "a/.x"}) {
    EXPECT_TRUE(good_path(path)) << path;
  }
  for (const char* path : {"", "/", "/a", "a/", "a//b", ".", "..", "./a", "a/.", "a/..", "../a", "a/../b",
                           "a/./b", "//", "a/b/"}) {
    EXPECT_FALSE(good_path(path)) << path;
  }
}

TEST(GoodPath, HasNoNulAnywhere) {
  using namespace std::string_view_literals;
  EXPECT_FALSE(good_path("\0"sv));
  EXPECT_FALSE(good_path("a\0b"sv));
  EXPECT_FALSE(good_path("a/b\0"sv));
}

TEST(GoodPath, IsAsLongAsASystemTakesAndNoLonger) {
  const std::string name(255, 'n');
  EXPECT_TRUE(good_path(name));
  EXPECT_FALSE(good_path(name + "n"));
  EXPECT_FALSE(good_path("a/" + name + "n/b"));
  std::string path;
  for (int i = 0; i < 16; ++i) path += name + "/";  // 4096
  path.back() = 'n';
  EXPECT_FALSE(good_path(path)) << "its last name is too long";
  path[path.size() - 2] = '/';
  EXPECT_EQ(path.size(), 4096U);
  EXPECT_TRUE(good_path(path));
  EXPECT_FALSE(good_path(path + "n"));
}

TEST(Failures, EachHasItsTextAndALaterVersionsIsToldAsAny) {
  std::set<std::string_view> texts;
  for (uint32_t i = 0; i < kFailures; ++i) {
    EXPECT_EQ(failure_of(i), static_cast<Failure>(i));
    EXPECT_TRUE(texts.insert(failure_text(failure_of(i))).second) << i;
    EXPECT_EQ(failure_text(failure_of(i)).empty(), i == 0);
  }
  for (const uint32_t number : {uint32_t{kFailures}, 255U, 256U, UINT32_MAX})
    EXPECT_EQ(failure_of(number), Failure::kOther) << number;
  EXPECT_EQ(failure_text(static_cast<Failure>(200)), failure_text(Failure::kOther));
  EXPECT_EQ(failure_of(static_cast<uint32_t>(kOtherTime)), kOtherTime);
  EXPECT_TRUE(texts.insert(failure_text(kOtherTime)).second);
}

TEST(Shortfall, ANameThatArrivedWithAnotherTimeIsToldAndDoesNotCount) {
  Shortfall shortfall;
  shortfall.note("lost", Failure::kVanished);
  shortfall.note("old", kOtherTime);
  EXPECT_EQ(shortfall.failed, 1U);
  EXPECT_EQ(shortfall.names.size(), 2U);
  shortfall.forget_failures();
  EXPECT_EQ(shortfall.failed, 0U);
  ASSERT_EQ(shortfall.names.size(), 1U);
  EXPECT_EQ(shortfall.names.front().path, "old");
}

TEST(LastName, IsThatOfTheFileWhateverSlashesAndDotsFollow) {
  for (const char* path : {"name", "exp/name", "/a/b/name", "exp/name/", "exp/name//", "exp/name/.",
                           "exp/name/./", "exp/name/././."}) {
    EXPECT_EQ(last_name(path), "name") << path;
  }
  EXPECT_EQ(last_name("exp/..."), "...");
  EXPECT_EQ(last_name(""), "");
  EXPECT_EQ(last_name("/"), "");
  EXPECT_EQ(last_name("."), ".");
}

TEST(AskedNames, ADirectoryBringsWhatIsBeneathIt) {
  const AskedNames asked({"exp/dir", "/abs/other/file"});
  for (const char* path : {"dir", "dir/a", "dir/a/b", "file"}) EXPECT_TRUE(asked.include(path)) << path;
  for (const char* path : {"dirx", "dirx/a", "di", "other", "other/file", "exp", "exp/dir", "abs", "", "/dir",
                           "./dir", "../dir", "Dir/a"}) {
    EXPECT_FALSE(asked.include(path)) << path;
  }
  EXPECT_FALSE(asked.any());
}

TEST(AskedNames, WhatIsInADirectoryComesUnderAnyName) {
  for (const char* path : {"exp/dir/", "exp/dir/.", "exp/dir//", "/abs/dir/.", "/", "exp", "exp/"}) {
    const AskedNames asked({path});
    EXPECT_TRUE(asked.include("anything/at/all")) << path;
    EXPECT_TRUE(asked.any()) << path;
  }
  EXPECT_TRUE(AskedNames({"exp/one", "exp/dir/"}).include("two"));
}

TEST(AskedNames, WhatRulesLeaveOutWasNotAskedFor) {
  const selection::Selection selection{.rules = {{.include = false, .pattern = "no/"}}, .names = {}};
  const AskedNames asked({"exp/dir", "memory:5"}, *selection::Choice::make(selection));
  EXPECT_TRUE(asked.include("dir/a", false));
  EXPECT_TRUE(asked.include("dir/no", false)) << "the rule is of directories";
  EXPECT_FALSE(asked.include("dir/no", true));
  EXPECT_FALSE(asked.include("dir/no/deeper", false));
  EXPECT_FALSE(asked.include("other", false));
  EXPECT_TRUE(asked.include("memory-5", false));
}

TEST(AskedNames, OfAListOnlyWhatLeadsToItsNamesMayCome) {
  const AskedNames asked({"exp/dir/"}, *selection::Choice::make({.rules = {}, .names = {"a/b"}}));
  EXPECT_TRUE(asked.include("a", true));
  EXPECT_TRUE(asked.include("a/b", false));
  EXPECT_FALSE(asked.include("a", false));
  EXPECT_FALSE(asked.include("a/b/c", false));
  EXPECT_FALSE(asked.include("b", false));
}

TEST(AskedNames, OfASourceThatIsMadeUpOnlyItsNameMayCome) {
  const AskedNames asked({"memory:5", "exp/dir"});
  EXPECT_TRUE(asked.include("memory-5"));
  EXPECT_TRUE(asked.include("dir/a"));
  EXPECT_FALSE(asked.include("anything"));
  EXPECT_FALSE(asked.include("memory-5/a"));
  EXPECT_FALSE(asked.any());
  EXPECT_FALSE(AskedNames({"exp/dir"}).include("memory-5"));
}

TEST(AskedNames, NothingWasAskedForAndNothingMayCome) {
  EXPECT_FALSE(AskedNames({}).include("a"));
  for (const char* path : {"", ".", "./."}) EXPECT_FALSE(AskedNames({path}).include("a")) << path;
}

}  // namespace
}  // namespace sluice::catalog
