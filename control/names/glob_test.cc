// SPDX-License-Identifier: Apache-2.0
#include "control/names/glob.h"

#include <gtest/gtest.h>

namespace sluice::names {
namespace {

using namespace std::string_literals;

TEST(Glob, StarsStandForAnyBytesAlsoForNone) {
  for (const char* pattern : {"*", "**", "*.h5", "a*", "*a*5", "a.h5*", "*?*"})
    EXPECT_TRUE(matches(pattern, "a.h5")) << pattern;
  for (const char* pattern : {"", "*.h", "b*", "*.h55", "a?.h5", "*5?"})
    EXPECT_FALSE(matches(pattern, "a.h5")) << pattern;
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("?", ""));
}

TEST(Glob, ADotAtTheBeginningIsNothingSpecial) { EXPECT_TRUE(matches("*rc", ".bashrc")); }

TEST(Glob, SetsHoldBytesAndRangesOrAllOthers) {
  EXPECT_TRUE(matches("run[0-9][a-c]", "run7b"));
  EXPECT_FALSE(matches("run[0-9]", "runx"));
  EXPECT_TRUE(matches("[!0-9]x", "ax"));
  EXPECT_TRUE(matches("[^0-9]x", "ax"));
  EXPECT_FALSE(matches("[!0-9]x", "5x"));
  EXPECT_TRUE(matches("[]a]", "]")) << "at its beginning it is one of the set";
  EXPECT_TRUE(matches("[!]a]", "b"));
  EXPECT_FALSE(matches("[!]a]", "]"));
  EXPECT_TRUE(matches("[a-]", "-"));
  EXPECT_TRUE(matches("[\\]]", "]"));
  EXPECT_FALSE(matches("[z-a]", "m")) << "a range of nothing";
}

TEST(Glob, ASetThatDoesNotEndIsABracket) {
  EXPECT_TRUE(matches("[abc", "[abc"));
  EXPECT_FALSE(matches("[abc", "a"));
  EXPECT_TRUE(matches("a[", "a["));
  EXPECT_TRUE(matches("[!", "[!"));
}

TEST(Glob, ABackslashTakesTheMeaning) {
  EXPECT_TRUE(matches("\\*", "*"));
  EXPECT_FALSE(matches("\\*", "a"));
  EXPECT_TRUE(matches("a\\?b", "a?b"));
  EXPECT_TRUE(matches("a\\", "a\\")) << "with nothing behind it, it is one";
}

TEST(Glob, BytesNeedNotBeUtf8) {
  EXPECT_TRUE(matches("?\xff*", "a\xff\xfe"));
  EXPECT_TRUE(matches("[\x80-\xff]", "\xe9"));
}

// Each star but the last is tried once: no pattern takes more than the product of the lengths.
TEST(Glob, ManyStarsEnd) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "a*";
  EXPECT_FALSE(matches(pattern + "b", std::string(255, 'a')));
}

TEST(Glob, WhatIsAPattern) {
  EXPECT_TRUE(is_pattern("data/*.h5"));
  EXPECT_TRUE(is_pattern("data/a\\*")) << "a backslash only counts in a pattern";
  EXPECT_FALSE(is_pattern("data/a\\b"));
}

TEST(Glob, APathIsCutBeforeItsFirstWildcard) {
  const Pattern one = split_pattern("/srv//data/run\\[1]/*.h5");
  EXPECT_EQ(one.base, "/srv/data/run[1]");
  EXPECT_EQ(one.parts, std::vector{"*.h5"s});
  const Pattern two = split_pattern("data/*/x/?");
  EXPECT_EQ(two.base, "data");
  EXPECT_EQ(two.parts, (std::vector{"*"s, "x"s, "?"s}));
  EXPECT_EQ(split_pattern("/*").base, "/");
  EXPECT_EQ(split_pattern("*").base, "");
  const Pattern literal = split_pattern("data/sub/a\\*/");
  EXPECT_EQ(literal.base, "data/sub");
  EXPECT_EQ(literal.parts, std::vector{"a\\*"s});
  EXPECT_TRUE(split_pattern("//").parts.empty());
}

}  // namespace
}  // namespace sluice::names
