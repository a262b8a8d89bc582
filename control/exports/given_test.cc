// A rename is to this class what a file system does that takes two names for one: what had the first name has
// the second one. One that really does: tools/e2e/bad_trees_test.py, where ntfs-3g is installed.
// SPDX-License-Identifier: Apache-2.0
#include "control/exports/given.h"

#include <gtest/gtest.h>

#include "control/exports/exports_fixture.h"

namespace sluice::exports {
namespace {

constexpr Folding kFolds{.folds = true, .keeps = false};
constexpr Folding kFoldsAndKeeps{.folds = true, .keeps = true};

class GivenTest : public ExportsTest {
 protected:
  void SetUp() override {
    ExportsTest::SetUp();
    tree_ = UniqueFd(::open(path("data").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  bool enters(Given& given, const std::string& relative) const {
    return given.may_enter(tree_.get(), path("data"), relative);
  }
  bool other(Given& given, const Folding& folding, const std::string& name) const {
    return given.has_other(folding, tree_.get(), path("data/" + name), name);
  }

  UniqueFd tree_;
};

TEST_P(GivenTest, FindsOutThatAFileSystemTellsNamesApartAndLeavesNothing) {
  const size_t before = entries("data");
  Given given;
  const Folding found = given.folding(tree_.get());
  EXPECT_FALSE(found.folds);
  EXPECT_TRUE(found.keeps);
  EXPECT_EQ(entries("data"), before);
}

TEST_P(GivenTest, ADirectoryIsNotEnteredByASecondName) {
  Given given(kFolds);
  fs::create_directories(root_ / "data/Dir/deep");
  EXPECT_TRUE(enters(given, "Dir/deep"));
  EXPECT_TRUE(enters(given, "Dir/deep"));
  EXPECT_TRUE(enters(given, "new/deep")) << "it is to be made";
  fs::rename(root_ / "data/Dir", root_ / "data/dir");
  EXPECT_FALSE(enters(given, "dir"));
  EXPECT_FALSE(enters(given, "dir/deep"));
  EXPECT_FALSE(enters(given, "dir/other/deeper"));
}

TEST_P(GivenTest, InAnotherDirectoryTheSameOneIsNoSecondName) {
  Given given(kFolds);
  fs::create_directories(root_ / "data/a/inner");
  fs::create_directory(root_ / "data/b");
  EXPECT_TRUE(enters(given, "a/inner"));
  fs::rename(root_ / "data/a/inner", root_ / "data/b/inner");
  EXPECT_TRUE(enters(given, "b/inner")) << "mounted there, for instance";
}

TEST_P(GivenTest, WhatTheSessionGaveIsNotReplacedUnderASecondName) {
  Given given(kFolds);
  write(root_ / "data/README", "upper");
  EXPECT_FALSE(other(given, kFolds, "README")) << "of before";
  given.gave(kFolds, tree_.get(), path("data/README"), "README");
  EXPECT_FALSE(other(given, kFolds, "README")) << "its own name";
  fs::rename(root_ / "data/README", root_ / "data/readme");
  EXPECT_TRUE(other(given, kFolds, "readme"));
  EXPECT_FALSE(other(given, kFolds, "missing"));
  EXPECT_FALSE(other(given, Folding(), "readme")) << "names are told apart there";
}

// The kernel may know what a name meant before the session replaced it by other letters.
TEST_P(GivenTest, LettersTellWhereTheInodeIsThatOfBefore) {
  Given given(kFolds);
  write(root_ / "data/README", "new");
  write(root_ / "data/readme", "of before");
  given.gave(kFolds, tree_.get(), path("data/README"), "README");
  EXPECT_TRUE(other(given, kFolds, "readme"));
  EXPECT_FALSE(other(given, kFolds, "README"));
  given.gave(kFolds, tree_.get(), path("data/NONE"), "NONE");
  EXPECT_TRUE(other(given, kFolds, "none")) << "what the kernel does not find has been given";
  fs::create_directory(root_ / "data/Dir");
  fs::create_directory(root_ / "data/dir");
  EXPECT_TRUE(enters(given, "Dir"));
  EXPECT_FALSE(enters(given, "dir"));
  EXPECT_TRUE(enters(given, "Dir"));
}

TEST_P(GivenTest, AHardLinkOfTheSessionIsANameOfItsOwn) {
  Given given(kFolds);
  write(root_ / "data/first", "x");
  given.gave(kFolds, tree_.get(), path("data/first"), "first");
  fs::create_hard_link(root_ / "data/first", root_ / "data/second");
  given.gave(kFolds, tree_.get(), path("data/second"), "second");
  EXPECT_FALSE(other(given, kFolds, "first"));
  EXPECT_FALSE(other(given, kFolds, "second"));
  fs::rename(root_ / "data/second", root_ / "data/second.");
  EXPECT_TRUE(other(given, kFolds, "second."));
  fs::create_hard_link(root_ / "data/first", root_ / "data/of-before");
  EXPECT_FALSE(other(given, kFolds, "of-before"));
}

// "." is there, and listed by no name.
TEST_P(GivenTest, WhatIsThereIsLookedUpInTheListWhereThatKeepsNames) {
  Given given(kFoldsAndKeeps);
  EXPECT_TRUE(other(given, kFoldsAndKeeps, "."));
  EXPECT_FALSE(other(given, kFolds, ".")) << "it lists all names otherwise";
  given.interrupted();
  EXPECT_TRUE(other(given, kFolds, ".")) << "a name of the session, perhaps, given by a former life";
}

INSTANTIATE_TEST_SUITE_P(FileSystems, GivenTest, testing::Values("/tmp", "/dev/shm"));

}  // namespace
}  // namespace sluice::exports
