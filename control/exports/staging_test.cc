// Directories that a tree lacks come whole; nothing tells them from those that are made name by name.
// SPDX-License-Identifier: Apache-2.0
#include "control/exports/staging.h"

#include <fcntl.h>
#include <sys/xattr.h>

#include <cerrno>

#include "control/exports/beneath.h"
#include "control/exports/unpack_fixture.h"
#include "control/exports/xattrs.h"

namespace sluice::exports {
namespace {

class StagingTest : public UnpackTest {
 protected:
  static Content some() {
    return Content().add_file("t/a", "a").add_file("t/sub/b", "b").add(symlink("t/sub/l", "b"));
  }
  // Where it lies before it has its name.
  fs::path found_staged(const std::string& name) const {
    for (const auto& each : fs::recursive_directory_iterator(root_ / "data" / kStaging))
      if (each.path().filename() == name) return each.path();
    return {};
  }
};
INSTANTIATE_TEST_SUITE_P(FileSystems, StagingTest, testing::Values("/tmp", "/dev/shm"));

TEST_P(StagingTest, ADirectoryThatTheTreeLacksIsMadeAsideAndComesWhole) {
  const auto one = unpacker();
  ASSERT_TRUE(one->stage(some().pack()));
  struct stat aside {};
  ASSERT_EQ(::stat(found_staged("b").parent_path().c_str(), &aside), 0);
  ASSERT_TRUE(one->commit());
  EXPECT_EQ(info("t/sub").st_ino, aside.st_ino);
  EXPECT_EQ(mode("t/sub"), 0700U) << "until its own mode comes";
  EXPECT_EQ(text("t/a") + text("t/sub/b"), "ab");
  EXPECT_EQ(fs::read_symlink(root_ / "data/t/sub/l"), "b");
  EXPECT_FALSE(there(kStaging));
}

// As where the file system knows no rename that replaces nothing.
TEST_P(StagingTest, ADirectoryGetsItsPlaceOverAnEmptyOneAndReplacesNothing) {
  const fs::path at = root_ / "data";
  const UniqueFd fd(::open(at.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto give = [&fd](const char* to) {
    errno = 0;
    return give_directory(fd.get(), "from", fd.get(), to) ? 0 : errno;
  };
  fs::create_directory(at / "from");
  write(at / "from/a", "a");
  fs::create_directory(at / "there");
  write(at / "file", "kept");
  fs::create_symlink("nowhere", at / "link");
  for (const char* const taken : {"there", "file", "link", "from"}) EXPECT_EQ(give(taken), EEXIST) << taken;
  EXPECT_EQ(text("file"), "kept");
  EXPECT_EQ(give("from/a/b"), ENOTDIR);
  EXPECT_NE(give("from/into-itself"), 0);
  EXPECT_FALSE(there("from/into-itself"));
  EXPECT_EQ(give("to"), 0);
  EXPECT_EQ(text("to/a"), "a");
  EXPECT_FALSE(there("from"));
}

TEST_P(StagingTest, WhatBelongsIntoADirectoryThatIsThereComesByItself) {
  fs::create_directory(root_ / "data/t");
  write(root_ / "data/t/before", "before");
  const ino_t before = info("t").st_ino;
  EXPECT_EQ(unpack(some()), Names());
  EXPECT_EQ(info("t").st_ino, before);
  EXPECT_EQ(entries("data/t"), 3U);
}

TEST_P(StagingTest, WhatSomebodyMadeMeanwhileStaysAndTheRestComesByItself) {
  for (const bool overwrite : {false, true}) {
    fs::remove_all(root_ / "data/t");
    const auto one = unpacker({.overwrite = overwrite});
    ASSERT_TRUE(one->stage(some().pack()));
    fs::create_directories(root_ / "data/t/sub");
    write(root_ / "data/t/sub/b", "his");
    write(root_ / "data/t/sub/other", "his");
    ASSERT_TRUE(one->commit());
    EXPECT_EQ(missing(*one), overwrite ? Names() : (Names{{"t/sub/b", Failure::kExists}}));
    EXPECT_EQ(text("t/sub/b"), overwrite ? "b" : "his");
    EXPECT_EQ(text("t/sub/other"), "his");
    EXPECT_EQ(text("t/a"), "a");
    EXPECT_EQ(fs::read_symlink(root_ / "data/t/sub/l"), "b");
    EXPECT_FALSE(there(kStaging));
  }
}

TEST_P(StagingTest, OfAWholeDirectoryOnlyWhatIsGoodComes) {
  Content content;
  content.add_file("t/a", "first").add_file("t/b", "second").add_file("bad/c", "third");
  Bytes pack = content.pack();
  const size_t data_at = tree::layout_of(content.entries).data_at;
  pack[data_at + 5] ^= 1;   // the first byte of t/b
  pack[data_at + 11] ^= 1;  // and of bad/c
  const auto one = unpacker();
  ASSERT_TRUE(one->stage(pack));
  ASSERT_TRUE(one->commit());
  EXPECT_EQ(missing(*one), (Names{{"t/b", Failure::kDamaged}, {"bad/c", Failure::kDamaged}}));
  EXPECT_EQ(entries("data/t"), 1U);
  EXPECT_FALSE(there("bad")) << "of it nothing came";
}

// Half of it was made.
TEST_P(StagingTest, WhatFailsAfterItWasMadeDoesNotComeWithItsDirectory) {
  if (!give_to_nobody()) GTEST_SKIP() << "needs root, to be somebody who may not give files away";
  Content content = some();
  content.add_file("t/foreign", "x");
  content.entries.back().attributes.uid = 0;
  const AsNobody nobody;
  const Names names = unpack(content, {.keep = {.owner = true}});
  EXPECT_EQ(names, (Names{{"t/foreign", Failure::kForbidden}}));
  EXPECT_EQ(entries("data/t"), 2U);
  EXPECT_EQ(text("t/sub/b"), "b");
}

TEST_P(StagingTest, TwoNamesOfADirectoryThatAreOneAreJudgedAsEver) {
  Content content;
  content.add_file("t/a", "first").add_file("t/a", "other").add(symlink("t/a", "x"));
  EXPECT_EQ(unpack(content, {.overwrite = true}), Names());
  EXPECT_EQ(fs::read_symlink(root_ / "data/t/a"), "x") << "the last one replaced the others";
}

TEST_P(StagingTest, WhatADirectoryHandsOnIsHandedOn) {
  constexpr gid_t kGroup = 12'345;
  const auto prepare = [this] {
    fs::create_directories(root_ / "data/shared");
    return ::chown(path("data/shared").c_str(), 0, kGroup) == 0 &&
           ::chmod(path("data/shared").c_str(), 02775) == 0;
  };
  if (::geteuid() != 0 || !prepare()) GTEST_SKIP() << "needs root, to give a directory to a group";
  EXPECT_EQ(unpack(Content().add_file("shared/new/a", "a").add_file("new/a", "a")), Names());
  EXPECT_EQ(info("shared/new").st_gid, kGroup);
  EXPECT_EQ(mode("shared/new"), 02700U);
  EXPECT_EQ(info("new").st_gid, ::getegid());
}

TEST_P(StagingTest, ADefaultAclIsHandedOn) {
  fs::create_directories(root_ / "data/acl");
  const std::string acl = bytes_of_acl({{.tag = catalog::acl_tag::kUserObj, .perm = 7},
                                        {.tag = catalog::acl_tag::kGroupObj, .perm = 5},
                                        {.tag = catalog::acl_tag::kOther, .perm = 0}});
  if (::setxattr(path("data/acl").c_str(), "system.posix_acl_default", acl.data(), acl.size(), 0) != 0)
    GTEST_SKIP() << "no ACLs on this file system";
  EXPECT_EQ(unpack(Content().add_file("acl/new/a", "a")), Names());
  EXPECT_GT(::getxattr(path("data/acl/new").c_str(), "system.posix_acl_default", nullptr, 0), 0);
}

TEST_P(StagingTest, WhatACrashLeftIsRemovedWithItsDirectories) {
  const std::string aside = path("data/") + kStaging;
  fs::create_directories(aside + "/d1");
  write(aside + "/d1/half", "half");
  write(aside + "/7", "half");
  fs::create_directory_symlink(root_ / "outside", aside + "/d2");
  const Result<DestinationTree> tree = exports_.open_destination_tree("data");
  Staging::remove(tree->fd.get(), kStaging);
  EXPECT_FALSE(there(kStaging));
  EXPECT_EQ(entries("outside"), 1U);
  EXPECT_EQ(unpack(some()), Names());
}

// What failed by itself in the meantime was told as failed.
TEST_P(StagingTest, ACommitThatIsRepeatedGivesNoDirectoryWhole) {
  write(root_ / "data/t", "a file in its way");
  const auto one = unpacker();
  ASSERT_TRUE(one->stage(some().pack()));
  fs::rename(root_ / "data/t", root_ / "data/aside");
  write(root_ / "data/t", "a file in its way");
  ASSERT_TRUE(one->commit());
  const Names first = missing(*one);
  EXPECT_EQ(first.size(), 3U);
  fs::remove(root_ / "data/t");
  ASSERT_TRUE(one->commit());
  EXPECT_EQ(missing(*one), first);
  EXPECT_FALSE(there("t"));
}

TEST_P(StagingTest, TheGroupOfTheTreeIsNoReasonToGiveNameByName) {
  if (::geteuid() != 0 || ::chown(path("data").c_str(), 0, 12'345) != 0) GTEST_SKIP() << "needs root";
  const auto one = unpacker();
  ASSERT_TRUE(one->stage(Content().add_file("t/a", "a").add_file("t/sub/b", "b").pack()));
  struct stat outer {};
  struct stat inner {};
  ASSERT_EQ(::stat(found_staged("a").parent_path().c_str(), &outer), 0);
  ASSERT_EQ(::stat(found_staged("b").parent_path().c_str(), &inner), 0);
  ASSERT_TRUE(one->commit());
  EXPECT_EQ(info("t").st_ino, outer.st_ino);
  EXPECT_EQ(info("t/sub").st_ino, inner.st_ino);
}

}  // namespace
}  // namespace sluice::exports
