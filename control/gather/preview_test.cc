// What a selection leaves of sources, and what a preview tells of them.
// SPDX-License-Identifier: Apache-2.0
#include "control/gather/preview.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "control/gather/sources.h"
#include "control/tree/pack.h"

namespace sluice::gather {
namespace {

namespace fs = std::filesystem;
using catalog::Entry;
using catalog::Failure;
using selection::Selection;
using Paths = std::vector<std::string>;

class SelectedSources : public testing::Test {
 protected:
  SelectedSources() {
    char name[] = "/tmp/sluice-preview-XXXXXX";
    root_ = ::mkdtemp(name);
    fs::create_directories(root_ / "from/t/sub");
    exports_ = std::move(*exports::Exports::open({{"from", root_ / "from", true, false}}));
    for (const char* file : {"a.h5", "b.tmp", "t/a.h5", "t/b.tmp", "t/sub/c.h5"}) write(file, "12345");
    write("t/large.h5", std::string((1U << 20) + 1, 'x'));
  }
  ~SelectedSources() override { fs::remove_all(root_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / "from" / name) << text;
  }

  // What arrives: of a session, and of its preview.
  Paths sent(const Paths& paths, const Selection& selection) const {
    const Result<OpenSources> opened = open_sources(exports_, paths, selection);
    if (!opened) return {opened.error().message};
    Paths names;
    for (const catalog::File& file : opened->files) {
      if (!file.packed()) names.push_back(file.name);
      for (const Entry& entry : file.packed() ? *tree::from_bytes(*file.pack.list) : std::vector<Entry>())
        names.push_back(entry.path);
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  std::vector<Entry> preview(const Paths& paths, const Selection& selection) const {
    std::vector<Entry> entries;
    const Status status = preview_sources(exports_, paths, selection, [&](const Entry& entry) -> Status {
      entries.push_back(entry);
      return {};
    });
    if (!status) entries.push_back({.path = status.error().message});
    return entries;
  }
  void expect(const Paths& paths, const Selection& selection, const Paths& expected) const {
    EXPECT_EQ(sent(paths, selection), expected);
    Paths names;
    for (const Entry& entry : preview(paths, selection)) names.push_back(entry.path);
    std::sort(names.begin(), names.end());
    EXPECT_EQ(names, expected) << "as the preview has it";
  }
  static Selection without(const std::string& pattern) {
    return {.rules = {{.include = false, .pattern = pattern}}, .names = {}};
  }

  fs::path root_;
  exports::Exports exports_;
};

TEST_F(SelectedSources, RulesAreOfFilesAndTreesAndNotOfWhatIsMadeUp) {
  expect({"from/t", "from/a.h5", "from/b.tmp", "memory:5"}, without("*.tmp"),
         {"a.h5", "memory-5", "t", "t/a.h5", "t/large.h5", "t/sub", "t/sub/c.h5"});
  expect({"from/t/", "memory:5"}, without("*"), {"memory-5"});
  expect({"from/t", "from/b.tmp"}, without("/t"), {"b.tmp"});
}

TEST_F(SelectedSources, OfNothingNoSessionIsMade) {
  const Paths nothing{"nothing to send: the rules or the list leave nothing of it"};
  expect({"from/t"}, without("t"), nothing);
  expect({"from/t/"}, without("*"), nothing);
  expect({"from/a.h5"}, without("*"), nothing);
  fs::create_directories(root_ / "from/empty");
  expect({"from/empty/"}, {}, {"nothing to send: the directory holds nothing"});
}

TEST_F(SelectedSources, AListIsOfOneDirectoryHoweverThatIsWritten) {
  const Selection list{.rules = {}, .names = {"t/large.h5", "t/sub/c.h5"}};
  const Paths expected{"t", "t/large.h5", "t/sub", "t/sub/c.h5"};
  for (const std::string& path : {std::string("from"), std::string("from/"), (root_ / "from").string()})
    expect({path}, list, expected);
  expect({"from/t"}, {.rules = {}, .names = {"sub"}}, {"sub"});
  expect({"from/a.h5"}, list, {"from/a.h5/: is no directory, and a list of names is of one"});
}

// What the files of a pack are read by is the directory itself, not its name.
TEST_F(SelectedSources, WhatIsListedIsReadAgainFromWhereItIs) {
  const Result<OpenSources> opened = open_sources(exports_, {"from/t"}, {.rules = {}, .names = {"sub/c.h5"}});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->files.front().path, "from/t/");
}

TEST_F(SelectedSources, APreviewTellsSizesAndWhatWouldBeMissing) {
  ASSERT_EQ(::mkfifo((root_ / "from/t/pipe").c_str(), 0600), 0);
  std::map<std::string, Entry> found;
  for (const Entry& entry : preview({"from/t"}, {.rules = {}, .names = {}})) found[entry.path] = entry;
  EXPECT_EQ(found["t/a.h5"].size_bytes, 5U);
  EXPECT_EQ(found["t/large.h5"].size_bytes, (1U << 20) + 1);
  EXPECT_EQ(found["t/a.h5"].failure, Failure::kNone);
  EXPECT_EQ(found["t/pipe"].failure, Failure::kSpecial);
  found.clear();
  for (const Entry& entry : preview({"from/t"}, {.rules = {}, .names = {"none", "a.h5"}}))
    found[entry.path] = entry;
  EXPECT_EQ(found["none"].failure, Failure::kVanished);
  EXPECT_EQ(found["a.h5"].failure, Failure::kNone);
  EXPECT_EQ(found.size(), 2U);
}

TEST_F(SelectedSources, APreviewTellsWhatMayNotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read anything";
  fs::permissions(root_ / "from/t/a.h5", fs::perms::none);
  const std::vector<Entry> entries = preview({"from/t/"}, {.rules = {}, .names = {"a.h5"}});
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].failure, Failure::kForbidden);
}

}  // namespace
}  // namespace sluice::gather
