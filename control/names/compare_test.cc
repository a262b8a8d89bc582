// SPDX-License-Identifier: Apache-2.0
#include "control/names/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace sluice::names {
namespace {

using Kind = Difference::Kind;
using Side = Comparison::Side;

Entry file(std::string path, uint64_t size = 1, base::FileTimeNs mtime_ns = 5) {
  return {
      .path = std::move(path), .type = Type::kFile, .size_bytes = size, .mode = 0644, .mtime_ns = mtime_ns};
}
Entry directory(std::string path) {
  return {.path = std::move(path), .type = Type::kDirectory, .mode = 0755, .mtime_ns = 5};
}
Entry link(std::string path, std::string target) {
  return {
      .path = std::move(path), .type = Type::kLink, .mode = 0777, .mtime_ns = 5, .target = std::move(target)};
}
Entry lost(Entry entry) {
  entry.error_code = 7;
  entry.error = "no permission";
  return entry;
}

struct Outcome {
  std::string text;  // "-path" is missing at the destination, "!path" differs, "+path" is extra, "=path" is
                     // kept, "?path", "??path"
  ComparisonTotals totals;
};

std::string mark(Kind kind) {
  switch (kind) {
    case Kind::kMissing:
      return "-";
    case Kind::kDifferent:
      return "!";
    case Kind::kExtra:
      return "+";
    case Kind::kKept:
      return "=";
    case Kind::kSourceProblem:
      return "?";
    case Kind::kDestinationProblem:
      return "??";
  }
  return "";
}

// `page`: so many entries at a time.
Outcome compare(
    const std::vector<Entry>& source, const std::vector<Entry>& destination, size_t page = 2,
    Comparison::Takes takes = [](const std::string&, bool) { return true; }, bool by_digest = false) {
  Comparison comparison(std::move(takes), by_digest);
  const std::vector<Entry>* const lists[] = {&source, &destination};
  size_t at[] = {0, 0};
  Outcome outcome;
  const auto note = [&] {
    for (const Difference& each : comparison.take()) outcome.text += mark(each.kind) + each.path + " ";
  };
  while (const std::optional<Side> side = comparison.wants()) {
    const std::vector<Entry>& list = *lists[static_cast<size_t>(*side)];
    size_t& next = at[static_cast<size_t>(*side)];
    if (next == list.size()) {
      comparison.end(*side);
    } else {
      const size_t end = std::min(next + page, list.size());
      comparison.put(
          *side, {{list.begin() + static_cast<ptrdiff_t>(next), list.begin() + static_cast<ptrdiff_t>(end)}});
      next = end;
    }
    note();
  }
  outcome.totals = comparison.totals();
  return outcome;
}

TEST(Comparison, OfTheSameNothingIsFound) {
  const std::vector<Entry> tree = {directory("a"), file("a/f"), link("a/l", "f"), file("b")};
  const Outcome outcome = compare(tree, tree);
  EXPECT_EQ(outcome.text, "");
  EXPECT_EQ(outcome.totals.same, 4U);
  EXPECT_EQ(outcome.totals.source, 4U);
  EXPECT_EQ(outcome.totals.destination, 4U);
  EXPECT_EQ(compare({}, {}).text, "");
}

TEST(Comparison, ByDigestFilesAreWhatTheyHold) {
  const auto summed = [](std::string path, std::optional<uint64_t> digest, int64_t mtime_ns) {
    Entry entry = file(std::move(path), 1, mtime_ns);
    entry.digest = digest;
    return entry;
  };
  const std::vector<Entry> source = {summed("changed", 1, 5), summed("touched", 2, 5),
                                     summed("unread", 3, 5)};
  Entry unread = lost(summed("unread", std::nullopt, 5));
  const std::vector<Entry> destination = {summed("changed", 9, 5), summed("touched", 2, 6), unread};
  const auto all = [](const std::string&, bool) { return true; };
  EXPECT_EQ(compare(source, destination, 2, all, true).text, "!changed ??unread !unread ");
  EXPECT_EQ(compare(source, destination, 2, all, false).text, "!touched ??unread ");
  Entry other_mode = summed("touched", 2, 5);
  other_mode.mode = 0600;
  EXPECT_EQ(compare({source[1]}, {other_mode}, 2, all, true).text, "!touched ");
  Entry later = directory("d");
  later.mtime_ns = 6;
  EXPECT_EQ(compare({directory("d")}, {later}, 2, all, true).text, "!d ") << "of a directory the time counts";
}

TEST(Comparison, TellsMissingDifferentAndExtraNames) {
  const Outcome outcome = compare({directory("a"), file("a/f"), file("a/g"), file("c")},
                                  {directory("a"), file("a/e"), file("a/g", 2), file("b"), file("d")});
  EXPECT_EQ(outcome.text, "+a/e -a/f !a/g +b -c +d ");
  EXPECT_EQ(outcome.totals.missing, 2U);
  EXPECT_EQ(outcome.totals.different, 1U);
  EXPECT_EQ(outcome.totals.extra, 3U);
  EXPECT_EQ(outcome.totals.same, 1U);
}

TEST(Comparison, EachPropertyThatATransferKeepsCounts) {
  const auto differs = [](const Entry& one, const Entry& other) {
    return !compare({one}, {other}).text.empty();
  };
  EXPECT_TRUE(differs(file("f", 1), file("f", 2)));
  EXPECT_TRUE(differs(file("f", 1, 5), file("f", 1, 6)));
  EXPECT_TRUE(differs(file("f"), directory("f")));
  EXPECT_TRUE(differs(link("f", "x"), link("f", "y")));
  Entry other = file("f");
  other.mode = 0600;
  EXPECT_TRUE(differs(file("f"), other));
  other.mode = 04644;  // is not carried
  EXPECT_FALSE(differs(file("f"), other));
  other = directory("f");
  other.mtime_ns = 6;
  EXPECT_TRUE(differs(directory("f"), other));
  other = link("f", "x");
  other.mode = 0755;
  EXPECT_FALSE(differs(link("f", "x"), other));
  other.mtime_ns = 6;
  EXPECT_TRUE(differs(link("f", "x"), other));
  other = file("f");
  other.uid = 7;
  other.links = 2;
  EXPECT_FALSE(differs(file("f"), other));
}

TEST(Comparison, ADirectoryBecomesStickyAndStaysSo) {
  const auto with_mode = [](Entry entry, uint32_t mode) {
    entry.mode = mode;
    return entry;
  };
  EXPECT_EQ(compare({with_mode(directory("d"), 01755)}, {directory("d")}).text, "!d ");
  EXPECT_EQ(compare({directory("d")}, {with_mode(directory("d"), 03755)}).text, "");
  EXPECT_EQ(compare({with_mode(file("f"), 07644)}, {file("f")}).text, "") << "of files none of these travels";
}

TEST(Comparison, AnExtraDirectoryComesAfterWhatIsInIt) {
  const Outcome outcome =
      compare({file("z")},
              {directory("a"), directory("a/b"), file("a/b/c"), file("a/d"), directory("e"), file("z")}, 1);
  EXPECT_EQ(outcome.text, "+a/b/c +a/b +a/d +a +e ");
}

// "a" < "a/b" < "a.b" in a list, though '.' < '/'.
TEST(Comparison, FollowsTheOrderOfLists) {
  const Outcome outcome = compare({directory("a"), file("a/b"), file("a.b")},
                                  {directory("a"), file("a/b"), file("a-b"), file("a.b")});
  EXPECT_EQ(outcome.text, "+a-b ");
}

TEST(Comparison, WhatTheRulesLeaveOutIsNeitherSentNorRemoved) {
  const auto takes = [](const std::string& path, bool is_directory) {
    return !path.ends_with(".tmp") && !(is_directory && path == "scratch");
  };
  const Outcome outcome =
      compare({file("a.tmp"), file("f"), directory("scratch"), file("scratch/s")},
              {file("b.tmp"), directory("old"), directory("old/deep"), file("old/deep/x.tmp"), file("old/y"),
               directory("scratch"), file("scratch/t")},
              2, takes);
  EXPECT_EQ(outcome.text, "-f =old/deep +old/y =old ") << "old holds what must stay";
  EXPECT_EQ(outcome.totals.kept, 2U);
  EXPECT_EQ(outcome.totals.source, 1U);
  EXPECT_EQ(outcome.totals.destination, 3U);
}

TEST(Comparison, WhatIsNotKnownOfTheSourceIsNoReasonToRemove) {
  const Outcome outcome = compare({lost(directory("a")), lost(file("b")), file("c")},
                                  {directory("a"), file("a/f"), file("b"), file("c")});
  EXPECT_EQ(outcome.text, "?a ?b ");
  EXPECT_EQ(outcome.totals.source_problems, 2U);
  EXPECT_EQ(outcome.totals.extra, 0U);
}

TEST(Comparison, ADirectoryThatCouldNotBeReadStays) {
  const Outcome outcome = compare({}, {directory("a"), lost(directory("a/b")), file("c")});
  EXPECT_EQ(outcome.text, "??a/b =a +c ");
  EXPECT_EQ(outcome.totals.destination_problems, 1U);
  EXPECT_EQ(outcome.totals.kept, 1U);
}

TEST(Comparison, AnotherKindOfThingIsDifferentAndItsContentsStay) {
  const Outcome outcome = compare({file("a"), directory("b"), file("b/f")},
                                  {directory("a"), directory("a/d"), file("a/d/f"), file("b")});
  EXPECT_EQ(outcome.text, "!a !b -b/f ");
  Comparison comparison([](const std::string&, bool) { return true; });
  comparison.put(Side::kSource, {{file("a")}});
  comparison.put(Side::kDestination, {{directory("a")}});
  const std::vector<Difference> found = comparison.take();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].type, Type::kFile);
  EXPECT_EQ(found[0].destination_type, Type::kDirectory);
}

TEST(Comparison, ANameThatBeginsAsADirectoryDoesIsNotInIt) {
  const auto takes = [](const std::string& path, bool) { return path != "s" && path != "s/a"; };
  const Outcome outcome = compare({file("a"), directory("s"), file("s/a"), file("s/b"), file("sx")},
                                  {directory("a"), file("a/f"), file("ax"), directory("e"), lost(file("ex")),
                                   directory("s"), file("s/a"), file("s/c"), file("sy")},
                                  1, takes);
  EXPECT_EQ(outcome.text, "!a +ax +e ??ex -sx +sy ");
}

TEST(Comparison, DevicesAndPipesOfTheSourceAreLeftOut) {
  Entry fifo = file("p");
  fifo.type = Type::kFifo;
  Entry other = fifo;
  other.path = "q";
  const Outcome outcome = compare({fifo, other}, {directory("p"), file("p/f")});
  EXPECT_EQ(outcome.text, "");
  EXPECT_EQ(outcome.totals.left_out, 2U);
}

// With sets, which know all names at once.
TEST(Comparison, FindsWhatSetsFindWhereverPagesEnd) {
  std::mt19937 random(1);
  const auto draw = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    std::map<std::string, Entry> sides[2];
    for (auto& side : sides) {
      for (int i = draw(12); i > 0; --i) {
        std::string path;
        for (int depth = draw(3); depth > 0; --depth) {
          path += std::string(1, "ab."[draw(2)]) + "d";
          side.emplace(path, directory(path));
          path += "/";
        }
        path += std::string(1, "ab.-\xff"[draw(5)]) + "f";
        side.emplace(path, file(path, static_cast<uint64_t>(draw(2))));
      }
    }
    std::vector<Entry> lists[2];
    for (int side = 0; side < 2; ++side) {
      for (const auto& [path, entry] : sides[side]) lists[side].push_back(entry);
      std::ranges::sort(lists[side], [](const Entry& one, const Entry& other) {
        return compare_paths(one.path, other.path) < 0;
      });
    }
    std::multiset<std::string> expected;
    for (const auto& [path, entry] : sides[0]) {
      const auto there = sides[1].find(path);
      if (there == sides[1].end()) expected.insert("-" + path);
      if (there != sides[1].end() && there->second.size_bytes != entry.size_bytes)
        expected.insert("!" + path);
    }
    for (const auto& [path, entry] : sides[1]) {
      if (!sides[0].contains(path)) expected.insert("+" + path);
    }
    const Outcome outcome = compare(lists[0], lists[1], static_cast<size_t>(1 + draw(4)));
    std::multiset<std::string> found;
    for (size_t from = 0; from < outcome.text.size();) {
      const size_t space = outcome.text.find(' ', from);
      found.insert(outcome.text.substr(from, space - from));
      from = space + 1;
    }
    ASSERT_EQ(found, expected) << "round " << round;
  }
}

}  // namespace
}  // namespace sluice::names
