// Directories that really fold case: tools/e2e/bad_trees_test.py, where ntfs-3g is installed.
// SPDX-License-Identifier: Apache-2.0
#include "control/exports/parent.h"

#include <gtest/gtest.h>

#include "control/exports/exports_fixture.h"
#include "control/exports/letters.h"

namespace sluice::exports {
namespace {

class ParentTest : public ExportsTest {
 protected:
  void SetUp() override {
    ExportsTest::SetUp();
    tree_ = UniqueFd(::open((root_ / "data").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    parent_.emplace(tree_.get());
  }

  UniqueFd tree_;
  std::optional<Parent> parent_;
};

TEST_P(ParentTest, TellsLettersApartWhereTheFileSystemDoes) {
  ASSERT_GE(parent_->open("d/A"), 0);
  EXPECT_FALSE(folds_case_by_itself(parent_->open("d/A")));
  parent_->gave("A");
  EXPECT_FALSE(parent_->has_with_other_letters("a"));
}

TEST_P(ParentTest, WhereCaseIsFoldedANameThatWasGivenIsNotGivenInOtherLetters) {
  parent_->fold_case(true);
  ASSERT_GE(parent_->open("d/A"), 0);
  EXPECT_FALSE(parent_->has_with_other_letters("A"));
  parent_->gave("A");
  ASSERT_GE(parent_->open("d/a"), 0) << "the same directory";
  EXPECT_TRUE(parent_->has_with_other_letters("a"));
  EXPECT_FALSE(parent_->has_with_other_letters("A")) << "its own name";
  ASSERT_GE(parent_->open("e/a"), 0);
  EXPECT_FALSE(parent_->has_with_other_letters("a")) << "in another directory";
}

TEST_P(ParentTest, WhatIsThereIsLookedUpInTheListWhereThatKeepsLetters) {
  const auto there = [this](bool keeps_case) {
    Parent parent(tree_.get());
    parent.fold_case(keeps_case);
    EXPECT_GE(parent.open("sub/x"), 0);
    return parent.has_with_other_letters(".");  // which is there, and listed by no name
  };
  EXPECT_TRUE(there(true));
  EXPECT_FALSE(there(false));
}

TEST_P(ParentTest, SaysWhyThereIsNone) {
  write(root_ / "data/file", "x");
  EXPECT_EQ(parent_->open("file/x"), -1);
  EXPECT_EQ(errno, ENOTDIR);
}

INSTANTIATE_TEST_SUITE_P(FileSystems, ParentTest, testing::Values("/tmp", "/dev/shm"));

}  // namespace
}  // namespace sluice::exports
