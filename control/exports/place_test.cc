// Paths that come to lead elsewhere: no success for a name under which the file is not, and nothing lost.
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "control/exports/exports_fixture.h"

namespace sluice::exports {
namespace {

class PlaceTest : public ExportsTest {
 protected:
  Result<DestinationFile> begin() {
    auto file = exports_.create_destination(spec("data/sub/new"));
    if (file) fill(*file, "hello");
    return file;
  }
  void move(const std::string& from, const std::string& to) { fs::rename(root_ / from, root_ / to); }
};

INSTANTIATE_TEST_SUITE_P(FileSystems, PlaceTest, testing::Values("/tmp", "/dev/shm"), [](const auto& chosen) {
  return std::string(chosen.param) == "/tmp" ? "Tmp" : "Shm";
});

TEST_P(PlaceTest, ADirectoryThatWasMadeAnewGetsNothingUntilItIsPutBack) {
  auto file = begin();
  ASSERT_TRUE(file);
  move("data/sub", "data/away");
  fs::create_directory(root_ / "data/sub");
  const Error error = complete(*file).error();
  EXPECT_EQ(error.code, ErrorCode::kStorage);
  EXPECT_NE(error.message.find("in " + path("data/away") + ", as .new.sluice-part"), std::string::npos)
      << error.message;
  EXPECT_FALSE(fs::exists(root_ / "data/away/new"));
  EXPECT_TRUE(fs::exists(root_ / "data/away/.new.sluice-part"));
  EXPECT_EQ(entries("data/sub"), 0U);
  fs::remove(root_ / "data/sub");
  move("data/away", "data/sub");
  ASSERT_TRUE(complete(*file));
  EXPECT_EQ(read(root_ / "data/sub/new"), "hello");
}

TEST_P(PlaceTest, AFileThatHasItsNameInADirectoryThatIsElsewhereStaysThere) {
  {
    auto file = begin();
    ASSERT_TRUE(file);
    ASSERT_TRUE(complete(*file));
    move("data/sub", "data/away");
    fs::create_directory(root_ / "data/sub");
    const Status status = file->commit();  // as if it had been moved a moment before
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kOutsideExports) << "the end: no operator can do it over";
    EXPECT_NE(status.error().message.find("the file is in " + path("data/away")), std::string::npos)
        << status.error().message;
  }
  EXPECT_EQ(read(root_ / "data/away/new"), "hello");
  EXPECT_EQ(entries("data/sub"), 0U);
}

TEST_P(PlaceTest, WhoeverWaitsForFilesMayTakeThemAtOnce) {
  auto file = begin();
  ASSERT_TRUE(file);
  ASSERT_TRUE(complete(*file));
  move("data/sub/new", "outside/taken");
  EXPECT_TRUE(file->commit());
}

TEST_P(PlaceTest, ARootThatIsAnotherIsNotServed) {
  auto file = begin();
  ASSERT_TRUE(file);
  const auto file_path = file->name_path();
  move("data", "moved");
  for (const bool another : {false, true}) {
    if (another) fs::create_directory(root_ / "data");
    const Error made = destination_error(spec("data/new"));
    EXPECT_EQ(made.code, ErrorCode::kStorage) << made.message;
    EXPECT_NE(made.message.find("export data: " + path("data") + " is not the directory that it was"),
              std::string::npos)
        << made.message;
    EXPECT_EQ(source_error("data/file"), ErrorCode::kStorage);
    EXPECT_FALSE(exports_.is_committed(file_path, file->identity()));
    EXPECT_EQ(complete(*file).error().code, ErrorCode::kStorage);
  }
  fs::remove(root_ / "data");
  move("moved", "data");
  EXPECT_EQ(source_error("data/file"), ErrorCode::kOk);
  EXPECT_TRUE(complete(*file));
}

TEST_P(PlaceTest, AnInodeNumberThatWasGivenAnewIsAnotherFile) {
  auto wanted = spec("data/new");
  catalog::FileIdentity identity;
  {
    auto file = exports_.create_destination(wanted);
    ASSERT_TRUE(file);
    identity = file->identity();
    wanted.path = file->name_path();
    file->keep();
  }
  EXPECT_NE(identity.birth_ns, 0) << "this file system tells it";
  auto later = identity;
  ++later.birth_ns;
  const auto found = [&](const catalog::FileIdentity& known) {
    auto file = exports_.reopen_destination(wanted, known, UniqueFd());
    EXPECT_TRUE(file);
    if (file && file->has_value()) {
      EXPECT_TRUE((*file)->commit());
    }
    return file && file->has_value();
  };
  EXPECT_FALSE(found(later));
  if (identity.generation != 0) {
    auto other = identity;
    ++other.generation;
    EXPECT_FALSE(found(other));
  }
  EXPECT_TRUE(found({.device = identity.device, .inode = identity.inode})) << "from a journal of before";
  EXPECT_FALSE(*exports_.is_committed(wanted.path, later));
  EXPECT_TRUE(*exports_.is_committed(wanted.path, identity));
}

// In a mount namespace of a child, so that nothing stays mounted whatever happens.
TEST_P(PlaceTest, WhatIsMountedOverADirectoryOrARootIsNoticed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root for a mount";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      ::_exit(77);
    const auto mount_over = [this](const char* what) {
      return ::mount("tmpfs", path(what).c_str(), "tmpfs", 0, "size=1m") == 0;
    };
    auto file = begin();
    if (!mount_over("data/sub")) ::_exit(77);
    Status status = complete(*file);
    if (status || status.error().code != ErrorCode::kStorage) ::_exit(1);
    if (status.error().message.find("beneath what was mounted over") == std::string::npos) ::_exit(2);
    if (::umount(path("data/sub").c_str()) != 0 || !complete(*file)) ::_exit(3);
    if (!mount_over("data")) ::_exit(4);
    if (destination_error(spec("data/other")).code != ErrorCode::kStorage) ::_exit(5);
    if (source_error("data/file") != ErrorCode::kStorage) ::_exit(6);
    if (::umount(path("data").c_str()) != 0 || source_error("data/file") != ErrorCode::kOk) ::_exit(7);
    ::_exit(0);
  }
  int result = 0;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  if (WIFEXITED(result) && WEXITSTATUS(result) == 77) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_TRUE(WIFEXITED(result));
  EXPECT_EQ(WEXITSTATUS(result), 0);
}

// ---- what is not complete ----------------------------------------------------------------------

TEST_P(PlaceTest, WhatIsNotCompleteCannotBeReadByItsName) {
  auto file = begin();
  ASSERT_TRUE(file);
  const Error missing = exports_.open_source("data/sub/none").error();
  for (const char* spelling :
       {"data/sub/.new.sluice-part", "data/sub/./.new.sluice-part", "data/.new.sluice-part",
        "data//sub//.new.sluice-part//", "data/sub/.new.sluice-part/."}) {
    const auto opened = exports_.open_source(spelling);
    ASSERT_FALSE(opened) << spelling;
    EXPECT_EQ(opened.error().code, missing.code);
    EXPECT_NE(opened.error().message.find("does not exist; check the name"), std::string::npos)
        << "as if it were not there: " << opened.error().message;
  }
  // As a directory that folds cases would take them.
  for (const char* name : {".new.SLUICE-PART", ".New.Sluice-Part", ".new.\xC5\xBFluice-part",
                           ".new.slu\xE2\x80\x8Dice-part", "\xE2\x80\x8D.new.sluice-part"}) {
    write(root_ / "data/sub" / name, "x");
    EXPECT_EQ(source_error(std::string("data/sub/") + name), ErrorCode::kSourceUnreadable) << name;
    EXPECT_EQ(destination_error(spec(std::string("data/") + name)).code, ErrorCode::kStorage) << name;
  }
  const auto unfinished = exports_.open_unfinished(file->name_path());
  ASSERT_TRUE(unfinished) << unfinished.error().message;
  EXPECT_EQ(unfinished->size, 4096U);
  for (const char* name : {"new.sluice-part", ".sluice-part.new", ".new.sluice-parts"}) {
    write(root_ / "data" / name, "x");
    EXPECT_EQ(source_error(std::string("data/") + name), ErrorCode::kOk) << "that is another name: " << name;
  }
}

}  // namespace
}  // namespace sluice::exports
