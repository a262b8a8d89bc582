// What a peer may say about names. docs/WIRE.md, 2.6.
// SPDX-License-Identifier: Apache-2.0
#include "control/names/words.h"

#include <gtest/gtest.h>

#include "control/names/list_check.h"

namespace sluice::names {
namespace {

using namespace std::string_literals;

ErrorCode admitted(Word word) {
  const Status status = admit(&word);
  return status ? ErrorCode::kOk : status.error().code;
}

Page page_of(const std::vector<std::string>& paths) {
  Page page;
  for (const std::string& path : paths) page.entries.push_back({.path = path, .type = Type::kFile});
  return page;
}

TEST(NamesWords, NamesThatNoFileCanHaveAreRefused) {
  for (const std::string& path : {"/x"s, "x/"s, "x//y"s, ".."s, "x/.."s, "."s, "x/./y"s, "a\0b"s,
                                  std::string(256, 'x'), "x/" + std::string(256, 'x')}) {
    EXPECT_EQ(admitted(page_of({path})), ErrorCode::kIncompatible) << path;
    EXPECT_EQ(admitted(Done{.problems = {{.path = path}}}), ErrorCode::kIncompatible) << path;
  }
  std::string deep;
  for (int i = 0; i < 2049; ++i) deep += i == 0 ? "a" : "/a";
  EXPECT_EQ(admitted(page_of({deep})), ErrorCode::kIncompatible) << "4097 bytes";
  deep.resize(4095);
  EXPECT_EQ(admitted(page_of({deep})), ErrorCode::kOk);
}

TEST(NamesWords, NamesAreBytes) {
  for (const std::string& path :
       {"\xff\xfe"s, "a\nb"s, "\x1b[2J"s, "..."s, ".x"s, " "s, std::string(255, 'x'), "a/b c/\x80"s})
    EXPECT_EQ(admitted(page_of({path})), ErrorCode::kOk) << path;
}

TEST(NamesWords, PagesHaveEntriesAndNotTooMany) {
  EXPECT_EQ(admitted(Page{}), ErrorCode::kIncompatible);
  Page page;
  page.entries.resize(kEntriesPerPage);
  EXPECT_EQ(admitted(page), ErrorCode::kOk);
  page.entries.emplace_back();
  EXPECT_EQ(admitted(page), ErrorCode::kIncompatible);
  Done done;
  done.problems.resize(kProblemsMax + 1);
  EXPECT_EQ(admitted(done), ErrorCode::kIncompatible);
}

TEST(NamesWords, PathsThatAreAskedForHaveABound) {
  const std::string longest(kPathBytesMax, 'x');
  for (const size_t extra : {0, 1}) {
    const ErrorCode expected = extra == 0 ? ErrorCode::kOk : ErrorCode::kIncompatible;
    const std::string path = longest + std::string(extra, 'x');
    EXPECT_EQ(admitted(Request(List{.path = path})), expected);
    EXPECT_EQ(admitted(Request(MakeDirectory{.path = path})), expected);
    EXPECT_EQ(admitted(Request(Move{.from = path})), expected);
    EXPECT_EQ(admitted(Request(Move{.to = path})), expected);
    EXPECT_EQ(admitted(Request(Remove{.path = path})), expected);
  }
}

TEST(NamesWords, EntriesAreOfWhatThereCanBe) {
  EXPECT_EQ(admitted(Page{{{.path = "x", .type = Type::kFile, .target = "y"}}}), ErrorCode::kIncompatible);
  EXPECT_EQ(admitted(Page{{{.path = "x", .type = Type::kLink, .target = "y\0z"s}}}),
            ErrorCode::kIncompatible);
  EXPECT_EQ(admitted(Page{{{.path = "x", .type = Type::kLink, .target = std::string(4097, 'y')}}}),
            ErrorCode::kIncompatible);
  EXPECT_EQ(admitted(Page{{{.path = "x", .type = Type::kLink, .target = "../\xff"}}}), ErrorCode::kOk);
  EXPECT_EQ(admitted(Page{{{.path = "x", .type = Type::kFile, .mode = 010000}}}), ErrorCode::kIncompatible);
}

TEST(NamesWords, WhatIsForPeopleBecomesPrintable) {
  Word word = Page{{{.path = "x", .error_code = 99, .error = "a\x1b[2J" + std::string(2000, 'b')}}};
  ASSERT_TRUE(admit(&word));
  const Entry& entry = std::get<Page>(word).entries[0];
  EXPECT_EQ(entry.error.substr(0, 5), "a?[2J");
  EXPECT_LE(entry.error.size(), kTextBytesMax);
  EXPECT_EQ(entry.error_code, static_cast<uint32_t>(ErrorCode::kInternal)) << "a code of a later version";
}

// ---- whole lists ---------------------------------------------------------------------------------

Status taken(ListCheck& list, const std::vector<std::string>& paths) { return list.take(page_of(paths)); }

TEST(ListCheck, TakesAListThatIsOne) {
  ListCheck list({.path = "data", .recursive = true, .pages = 2});
  EXPECT_TRUE(taken(list, {"a", "a/b", "b"}));
  EXPECT_TRUE(taken(list, {"c"}));
  EXPECT_TRUE(list.end({.entries = 4}));
  EXPECT_FALSE(list.end({.entries = 3})) << "some were lost on the way";
  EXPECT_FALSE(list.end({.entries = 4, .failed = 1}));
}

TEST(ListCheck, CutsOffWhatIsNotInOrderAlsoOverPages) {
  for (const std::vector<std::string>& paths :
       std::vector<std::vector<std::string>>{{"b", "a"}, {"a", "a"}, {"a-", "a/b"}}) {
    ListCheck one({.recursive = true, .pages = 9});
    const Status status = taken(one, paths);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kIncompatible);
    EXPECT_NE(status.error().message.find("not in order"), std::string::npos) << status.error().message;
    ListCheck two({.recursive = true, .pages = 9});
    EXPECT_TRUE(taken(two, {paths[0]}));
    EXPECT_FALSE(taken(two, {paths[1]}));
  }
}

TEST(ListCheck, CutsOffWhatWasNotAskedFor) {
  ListCheck flat({.pages = 9});
  EXPECT_FALSE(taken(flat, {"a/b"})) << "not recursive";
  ListCheck nameless({.pages = 9});
  EXPECT_TRUE(taken(nameless, {""})) << "a file is listed as itself";
  EXPECT_FALSE(taken(nameless, {"a"})) << "and alone";
  ListCheck directory({.pages = 9});
  EXPECT_FALSE(directory.take(Page{{{.type = Type::kDirectory}}})) << "what is in it was asked for";
  ListCheck itself({.itself = true, .pages = 9});
  EXPECT_TRUE(itself.take(Page{{{.type = Type::kDirectory}}}));
  ListCheck other({.itself = true, .pages = 9});
  EXPECT_FALSE(taken(other, {"a"}));
}

TEST(ListCheck, APatternMustFit) {
  const List asked{.path = "data/[ab]*/*.h5", .glob = true, .pages = 9};
  EXPECT_TRUE(ListCheck(asked).take(page_of({"a1/x.h5", "b/y.h5"})));
  for (const char* path : {"c/x.h5", "a/x.txt", "a", "a/x.h5/y"})
    EXPECT_FALSE(ListCheck(asked).take(page_of({path}))) << path;
  List deep = asked;
  deep.recursive = true;
  EXPECT_TRUE(ListCheck(deep).take(page_of({"a/x.h5/y"})));
  EXPECT_TRUE(ListCheck(asked).take(Page{{{.path = "a", .error_code = 7}}})) << "it could not be gone into";
}

TEST(ListCheck, PagesComeAsTheyWereLetCome) {
  ListCheck list({.pages = 2});
  EXPECT_TRUE(taken(list, {"a"}));
  EXPECT_TRUE(taken(list, {"b"}));
  EXPECT_FALSE(taken(list, {"c"})) << "two were let come";
}

TEST(ListCheck, CreditGrowsWithWhatIsUsed) {
  ListCheck list({.pages = 8});
  EXPECT_EQ(list.granted(), 8U);
  EXPECT_FALSE(list.used());
  EXPECT_TRUE(list.used()) << "a word for two pages";
  EXPECT_EQ(list.granted(), 10U);
}

TEST(NamesWords, WhatANodeSaysOfItselfIsBoundedAndPrintable) {
  Word word = Done{
      .node = NodeState{.software = "sluice\n1" + std::string(200, 'x'), .spaces = {{.name = "da\x1bta"}}}};
  ASSERT_TRUE(admit(&word));
  const NodeState& node = *std::get<Done>(word).node;
  EXPECT_LE(node.software.size(), kSoftwareBytesMax);
  EXPECT_EQ(node.software.find('\n'), std::string::npos);
  EXPECT_EQ(node.spaces[0].name, "da?ta");
  Word many = Done{.node = NodeState{.spaces = std::vector<Space>(kSpacesMax + 1)}};
  EXPECT_FALSE(admit(&many));
  Word asked = Request(AboutNode{});
  EXPECT_TRUE(admit(&asked));
  EXPECT_EQ(shown(AboutNode{}), "a question about the node");
}

}  // namespace
}  // namespace sluice::names
