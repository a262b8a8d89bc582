// SPDX-License-Identifier: Apache-2.0
#include "control/exports/parent.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "control/exports/unpack_fixture.h"

namespace sluice::exports {
namespace {

class ParentTest : public UnpackTest {
 protected:
  void SetUp() override {
    UnpackTest::SetUp();
    tree_.emplace(std::move(*exports_.open_destination_tree("data")));
    parent_.emplace(*tree_);
  }
  void fold() { tree_->given = std::make_shared<Given>(Folding{.folds = true, .keeps = false}); }

  std::optional<DestinationTree> tree_;
  std::optional<Parent> parent_;
};

TEST_P(ParentTest, TellsLettersApartWhereTheFileSystemDoes) {
  write(root_ / "data/a", "x");
  ASSERT_GE(parent_->open("A"), 0);
  parent_->gave("A");
  EXPECT_FALSE(parent_->has_other("a"));
}

TEST_P(ParentTest, WhereNamesAreFoldedOneThatWasGivenIsNotGivenAgain) {
  fold();
  ASSERT_GE(parent_->open("d/A"), 0);
  write(root_ / "data/d/A", "x");
  EXPECT_FALSE(parent_->has_other("A"));
  parent_->gave("A");
  fs::rename(root_ / "data/d/A", root_ / "data/d/a");
  ASSERT_GE(parent_->open("d/a"), 0) << "the same directory";
  EXPECT_TRUE(parent_->has_other("a"));
  ASSERT_GE(parent_->open("e/a"), 0);
  EXPECT_FALSE(parent_->has_other("a")) << "in another directory";
  parent_->close();
  ASSERT_GE(parent_->open("d/a"), 0);
  EXPECT_TRUE(parent_->has_other("a")) << "for all of the session";
}

TEST_P(ParentTest, WhereNamesAreFoldedADirectoryIsNotEnteredByASecondName) {
  fold();
  ASSERT_GE(parent_->open("t/Dir/f"), 0);
  fs::rename(root_ / "data/t/Dir", root_ / "data/t/dir");
  EXPECT_EQ(parent_->open("t/dir/f"), -1);
  EXPECT_EQ(errno, ENOTUNIQ);
  UniqueFd made;
  EXPECT_EQ(parent_->make("t/dir", &made), ENOTUNIQ);
}

TEST_P(ParentTest, SaysWhyThereIsNone) {
  write(root_ / "data/file", "x");
  EXPECT_EQ(parent_->open("file/x"), -1);
  EXPECT_EQ(errno, ENOTDIR);
}

TEST_P(ParentTest, OpensUpDirectoriesThatForbidTheirOwnerToWriteAndGivesBackTheirModes) {
  fs::create_directories(root_ / "data/ro/deep");
  if (!give_to_nobody()) GTEST_SKIP() << "needs root";
  const AsNobody nobody;
  const auto make_all = [this] {
    ASSERT_EQ(::chmod(path("data/ro/deep").c_str(), 0), 0);
    ASSERT_EQ(::chmod(path("data/ro").c_str(), 0555), 0);
  };
  make_all();
  ASSERT_GE(parent_->open("ro/deep/new/f"), 0) << strerror(errno);
  EXPECT_EQ(mode("ro"), 0555U);
  EXPECT_TRUE(parent_->open("ro/f") >= 0 && parent_->open_up());
  EXPECT_EQ(mode("ro"), 0755U);
  ASSERT_GE(parent_->open("ro/deep/f"), 0);
  EXPECT_EQ(mode("ro"), 0555U) << "when it is left";
  EXPECT_TRUE(parent_->open_up());
  EXPECT_EQ(::mkdirat(parent_->open("ro/deep/f"), "made", 0700), 0);
  parent_->close();
  ASSERT_EQ(::chmod(path("data/ro/deep").c_str(), 0700), 0);
  EXPECT_TRUE(fs::exists(root_ / "data/ro/deep/made") && fs::exists(root_ / "data/ro/deep/new"));
}

INSTANTIATE_TEST_SUITE_P(FileSystems, ParentTest, testing::Values("/tmp", "/dev/shm"));

}  // namespace
}  // namespace sluice::exports
