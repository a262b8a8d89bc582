// SPDX-License-Identifier: Apache-2.0
#include "control/selection/filter.h"

#include <gtest/gtest.h>

namespace sluice::selection {
namespace {

Filter filter_of(const std::vector<Rule>& rules) {
  auto filter = Filter::make(rules);
  EXPECT_TRUE(filter) << filter.error().message;
  return filter ? *filter : Filter();
}

void expect_refused(const std::vector<Rule>& rules, const char* what) {
  const auto filter = Filter::make(rules);
  ASSERT_FALSE(filter) << what;
  EXPECT_EQ(filter.error().code, ErrorCode::kUsage);
  EXPECT_NE(filter.error().message.find(what), std::string::npos) << filter.error().message;
}

TEST(Filter, TakesWhatNoRuleMatches) {
  EXPECT_TRUE(Filter().takes("a/b", false));
  EXPECT_TRUE(filter_of({}).takes("a", true));
  EXPECT_TRUE(filter_of({{.include = false, .pattern = "*.o"}}).takes("a.c", false));
  EXPECT_TRUE(filter_of({{.include = true, .pattern = "*.o"}}).takes("a.c", false));
}

TEST(Filter, TheFirstRuleThatMatchesDecides) {
  const Filter sources = filter_of({{.include = true, .pattern = "*/"},
                                    {.include = true, .pattern = "*.c"},
                                    {.include = false, .pattern = "*"}});
  EXPECT_TRUE(sources.takes("a/b", true));
  EXPECT_TRUE(sources.takes("a/b/x.c", false));
  EXPECT_FALSE(sources.takes("a/b/x.o", false));
  const Filter late =
      filter_of({{.include = false, .pattern = "*.o"}, {.include = true, .pattern = "keep.o"}});
  EXPECT_FALSE(late.takes("keep.o", false));
  const Filter early =
      filter_of({{.include = true, .pattern = "keep.o"}, {.include = false, .pattern = "*.o"}});
  EXPECT_TRUE(early.takes("keep.o", false));
}

TEST(Filter, JudgesANameByItself) {
  const Filter filter = filter_of({{.include = false, .pattern = "/a/"}});
  EXPECT_FALSE(filter.takes("a", true));
  EXPECT_TRUE(filter.takes("a/b", false)) << "who walks does not come here";
}

TEST(Filter, AlwaysTakesTheRoot) {
  EXPECT_TRUE(filter_of({{.include = false, .pattern = "**"}}).takes("", true));
}

TEST(Filter, APatternIsNothingButAPattern) {
  const Filter filter = filter_of({{.include = false, .pattern = "a"},
                                   {.include = false, .pattern = "!"},
                                   {.include = false, .pattern = "+ b"},
                                   {.include = false, .pattern = "#c"},
                                   {.include = false, .pattern = "d "}});
  for (const char* path : {"a", "!", "+ b", "#c", "d "}) EXPECT_FALSE(filter.takes(path, false)) << path;
  for (const char* path : {"b", "c", "d"}) EXPECT_TRUE(filter.takes(path, false)) << path;
}

TEST(Filter, RefusesWhatCanBeNoPattern) {
  expect_refused({{.include = true, .pattern = "a"}, {.include = true}}, "rule 2 has an empty pattern");
  expect_refused({{.include = true, .pattern = std::string("a\0b", 3)}}, "rule 1 has a zero byte");
  filter_of({{.include = true, .pattern = "[not closed"}});
}

TEST(Filter, RefusesWhatIsTooMuch) {
  filter_of({{.include = false, .pattern = std::string(kPatternBytesMax, '?')}});
  expect_refused({{.include = false, .pattern = std::string(kPatternBytesMax + 1, '?')}},
                 "rule 1 has 4097 bytes, at most 4096");
  filter_of(std::vector<Rule>(kRulesMax, {.include = false, .pattern = "a"}));
  expect_refused(std::vector<Rule>(kRulesMax + 1, {.include = false, .pattern = "a"}), "10001 rules");
  const std::vector<Rule> full(kRulesBytesMax / kPatternBytesMax,
                               {.include = false, .pattern = std::string(kPatternBytesMax, 'a')});
  filter_of(full);
  auto more = full;
  more.push_back({.include = false, .pattern = "a"});
  expect_refused(more, "the patterns up to rule 257 have 1048577 bytes");
}

}  // namespace
}  // namespace sluice::selection
