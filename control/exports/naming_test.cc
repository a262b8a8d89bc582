// What stands under a final name already, and why a name is refused.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "control/exports/exports_fixture.h"
#include "control/exports/temporary.h"

namespace sluice::exports {
namespace {

using catalog::Failure;

class NamingTest : public ExportsTest {
 protected:
  DestinationSpec one_of_many(const std::string& relative) const {
    DestinationSpec wanted = spec(relative);
    wanted.one_of_many = true;
    wanted.mtime_ns = 1'000'000'000;
    return wanted;
  }
  Failure refused(const DestinationSpec& wanted) const {
    Failure why = Failure::kNone;
    const auto file = exports_.create_destination(wanted, &why);
    EXPECT_FALSE(file);
    return why;
  }
  struct stat info(const std::string& relative) const {
    struct stat found {};
    EXPECT_EQ(::stat(path(relative).c_str(), &found), 0);
    return found;
  }
};

TEST_P(NamingTest, OfManyNamesOneThatIsThereWithTheSameBytesIsAsGoodAsTheFile) {
  const ino_t before = info("data/file").st_ino;
  auto file = exports_.create_destination(one_of_many("data/file"));
  ASSERT_TRUE(file) << file.error().message;
  fill(*file, "hello");
  const Status named = complete(*file);
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_TRUE(file->has_name());
  EXPECT_EQ(info("data/file").st_ino, before) << "it stays";
  EXPECT_EQ(info("data/file").st_mtim.tv_sec, 1) << "with what is kept of it";
  EXPECT_EQ(file->identity().inode, before);
  EXPECT_TRUE(*exports_.is_committed(path("data/file"), file->identity()));
  EXPECT_EQ(entries("data"), 4U) << "and nothing unfinished";
}

TEST_P(NamingTest, WithOtherBytesItIsLeftAloneAndNamed) {
  auto file = exports_.create_destination(one_of_many("data/file"));
  ASSERT_TRUE(file);
  fill(*file, "other");
  const Status named = complete(*file);
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().code, ErrorCode::kDestinationExists);
  EXPECT_EQ(file->why(), Failure::kExists);
  EXPECT_EQ(read(root_ / "data/file"), "hello");
  DestinationSpec longer = one_of_many("data/file");
  longer.size = 6;
  EXPECT_EQ(refused(longer), Failure::kExists) << "of another size that is seen at once";
  EXPECT_EQ(refused(spec("data/file")), Failure::kExists) << "alone it is refused, whatever it holds";
}

// As by a server of NFS that is restarted between the deed and the answer.
TEST_P(NamingTest, ANameThatWasGivenWithoutAnAnswerIsItsName) {
  for (const bool overwrite : {false, true}) {
    for (const bool linked : {false, true}) {
      if (overwrite && linked) continue;  // a name is linked only where none may be replaced
      DestinationSpec wanted = spec("data/sub/new");
      wanted.overwrite = overwrite;
      auto file = exports_.create_destination(wanted);
      ASSERT_TRUE(file) << file.error().message;
      fill(*file, "hello");
      ASSERT_TRUE(file->finish());
      const std::string from = path("data/sub/.new.sluice-part");
      const std::string to = path("data/sub/new");
      ASSERT_EQ(linked ? ::link(from.c_str(), to.c_str()) : ::rename(from.c_str(), to.c_str()), 0);
      const Status named = file->commit();
      ASSERT_TRUE(named) << named.error().message;
      EXPECT_TRUE(file->has_name());
      EXPECT_EQ(read(root_ / "data/sub/new"), "hello");
      EXPECT_EQ(entries("data/sub"), 1U) << "nothing unfinished";
      ASSERT_EQ(::unlink(to.c_str()), 0);
    }
  }
}

TEST_P(NamingTest, AnUnfinishedFileThatNobodyHoldsGoesWithItsSessionHoweverLongItsName) {
  const size_t before = entries("data");
  for (const size_t bytes : {10U, 242U, 243U, 255U}) {
    std::optional<catalog::FileIdentity> identity;
    std::string name_path;
    {
      auto file = exports_.create_destination(spec("data/" + std::string(bytes, 'n')));
      ASSERT_TRUE(file) << file.error().message;
      identity = file->identity();
      name_path = file->name_path();
      file->keep();
    }
    EXPECT_EQ(entries("data"), before + 1);
    const auto directory = exports_.remove_unfinished(name_path, *identity);
    ASSERT_TRUE(directory) << directory.error().message;
    EXPECT_TRUE(*directory);
    EXPECT_EQ(entries("data"), before) << bytes;
  }
}

TEST_P(NamingTest, NamesMayBeAsLongAsTheFileSystemTakes) {
  for (const size_t bytes : {241U, 242U, 243U, 250U, 255U}) {
    const std::string name = "data/sub/" + std::string(bytes - 1, 'L');
    auto one = exports_.create_destination(spec(name + "1"));
    auto other = exports_.create_destination(spec(name + "2"));
    ASSERT_TRUE(one && other) << bytes;
    fill(*one, "first");
    fill(*other, "other");
    ASSERT_TRUE(exports_.open_unfinished(one->name_path())) << bytes;
    const catalog::FileIdentity identity = one->identity();
    one->keep();
    { const DestinationFile let_go = std::move(*one); }
    DestinationSpec known = spec(name + "1");
    auto again = exports_.reopen_destination(known, identity, UniqueFd());
    ASSERT_TRUE(again && again->has_value()) << bytes;
    EXPECT_TRUE(complete(**again) && complete(*other)) << bytes;
    EXPECT_EQ(read(root_ / (name + "1")), "first");
    EXPECT_EQ(read(root_ / (name + "2")), "other");
    EXPECT_TRUE(*exports_.is_committed(path(name + "1"), identity));
  }
  EXPECT_EQ(entries("data/sub"), 10U) << "nothing unfinished";
  EXPECT_EQ(refused(spec("data/sub/" + std::string(256, 'L'))), Failure::kName);
}

TEST(TemporaryName, IsCutBetweenCharactersAndNeverTooLong) {
  const UniqueFd at(::open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::string name;
  for (int i = 0; i < 85; ++i) name += "\xE2\x82\xAC";  // 255 bytes
  for (size_t begin = 0; begin < 3; ++begin) {
    const std::string temporary =
        temporary_name_in(at.get(), std::string(begin, 'x') + name.substr(begin * 3));
    EXPECT_LE(temporary.size(), 255U);
    EXPECT_TRUE(is_temporary_name(temporary));
    const size_t end = temporary.find('~');
    EXPECT_EQ((end - 1 - begin) % 3, 0U) << "whole characters";
  }
  EXPECT_EQ(temporary_name_in(at.get(), "short"), ".short.sluice-part");
}

TEST_P(NamingTest, SaysWhatStandsInTheWay) {
  fs::create_directory(root_ / "data/sub/source-name");
  DestinationSpec wanted = one_of_many("data/sub");
  EXPECT_EQ(refused(wanted), Failure::kOtherKind);
  wanted.overwrite = true;
  EXPECT_EQ(refused(wanted), Failure::kOtherKind) << "whatever is asked for";
  const auto first = exports_.create_destination(one_of_many("data/new"));
  ASSERT_TRUE(first);
  EXPECT_EQ(refused(one_of_many("data/new")), Failure::kTaken);
  wanted = one_of_many("data/new");
  wanted.overwrite = true;
  EXPECT_EQ(refused(wanted), Failure::kTaken);
}

TEST_P(NamingTest, WhatAPausedSessionLetGoOfIsTaken) {
  auto first = exports_.create_destination(one_of_many("data/new"));
  ASSERT_TRUE(first);
  const Reservation held = exports_.reserve(first->identity(), first->name_path());
  first->keep();
  { const DestinationFile let_go = std::move(*first); }
  EXPECT_EQ(refused(one_of_many("data/new")), Failure::kTaken);
}

TEST_P(NamingTest, ADirectoryThatNobodyMayChangeIsCalledThat) {
  const UniqueFd at(::open(path("data/sub").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int flags = 0;
  const auto set = [&](int add, int take) {
    if (::ioctl(at.get(), FS_IOC_GETFLAGS, &flags) != 0) return false;
    flags = (flags | add) & ~take;
    return ::ioctl(at.get(), FS_IOC_SETFLAGS, &flags) == 0;
  };
  if (!set(FS_IMMUTABLE_FL, 0)) GTEST_SKIP() << "needs root, and a file system with such a flag";
  Failure why = Failure::kNone;
  const auto file = exports_.create_destination(spec("data/sub/new"), &why);
  ASSERT_TRUE(set(0, FS_IMMUTABLE_FL));
  ASSERT_FALSE(file);
  EXPECT_EQ(why, Failure::kImmutable);
  EXPECT_NE(file.error().message.find("chattr -i"), std::string::npos) << file.error().message;
  EXPECT_EQ(file.error().message.find("the right"), std::string::npos) << file.error().message;
}

INSTANTIATE_TEST_SUITE_P(FileSystems, NamingTest, testing::Values("/tmp", "/dev/shm"));

}  // namespace
}  // namespace sluice::exports
