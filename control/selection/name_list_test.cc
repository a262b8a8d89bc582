// SPDX-License-Identifier: Apache-2.0
#include "control/selection/name_list.h"

#include <gtest/gtest.h>

#include "control/selection/choice.h"

namespace sluice::selection {
namespace {

using Names = std::vector<std::string>;

Names read(std::string_view text, bool zero_bytes = false) {
  const auto names = read_names(text, zero_bytes);
  EXPECT_TRUE(names) << names.error().message;
  return names ? *names : Names{};
}

std::string problem_of(std::string_view text) {
  const auto names = read_names(text, false);
  EXPECT_FALSE(names);
  return names ? "" : names.error().message;
}

TEST(NameList, ANameIsCarriedWithoutWhatSaysNothing) {
  for (const char* name : {"a/b", "/a/b", "./a/b", "//a//b", "././a/b", "/./a/b"})
    EXPECT_EQ(*clean_name(name), "a/b") << name;
  for (const char* name : {"a/b/", "a/b//", "a/b/.", "/a/b/./"}) EXPECT_EQ(*clean_name(name), "a/b/") << name;
  for (const char* name : {".", "./", "/", "./."}) EXPECT_EQ(*clean_name(name), kAllOfIt) << name;
  EXPECT_EQ(*clean_name("..a/.b/..."), "..a/.b/...");
}

TEST(NameList, ANameThatLeadsElsewhereOrCannotBeIsRefused) {
  for (const char* name : {"..", "../a", "a/..", "a/../b"}) {
    ASSERT_FALSE(clean_name(name)) << name;
    EXPECT_NE(clean_name(name).error().message.find("write names without .."), std::string::npos);
  }
  EXPECT_FALSE(clean_name("a/./b")) << "rsync would cut it there";
  EXPECT_FALSE(clean_name(std::string("a\0b", 3)));
  EXPECT_TRUE(clean_name(std::string(255, 'n')));
  EXPECT_FALSE(clean_name(std::string(256, 'n')));
  EXPECT_TRUE(clean_name("a" + std::string(4095, '/')));
  EXPECT_FALSE(clean_name("a" + std::string(4096, '/')));
}

TEST(NameList, ALineIsANameAndRemarksAreNone) {
  EXPECT_EQ(read("b\r\n\n# no\n; nor\n./#yes\n a \nlast"), (Names{"b", "#yes", " a ", "last"}));
  EXPECT_EQ(read(std::string_view("b\0#c\0a\nb\0", 9), true), (Names{"b", "#c", "a\nb"}));
  EXPECT_EQ(problem_of("a\n\n../b\n"), "name 3: ../b: leads out of the directory; write names without ..");
  EXPECT_EQ(problem_of("# nothing\n\n"), "the list names nothing");
}

TEST(NameList, IsBounded) {
  std::string many;
  for (size_t i = 0; i < kNamesMax; ++i) many += "a\n";
  EXPECT_EQ(read(many).size(), kNamesMax);
  EXPECT_NE(problem_of(many + "a\n").find("more than 100000 names"), std::string::npos);
  std::string path;
  for (int i = 0; i < 16; ++i) path += std::string(254, 'n') + "/";
  std::string large;
  while (large.size() <= kNamesBytesMax + 8192) large += path + "\n";
  EXPECT_NE(problem_of(large).find("or 8 MiB"), std::string::npos);
}

TEST(NameList, WhatIsCarriedIsWhatACleanListHas) {
  EXPECT_TRUE(check_names({"a", "b/", "./"}));
  for (const char* name : {"/a", "./a", "a//b", "a/.", ".", ""}) EXPECT_FALSE(check_names({name})) << name;
  EXPECT_FALSE(check_names({}));
  EXPECT_FALSE(check_names(Names(kNamesMax + 1, "a")));
  EXPECT_FALSE(check_names({"a", ".."}));
}

TEST(NameList, WhatIsInADirectoryStandsBehindItAndTogether) {
  const NameList list({"a!b", "a/c", "a", "a/b/", "a", "./"});
  EXPECT_EQ(Names(list.names().begin(), list.names().end()), (Names{"./", "a", "a/b/", "a/c", "a!b"}));
  EXPECT_TRUE(list.has("a") && list.has("a/b") && list.has("a/c") && list.has("a!b"));
  EXPECT_FALSE(list.has("a/b/c") || list.has("b") || list.has("a!") || list.has(""));
  EXPECT_TRUE(list.has_contents_of("") && list.has_contents_of("a/b"));
  EXPECT_FALSE(list.has_contents_of("a") || list.has_contents_of("a/c"));
  EXPECT_TRUE(list.leads_to_more("a"));
  EXPECT_FALSE(list.leads_to_more("a/b") || list.leads_to_more("a!b") || list.leads_to_more("a/c"));
}

// As rsync has it: rules judge what is listed, and not the directories that lead there.
TEST(Choice, OfAListRulesLeaveOutWhatIsListedAndNotTheWayToIt) {
  Selection selection{.rules = {{.include = false, .pattern = "a"}, {.include = false, .pattern = "*.tmp"}},
                      .names = {"a/x", "a/x.tmp", "d/"}};
  const Choice choice = *Choice::make(selection);
  EXPECT_TRUE(choice.reaches("a", true));
  EXPECT_TRUE(choice.reaches("a/x", false));
  EXPECT_FALSE(choice.reaches("a", false)) << "it leads to nothing";
  EXPECT_FALSE(choice.reaches("a/x.tmp", false));
  EXPECT_FALSE(choice.reaches("a/y", false));
  EXPECT_TRUE(choice.reaches("d", true) && choice.reaches("d/any", false) && choice.reaches("d/any", true));
  EXPECT_FALSE(choice.reaches("d/any/deeper", false) || choice.reaches("d/a.tmp", false));
  selection.rules = {{.include = false, .pattern = "d"}};
  EXPECT_FALSE(Choice::make(selection)->reaches("d/any", false)) << "of what is left out nothing comes";
}

TEST(Choice, ASelectionIsCheckedBeforeItIsUsed) {
  EXPECT_TRUE(check_selection({}, 0));
  EXPECT_TRUE(check_selection({.rules = {}, .names = {"a"}}, 1));
  EXPECT_FALSE(check_selection({.rules = {}, .names = {"a"}}, 2));
  EXPECT_FALSE(check_selection({.rules = {}, .names = {"/a"}}, 1));
  EXPECT_FALSE(check_selection({.rules = {{.include = true, .pattern = ""}}, .names = {}}, 1));
  EXPECT_FALSE(Choice::make({.rules = {{.include = true, .pattern = ""}}, .names = {}}));
}

}  // namespace
}  // namespace sluice::selection
