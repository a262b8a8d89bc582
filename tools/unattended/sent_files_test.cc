// SPDX-License-Identifier: Apache-2.0
#include "tools/unattended/sent_files.h"

#include <gtest/gtest.h>

namespace sluice::unattended {
namespace {

using Names = std::vector<std::string>;
using Standing = SentFiles::Standing;

FileId id(uint64_t inode, uint64_t size = 10) { return {.inode = inode, .size = size, .mtime_ns = -5}; }

SentFiles read_again(const std::string& text) {
  SentFiles files;
  files.read(text);
  EXPECT_EQ(files.take_lines(), "") << "what was read is not written again";
  return files;
}

TEST(SentFiles, AFileIsSentOnceAndAnotherOneOfItsNameIsNew) {
  SentFiles files;
  EXPECT_EQ(files.standing("a", id(1)), Standing::kNew);
  const uint64_t batch = files.begin({{"a", id(1)}}, 100);
  EXPECT_EQ(files.standing("a", id(1)), Standing::kUnderWay);
  EXPECT_EQ(files.standing("a", id(2)), Standing::kBusy) << "after the one that is under way";
  EXPECT_EQ(files.arrived(batch, {}, true), Names{"a"});
  EXPECT_EQ(files.standing("a", id(1)), Standing::kArrived);
  EXPECT_EQ(files.standing("a", id(2)), Standing::kNew);
  EXPECT_EQ(files.standing("a", id(1, 11)), Standing::kNew) << "it has grown";
  ASSERT_NE(files.with_receipt("a"), nullptr);
  EXPECT_EQ(*files.with_receipt("a"), id(1));
}

TEST(SentFiles, WhatIsMissingOrFailedIsFreeAgain) {
  SentFiles files;
  const uint64_t first = files.begin({{"a", id(1)}, {"b", id(2)}}, 100);
  EXPECT_EQ(files.arrived(first, {"b"}, false), Names{"a"});
  EXPECT_EQ(files.standing("b", id(2)), Standing::kNew);
  EXPECT_EQ(files.with_receipt("a"), nullptr) << "of a session that did not succeed there is none";
  const uint64_t second = files.begin({{"b", id(2)}}, 101);
  EXPECT_EQ(files.failed(second), Names{"b"});
  EXPECT_EQ(files.standing("b", id(2)), Standing::kNew);
  EXPECT_TRUE(files.batches().empty());
}

// Cut off behind any byte, the file tells a state that was so: a batch that was not written whole was not
// begun.
TEST(SentFiles, ARestartAnywhereFindsAStateThatWasSo) {
  SentFiles files;
  files.set_folder(99);
  files.set_to("b:data/x y");
  const uint64_t first = files.begin({{"a b%\n", id(1)}, {"c", id(2)}}, 100);
  files.runs_as(first, "session1");
  files.arrived(first, {"c"}, true);
  const uint64_t second = files.begin({{"d", id(3)}, {"e", id(4)}}, 200);
  files.runs_as(second, "session2");
  const std::string text = files.take_lines();
  for (size_t bytes = 0; bytes <= text.size(); ++bytes) {
    const SentFiles again = read_again(text.substr(0, bytes));
    for (const auto& [number, batch] : again.batches()) {
      EXPECT_FALSE(batch.names.empty()) << bytes;
      EXPECT_TRUE(batch.names.size() == 2 || number == first) << bytes;
    }
    const bool d = again.standing("d", id(3)) == Standing::kNew;
    EXPECT_EQ(d, again.standing("e", id(4)) == Standing::kNew) << bytes << ": all of a batch, or none";
  }
  for (const std::string& whole : {text, files.all_lines()}) {
    SentFiles again = read_again(whole);
    EXPECT_EQ(again.folder(), 99U);
    EXPECT_EQ(again.to(), "b:data/x y");
    EXPECT_TRUE(SentFiles::is_first_line(std::string_view(whole).substr(0, whole.find('\n'))));
    EXPECT_EQ(again.standing("a b%\n", id(1)), Standing::kArrived);
    EXPECT_EQ(again.all_with_receipt(), Names{"a b%\n"});
    EXPECT_EQ(again.standing("c", id(2)), Standing::kNew);
    ASSERT_EQ(again.batches().size(), 1U);
    EXPECT_EQ(again.batches().begin()->second.session, "session2");
    EXPECT_EQ(again.batches().begin()->second.unix_ns, 200);
    EXPECT_GT(again.begin({{"f", id(5)}}, 300), second) << "no number is used twice";
  }
}

TEST(SentFiles, OnlyAStateBeginsAsOne) {
  EXPECT_TRUE(SentFiles::is_first_line("folder 99"));
  for (const char* line : {"", "folder", "folder of cats", "folder 99 cats", "my lab notes", "to b:data"})
    EXPECT_FALSE(SentFiles::is_first_line(line)) << line;
}

TEST(SentFiles, WhatIsNotThereAnyMoreIsForgottenUnlessItIsUnderWay) {
  SentFiles files;
  const uint64_t batch = files.begin({{"a", id(1)}, {"b", id(2)}}, 100);
  files.arrived(batch, {}, true);
  files.begin({{"c", id(3)}}, 101);
  files.forget_unless([](const std::string& name) { return name == "b"; });
  const SentFiles again = read_again(files.take_lines());
  EXPECT_EQ(again.standing("a", id(1)), Standing::kNew);
  EXPECT_EQ(again.standing("b", id(2)), Standing::kArrived);
  EXPECT_EQ(again.standing("c", id(3)), Standing::kUnderWay);
}

TEST(SentFiles, LinesThatAreNoneAreLeftOut) {
  read_again(
      "\nbatch\nbatch x 1 1\nbatch 1 1\nfile 9 1 1 1 1 a\nfile 1\nsession 4 a\narrived 7 1\nfailed 8 \nsent "
      "1 2\n");
}

}  // namespace
}  // namespace sluice::unattended
