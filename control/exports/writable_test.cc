// SPDX-License-Identifier: Apache-2.0
#include "control/exports/writable.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "control/exports/exports_fixture.h"

namespace sluice::exports {
namespace {

class WritableTest : public ExportsTest {
 protected:
  void SetUp() override {
    ExportsTest::SetUp();
    fs::create_directory(root_ / "data/ro");
    ASSERT_EQ(::chmod(path("data/ro").c_str(), 0555), 0);
    directory_ = open("data/ro");
    writable_ = std::make_shared<WritableDirectories>(notes());
  }
  UniqueFd open(const std::string& relative) const {
    return UniqueFd(::open(path(relative).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  fs::path notes() const { return root_ / "notes"; }
  mode_t mode(const std::string& relative = "data/ro") const {
    struct stat info {};
    EXPECT_EQ(::stat(path(relative).c_str(), &info), 0);
    return info.st_mode & 07777;
  }
  UniqueFd directory_;
  std::shared_ptr<WritableDirectories> writable_;
};

TEST_P(WritableTest, OpensUpForAsLongAsAnybodyHoldsItAndGivesBackTheMode) {
  auto one = writable_->open_up(directory_.get());
  auto other = writable_->open_up(directory_.get());
  ASSERT_TRUE(one && other);
  EXPECT_EQ(mode(), 0755U);
  one.reset();
  EXPECT_EQ(mode(), 0755U);
  other.reset();
  EXPECT_EQ(mode(), 0555U);
  EXPECT_EQ(WritableDirectories(notes()).give_back(), 0U);
}

TEST_P(WritableTest, WhatItsOwnerMayWriteToAnyhowIsLeftAsItIs) {
  const UniqueFd sub = open("data/sub");
  EXPECT_FALSE(writable_->open_up(sub.get()));
  EXPECT_FALSE(fs::exists(notes()));
}

TEST_P(WritableTest, AfterAKillTheNextLifeGivesBackTheMode) {
  auto held = writable_->open_up(directory_.get());
  ASSERT_TRUE(held);
  fs::copy_file(notes(), root_ / "kept");
  const mode_t opened = mode();
  held.reset();
  ASSERT_EQ(::chmod(path("data/ro").c_str(), opened), 0);  // as a kill leaves it
  std::shared_ptr<WritableDirectories> next = std::make_shared<WritableDirectories>(root_ / "kept");
  EXPECT_EQ(next->give_back(), 1U);
  EXPECT_EQ(mode(), 0555U);
  EXPECT_EQ(fs::file_size(root_ / "kept"), 0U);
  ASSERT_EQ(::chmod(path("data/ro").c_str(), opened), 0);
  EXPECT_EQ(next->give_back(), 0U) << "somebody wants it so now";
}

TEST_P(WritableTest, WhatSomebodyHasChangedMeanwhileIsLeftAsItIs) {
  auto held = writable_->open_up(directory_.get());
  fs::copy_file(notes(), root_ / "kept");
  ASSERT_EQ(::chmod(path("data/ro").c_str(), 0700), 0);
  held.reset();
  EXPECT_EQ(mode(), 0700U);
  EXPECT_EQ(WritableDirectories(root_ / "kept").give_back(), 0U);
  EXPECT_EQ(mode(), 0700U);
}

TEST_P(WritableTest, AnotherDirectoryOfThatNameIsNotTheOneThatWasOpenedUp) {
  auto held = writable_->open_up(directory_.get());
  fs::rename(root_ / "data/ro", root_ / "data/moved");
  fs::create_directory(root_ / "data/ro");
  ASSERT_EQ(::chmod(path("data/ro").c_str(), 0755), 0);
  fs::copy_file(notes(), root_ / "kept");
  EXPECT_EQ(WritableDirectories(root_ / "kept").give_back(), 0U);
  EXPECT_EQ(mode(), 0755U);
  held.reset();
  EXPECT_EQ(mode("data/moved"), 0555U);
}

TEST_P(WritableTest, TheModeThatItIsToHaveComesWhenItIsLeft) {
  auto held = writable_->open_up(directory_.get());
  const UniqueFd fd(::open(path("data/ro").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(writable_->set_mode(fd.get(), 0511), 0);
  EXPECT_EQ(mode(), 0711U);
  held.reset();
  EXPECT_EQ(mode(), 0511U);
  EXPECT_EQ(writable_->set_mode(fd.get(), 0500), 0);
  EXPECT_EQ(mode(), 0500U);
}

TEST_P(WritableTest, ANoteThatWasCutShortSaysNothing) {
  struct stat info {};
  ASSERT_EQ(::stat(path("data/sub").c_str(), &info), 0);
  const std::string inode = std::to_string(info.st_dev) + " " + std::to_string(info.st_ino);
  const std::string mode_now = std::to_string(mode("data/sub"));
  std::string place;
  for (const char c : path("data/sub")) place += fmt::format("{:02x}", c);
  write(notes(), "+ " + inode + " 365 " + mode_now + " " + place);  // without the end of the line
  EXPECT_EQ(writable_->give_back(), 0U);
  EXPECT_EQ(WritableDirectories(root_ / "none").give_back(), 0U);
}

INSTANTIATE_TEST_SUITE_P(FileSystems, WritableTest, testing::Values("/tmp", "/dev/shm"));

}  // namespace
}  // namespace sluice::exports
