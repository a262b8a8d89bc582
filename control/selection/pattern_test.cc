// SPDX-License-Identifier: Apache-2.0
#include "control/selection/pattern.h"

#include <gtest/gtest.h>

namespace sluice::selection {
namespace {

bool file(std::string_view pattern, std::string_view path) { return Pattern(pattern).matches(path, false); }
bool directory(std::string_view pattern, std::string_view path) {
  return Pattern(pattern).matches(path, true);
}

TEST(Pattern, OneWithoutASlashMeansTheLastComponent) {
  EXPECT_TRUE(file("foo", "foo"));
  EXPECT_TRUE(file("foo", "a/b/foo"));
  EXPECT_TRUE(directory("foo", "a/foo"));
  EXPECT_FALSE(file("foo", "foo/a"));
  EXPECT_FALSE(file("foo", "a/xfoo"));
  EXPECT_FALSE(file("foo", "foox"));
  EXPECT_TRUE(file("*.o", "a/b/x.o"));
  EXPECT_FALSE(file("*.o", "a.o/x"));
}

TEST(Pattern, OneWithASlashMeansAsManyComponentsAtTheEnd) {
  EXPECT_TRUE(file("foo/bar", "foo/bar"));
  EXPECT_TRUE(file("foo/bar", "a/foo/bar"));
  EXPECT_FALSE(file("foo/bar", "a/xfoo/bar"));
  EXPECT_FALSE(file("foo/bar", "bar"));
  EXPECT_FALSE(file("foo/bar", "foo/bar/a"));
  EXPECT_TRUE(file("foo/*/bar", "a/foo/b/bar"));
  EXPECT_FALSE(file("foo/*/bar", "foo/a/b/bar"));
  EXPECT_FALSE(file("foo/*/bar", "foo/bar"));
  EXPECT_TRUE(file("*/*", "a/b/c"));
  EXPECT_FALSE(file("*/*", "a"));
}

TEST(Pattern, ASlashInFrontAnchorsAtTheRoot) {
  EXPECT_TRUE(file("/foo", "foo"));
  EXPECT_FALSE(file("/foo", "a/foo"));
  EXPECT_TRUE(file("/a/foo", "a/foo"));
  EXPECT_FALSE(file("/a/foo", "b/a/foo"));
  EXPECT_TRUE(file("/*.c", "x.c"));
  EXPECT_FALSE(file("/*.c", "a/x.c"));
  EXPECT_TRUE(file("/*/x", "a/x"));
}

TEST(Pattern, ASlashBehindMeansADirectory) {
  EXPECT_TRUE(directory("foo/", "a/foo"));
  EXPECT_FALSE(file("foo/", "a/foo"));
  EXPECT_TRUE(directory("*/", "a/b"));
  EXPECT_FALSE(file("*/", "a/b"));
  EXPECT_TRUE(directory("/a/b/", "a/b"));
  EXPECT_FALSE(directory("b/", "a/b/c")) << "what is in it is another matter";
}

TEST(Pattern, AStarAndAQuestionMarkStopAtASlash) {
  EXPECT_TRUE(file("/a*z", "az"));
  EXPECT_TRUE(file("/a*z", "abcz"));
  EXPECT_FALSE(file("/a*z", "ab/cz"));
  EXPECT_TRUE(file("/a?z", "abz"));
  EXPECT_FALSE(file("/a?z", "az"));
  EXPECT_FALSE(file("/a?z", "a/z"));
  EXPECT_TRUE(file("/*/*z/*", "a/bz/c"));
  EXPECT_FALSE(file("?", "\xC3\xA9")) << "names are bytes";
  EXPECT_TRUE(file("??", "\xC3\xA9"));
}

TEST(Pattern, TwoStarsDoNotStopAtASlash) {
  EXPECT_TRUE(file("/foo/**", "foo/a/b"));
  EXPECT_FALSE(directory("/foo/**", "foo"));
  EXPECT_TRUE(file("/foo/**/bar", "foo/a/b/bar"));
  EXPECT_FALSE(file("/foo/**/bar", "foo/bar"));
  EXPECT_TRUE(file("/a**z", "az"));
  EXPECT_TRUE(file("/a**z", "ab/c/z"));
  EXPECT_FALSE(file("/a**z", "b/a/z"));
  EXPECT_TRUE(file("**", "a/b"));
  EXPECT_TRUE(file("***", "a")) << "more of them are as many";
}

TEST(Pattern, WithTwoStarsItMayBeginAtAnyComponent) {
  EXPECT_TRUE(file("foo/**", "a/foo/b/c"));
  EXPECT_FALSE(file("foo/**", "a/xfoo/b/c"));
  EXPECT_TRUE(file("a**z", "b/a/x/z"));
  EXPECT_TRUE(file("a**z", "b/axz"));
  EXPECT_FALSE(file("a**z", "ba/z"));
}

TEST(Pattern, TwoStarsInFrontTakeTheRootForASlash) {
  EXPECT_TRUE(file("**/foo", "foo"));
  EXPECT_TRUE(file("**/foo", "a/b/foo"));
  EXPECT_FALSE(file("**/foo", "a/xfoo"));
  EXPECT_TRUE(file("**foo", "a/xfoo"));
  EXPECT_FALSE(file("/**/foo", "foo")) << "which an anchor does not";
}

TEST(Pattern, ThreeStarsBehindASlashMeanADirectoryAndAllInIt) {
  EXPECT_TRUE(directory("foo/***", "foo"));
  EXPECT_TRUE(directory("foo/***", "a/foo"));
  EXPECT_TRUE(file("foo/***", "a/foo/b/c"));
  EXPECT_FALSE(file("foo/***", "foo")) << "a file of that name is no directory";
  EXPECT_TRUE(directory("/foo/***", "foo"));
  EXPECT_FALSE(directory("/foo/***", "a/foo"));
  EXPECT_FALSE(directory("foo/***", "xfoo"));
}

TEST(Pattern, AClassIsOneByteAndNeverASlash) {
  EXPECT_TRUE(file("[abc]", "b"));
  EXPECT_FALSE(file("[abc]", "d"));
  EXPECT_FALSE(file("[abc]", "ab"));
  EXPECT_TRUE(file("x[0-9a-f]y", "xdy"));
  EXPECT_FALSE(file("x[0-9a-f]y", "xgy"));
  EXPECT_TRUE(file("[!a]", "b"));
  EXPECT_FALSE(file("[!a]", "a"));
  EXPECT_TRUE(file("[^a]", "b"));
  EXPECT_FALSE(file("[^a]", "a"));
  EXPECT_FALSE(file("/a[!x]b", "a/b"));
  EXPECT_FALSE(file("/a[/]b", "a/b"));
  EXPECT_FALSE(file("/a[.-0]b", "a/b"));
  EXPECT_TRUE(file("[\x80-\xFF]*", "\xC3\xA9"));
}

TEST(Pattern, BytesOfAClassThatHaveAMeaningElsewhere) {
  EXPECT_TRUE(file("[]]", "]"));
  EXPECT_TRUE(file("[!]]", "a"));
  EXPECT_FALSE(file("[!]]", "]"));
  EXPECT_TRUE(file("[]-a]", "^")) << "a range from ]";
  EXPECT_TRUE(file("[a-]", "-"));
  EXPECT_TRUE(file("[-a]", "-"));
  EXPECT_TRUE(file("[a-c-e]", "-"));
  EXPECT_FALSE(file("[a-c-e]", "d"));
  EXPECT_TRUE(file("[z-a]", "z")) << "a range that is empty leaves its first byte";
  EXPECT_FALSE(file("[z-a]", "a"));
  EXPECT_TRUE(file("[a!^]", "^"));
  EXPECT_TRUE(file("[*?[]", "?"));
  EXPECT_FALSE(file("[*?[]", "a"));
  EXPECT_TRUE(file("[\\]]", "]"));
  EXPECT_TRUE(file("[a\\-z]", "-"));
  EXPECT_FALSE(file("[a\\-z]", "b"));
  EXPECT_TRUE(file("[\\a-\\c]", "b"));
}

TEST(Pattern, NamedClassesAreThoseOfAscii) {
  const auto count = [](const std::string& name) {
    const Pattern pattern("[[:" + name + ":]]");
    int found = 0;
    for (int byte = 1; byte < 256; ++byte) {
      found += pattern.matches(std::string(1, static_cast<char>(byte)), false) ? 1 : 0;
    }
    return found;
  };
  EXPECT_EQ(count("alnum"), 62);
  EXPECT_EQ(count("alpha"), 52);
  EXPECT_EQ(count("blank"), 2);
  EXPECT_EQ(count("cntrl"), 32);
  EXPECT_EQ(count("digit"), 10);
  EXPECT_EQ(count("graph"), 93) << "without the slash";
  EXPECT_EQ(count("lower"), 26);
  EXPECT_EQ(count("print"), 94);
  EXPECT_EQ(count("punct"), 31);
  EXPECT_EQ(count("space"), 6);
  EXPECT_EQ(count("upper"), 26);
  EXPECT_EQ(count("xdigit"), 22);
  EXPECT_TRUE(file("[_[:digit:][:upper:]]", "Q"));
  EXPECT_TRUE(file("[_[:digit:][:upper:]]", "_"));
  EXPECT_FALSE(file("[_[:digit:][:upper:]]", "q"));
  EXPECT_TRUE(file("[![:digit:]]", "q"));
  EXPECT_TRUE(file("[[:digit:]-z]", "-"));
  EXPECT_FALSE(file("[[:digit:]-z]", "b"));
  EXPECT_TRUE(file("[[:alpha]", "[")) << "it is not closed by :], so these are bytes";
}

TEST(Pattern, ABrokenOneMatchesNothing) {
  for (const char* pattern : {"[", "[a", "a*[b", "[]", "[!]", "[a-", "[a\\", "[[:nothing:]]",
                              "[a[:nothing:]]", "[[::]]", "[[:", "*\\", "/", "//"}) {
    for (const char* path : {"a", "[", "[a", "]", "b", "\\", "a\\", "-", "a/a", "a/[b", "a*[b"}) {
      EXPECT_FALSE(file(pattern, path)) << pattern << " " << path;
      EXPECT_FALSE(directory(pattern, path)) << pattern << " " << path;
    }
  }
}

TEST(Pattern, ABackslashEscapesWhereThereIsAWildcard) {
  EXPECT_TRUE(file("foo\\bar", "foo\\bar"));
  EXPECT_FALSE(file("foo\\bar", "foobar"));
  EXPECT_TRUE(file("foo\\bar*", "foobar"));
  EXPECT_FALSE(file("foo\\bar*", "foo\\bar"));
  EXPECT_TRUE(file("foo\\\\bar*", "foo\\bar"));
  EXPECT_TRUE(file("a\\*", "a*")) << "an escaped wildcard is one of those that a pattern has";
  EXPECT_FALSE(file("a\\*", "ab"));
  EXPECT_TRUE(file("\\[d", "[d"));
  EXPECT_TRUE(file("\\??", "?x"));
  EXPECT_TRUE(file("a\\", "a\\")) << "without a wildcard it is a byte";
  EXPECT_TRUE(directory("\\***", "a/*")) << "a star, then two that are wild";
  EXPECT_FALSE(directory("\\***", "a/b"));
}

TEST(Pattern, DoubledSlashesAreInNoName) {
  EXPECT_FALSE(directory("foo//", "foo"));
  EXPECT_FALSE(directory("//foo", "foo"));
  EXPECT_FALSE(file("a//b", "a/b"));
}

// A matcher that tries one way after another would need longer than the universe is old.
TEST(Pattern, AHostileOneCostsNoMoreThanBytesTimesBytes) {
  std::string stars;
  std::string double_stars;
  for (int i = 0; i < 30; ++i) {
    stars += "*a";
    double_stars += "**a";
  }
  const std::string name(255, 'a');
  std::string path = name;
  for (int i = 0; i < 15; ++i) path += "/" + name;
  for (const std::string& pattern : {stars, double_stars, "/" + double_stars + "*", "x" + double_stars}) {
    EXPECT_FALSE(file(pattern + "b", path));
  }
  EXPECT_TRUE(file(stars, path));
  EXPECT_TRUE(file(double_stars, path));
  std::string longest;
  while (longest.size() + 3 <= kPatternBytesMax) longest += "*[a]";
  longest.resize(kPatternBytesMax - 1, 'a');
  EXPECT_FALSE(file(longest + "b", path));
  EXPECT_TRUE(file(std::string(kPatternBytesMax, '*'), path));
  EXPECT_TRUE(file(std::string(kPatternBytesMax - 1, '?') + "*", std::string(kPatternBytesMax, 'a')));
  EXPECT_FALSE(file(std::string(kPatternBytesMax, '?'), std::string(kPatternBytesMax - 1, 'a')));
  EXPECT_TRUE(file(std::string(kPatternBytesMax, '?'), std::string(kPatternBytesMax, 'a')));
}

// Where a pattern's tokens go from one word of 64 into the next.
TEST(Pattern, EveryLengthMatchesItselfAndNoOther) {
  for (size_t length = 1; length <= 200; ++length) {
    const std::string path(length, 'a');
    EXPECT_TRUE(file(std::string(length - 1, 'a') + "?", path));
    EXPECT_TRUE(file(std::string(length - 1, 'a') + "*", path));
    EXPECT_TRUE(file(path + "*", path));
    EXPECT_FALSE(file(path + "?", path));
    EXPECT_TRUE(file("*" + path, path));
    EXPECT_FALSE(file("*" + path + "a", path));
    EXPECT_TRUE(file(path.substr(1) + "*?", path)) << length;
  }
}

}  // namespace
}  // namespace sluice::selection
