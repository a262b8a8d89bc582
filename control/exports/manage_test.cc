// What peers may do to names, and what they may not.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "control/exports/exports_fixture.h"
#include "control/exports/pulse.h"
#include "control/exports/walk.h"

namespace sluice::exports {
namespace {

class ManageTest : public ExportsTest {
 protected:
  void SetUp() override {
    ExportsTest::SetUp();
    if (IsSkipped()) return;
    auto opened = Exports::open({{"data", root_ / "data", true, true, true},
                                 {"readonly", root_ / "data/readonly", true, false},
                                 {"inner", root_ / "data/writeonly", true, true, true}});
    ASSERT_TRUE(opened) << opened.error().message;
    exports_ = std::move(*opened);
  }

  static ErrorCode code(const Result<names::Done>& result) {
    if (result)
      return result->failed == 0 ? ErrorCode::kOk : static_cast<ErrorCode>(result->problems.at(0).error_code);
    EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
    return result.error().code;
  }
  ErrorCode mkdir(const std::string& path, bool parents = false) const {
    return code(exports_.make_directory({.path = path, .parents = parents}));
  }
  ErrorCode move(const std::string& from, const std::string& to, bool replace = false) const {
    return code(exports_.move({.from = from, .to = to, .replace = replace}));
  }
  Result<names::Done> remove_all(const std::string& path) {
    return exports_.remove({.path = path, .recursive = true}, pulse_);
  }
  ErrorCode remove(const std::string& path, bool recursive = false) {
    return code(exports_.remove({.path = path, .recursive = recursive}, pulse_));
  }
  bool there(const std::string& relative) const {
    return fs::symlink_status(root_ / relative).type() != fs::file_type::not_found;
  }

  Pulse pulse_;
};

INSTANTIATE_TEST_SUITE_P(FileSystems, ManageTest, testing::Values("/tmp", "/dev/shm"),
                         [](const auto& chosen) { return chosen.index == 0 ? "disk" : "memory"; });

// ---- rights --------------------------------------------------------------------------------------

TEST_P(ManageTest, WithoutTheRightNothingIsChanged) {
  write(root_ / "data/readonly/x", "");
  for (const std::string& path : {std::string("readonly/x"), path("data/readonly/x"), path("outside/secret"),
                                  std::string("data/../outside/secret"), std::string("none/x")}) {
    EXPECT_EQ(remove(path), ErrorCode::kOutsideExports) << path;
    EXPECT_EQ(mkdir(path + "y"), ErrorCode::kOutsideExports) << path;
    EXPECT_EQ(move(path, "data/y"), ErrorCode::kOutsideExports) << path;
    EXPECT_EQ(move("data/file", path), ErrorCode::kOutsideExports) << path;
  }
  EXPECT_TRUE(there("data/readonly/x") && there("outside/secret") && there("data/file"));
}

TEST_P(ManageTest, AnOperatorChangesNamesWherePeersMayWrite) {
  auto opened = Exports::open(
      {{"data", root_ / "data", false, true}, {"readonly", root_ / "data/readonly", true, false}});
  ASSERT_TRUE(opened) << opened.error().message;
  exports_ = std::move(*opened);
  write(root_ / "data/readonly/x", "");
  const auto remove_own = [this](const std::string& path) {
    return code(exports_.remove({.path = path, .recursive = true}, pulse_, Asker::kOperator));
  };
  const auto mkdir_own = [this](const std::string& path) {
    return code(exports_.for_operator().make_directory({.path = path}));
  };
  const auto move_own = [this](const std::string& from, const std::string& to) {
    return code(exports_.for_operator().move({.from = from, .to = to}));
  };
  EXPECT_EQ(mkdir("data/new"), ErrorCode::kOutsideExports);
  EXPECT_EQ(mkdir_own("data/new"), ErrorCode::kOk);
  EXPECT_EQ(mkdir_own("data/readonly/new"), ErrorCode::kOutsideExports);
  EXPECT_EQ(mkdir_own(path("outside/new")), ErrorCode::kOutsideExports);
  EXPECT_EQ(move("data/file", "data/new"), ErrorCode::kOutsideExports);
  EXPECT_EQ(move_own("data/file", "data/readonly/y"), ErrorCode::kOutsideExports);
  EXPECT_EQ(move_own("data/readonly/x", "data/y"), ErrorCode::kOutsideExports);
  EXPECT_EQ(move_own("data/file", "data/new"), ErrorCode::kOk);
  EXPECT_EQ(move_own("data/new/file", "data/file"), ErrorCode::kOk);
  EXPECT_EQ(remove("data/file"), ErrorCode::kOutsideExports);
  EXPECT_EQ(remove_own("data/file"), ErrorCode::kOk);
  EXPECT_EQ(remove_own(path("data/sub")), ErrorCode::kOk);
  EXPECT_EQ(remove_own(path("data/readonly/x")), ErrorCode::kOutsideExports);
  EXPECT_EQ(remove_own(path("outside/secret")), ErrorCode::kOutsideExports);
  EXPECT_EQ(remove_own("data"), ErrorCode::kOutsideExports);
  EXPECT_FALSE(there("data/file") || there("data/sub"));
  EXPECT_TRUE(there("data/readonly/x") && there("outside/secret"));
}

TEST_P(ManageTest, LinksLeadNowhere) {
  fs::create_directory_symlink(root_ / "outside", root_ / "data/out");
  EXPECT_EQ(remove("data/out/secret"), ErrorCode::kOutsideExports);
  EXPECT_EQ(mkdir("data/out/x"), ErrorCode::kOutsideExports);
  EXPECT_EQ(mkdir("data/out/x", true), ErrorCode::kDestinationExists);
  EXPECT_EQ(move("data/file", "data/out/x"), ErrorCode::kOutsideExports);
  EXPECT_EQ(remove("data/out/", true), ErrorCode::kSourceUnreadable);
  EXPECT_EQ(remove("data/out", true), ErrorCode::kOk) << "the link itself";
  EXPECT_TRUE(there("outside/secret"));
  EXPECT_EQ(entries("outside"), 1U);
}

TEST_P(ManageTest, RootsOfExportsStay) {
  for (const std::string& path :
       {std::string("data"), std::string("data/"), path("data"), std::string("data/writeonly"),
        std::string("inner"), std::string("data/.")}) {
    EXPECT_EQ(remove(path, true), ErrorCode::kOutsideExports) << path;
    EXPECT_EQ(move(path, "data/new"), ErrorCode::kOutsideExports) << path;
  }
  EXPECT_TRUE(there("data/file") && there("data/writeonly"));
}

// The same directory by another name: it is known by what it is.
TEST_P(ManageTest, ARootBeneathWhatIsRemovedStays) {
  fs::create_directories(root_ / "data/sub/inside/root");
  write(root_ / "data/sub/x", "");
  fs::create_directory_symlink(root_ / "data/sub/inside/root", root_ / "alias");
  auto opened =
      Exports::open({{"data", root_ / "data", true, true, true}, {"alias", root_ / "alias", true, true}});
  ASSERT_TRUE(opened);
  exports_ = std::move(*opened);
  EXPECT_EQ(remove("data/sub", true), ErrorCode::kOutsideExports);
  EXPECT_TRUE(there("data/sub/inside/root"));
  EXPECT_FALSE(there("data/sub/x"));
  EXPECT_EQ(move("data/sub/inside/root", "data/y"), ErrorCode::kOutsideExports);
}

// ---- mkdir ---------------------------------------------------------------------------------------

TEST_P(ManageTest, MakesDirectories) {
  EXPECT_EQ(mkdir("data/new"), ErrorCode::kOk);
  EXPECT_TRUE(fs::is_directory(root_ / "data/new"));
  EXPECT_EQ(mkdir("data/new"), ErrorCode::kDestinationExists);
  EXPECT_EQ(mkdir("data/file"), ErrorCode::kDestinationExists);
  EXPECT_EQ(mkdir("data/none/x"), ErrorCode::kStorage);
  EXPECT_EQ(mkdir("data/file/x"), ErrorCode::kStorage);
  EXPECT_EQ(mkdir("data"), ErrorCode::kDestinationExists);
}

TEST_P(ManageTest, MakesThoseAboveWhenAsked) {
  const auto made = exports_.make_directory({.path = "data/sub/a/b\xff/", .parents = true});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->entries, 2U);
  EXPECT_TRUE(fs::is_directory(root_ / "data/sub/a/b\xff"));
  EXPECT_EQ(mkdir("data/sub/a/b\xff", true), ErrorCode::kOk);
  EXPECT_EQ(mkdir("data", true), ErrorCode::kOk);
  EXPECT_EQ(mkdir("data/file", true), ErrorCode::kDestinationExists);
  EXPECT_EQ(mkdir("data/file/x", true), ErrorCode::kDestinationExists);
}

TEST_P(ManageTest, NamesOfUnfinishedFilesAreKept) {
  EXPECT_EQ(mkdir("data/.x.sluice-part"), ErrorCode::kStorage);
  EXPECT_EQ(mkdir("data/.x.sluice-part/y", true), ErrorCode::kStorage);
  EXPECT_EQ(move("data/file", "data/.x.sluice-part"), ErrorCode::kStorage);
  EXPECT_EQ(mkdir("data/" + std::string(256, 'x')), ErrorCode::kStorage);
}

// ---- mv ------------------------------------------------------------------------------------------

TEST_P(ManageTest, MovesFilesAndDirectories) {
  EXPECT_EQ(move("data/file", "data/renamed"), ErrorCode::kOk);
  EXPECT_EQ(read(root_ / "data/renamed"), "hello");
  EXPECT_EQ(move("data/renamed", "data/sub"), ErrorCode::kOk) << "into it";
  EXPECT_EQ(move("data/sub/renamed", "data/sub/"), ErrorCode::kDestinationExists);
  EXPECT_EQ(move("data/sub", "data/other"), ErrorCode::kOk);
  EXPECT_EQ(read(root_ / "data/other/renamed"), "hello");
  EXPECT_EQ(move("data/none", "data/x"), ErrorCode::kSourceUnreadable);
  EXPECT_EQ(move("data/other", "data/none/"), ErrorCode::kStorage);
  EXPECT_EQ(move("data/other", "data/none/x"), ErrorCode::kStorage);
  EXPECT_EQ(move("data/other/renamed/", "data/x"), ErrorCode::kSourceUnreadable);
}

TEST_P(ManageTest, WhatIsThereIsReplacedOnlyByForceAndOnlyAFile) {
  write(root_ / "data/old", "old");
  fs::create_symlink("old", root_ / "data/link");
  fs::create_directory(root_ / "data/sub/file");
  EXPECT_EQ(move("data/file", "data/old"), ErrorCode::kDestinationExists);
  EXPECT_EQ(read(root_ / "data/old"), "old");
  EXPECT_EQ(move("data/file", "data/link", true), ErrorCode::kDestinationExists);
  EXPECT_EQ(move("data/file", "data/sub", true), ErrorCode::kDestinationExists)
      << "a directory is in the way";
  EXPECT_EQ(move("data/sub", "data/old", true), ErrorCode::kDestinationExists);
  EXPECT_EQ(move("data/file", "data/old", true), ErrorCode::kOk);
  EXPECT_EQ(read(root_ / "data/old"), "hello");
  EXPECT_FALSE(there("data/file"));
}

TEST_P(ManageTest, NamesStayWithinTheirExport) {
  EXPECT_EQ(move("data/file", "inner/file"), ErrorCode::kOutsideExports);
  EXPECT_EQ(move("data/file", "data/writeonly"), ErrorCode::kOutsideExports)
      << "it would be into the other one";
  EXPECT_EQ(move("data/sub", "data/sub/x"), ErrorCode::kUsage) << "into itself";
  EXPECT_TRUE(there("data/file") && there("data/sub"));
}

// ---- rm ------------------------------------------------------------------------------------------

TEST_P(ManageTest, RemovesOneName) {
  ASSERT_EQ(::mkfifo((root_ / "data/pipe").c_str(), 0600), 0);
  EXPECT_EQ(remove("data/pipe"), ErrorCode::kOk);
  EXPECT_EQ(remove("data/file/"), ErrorCode::kSourceUnreadable);
  EXPECT_EQ(remove("data/file"), ErrorCode::kOk);
  EXPECT_FALSE(there("data/file"));
  EXPECT_EQ(remove("data/file"), ErrorCode::kSourceUnreadable);
  EXPECT_EQ(remove("data/sub"), ErrorCode::kUsage) << "a directory";
  EXPECT_TRUE(there("data/sub"));
}

TEST_P(ManageTest, RemovesADirectoryIfNothingIsInIt) {
  const auto remove_empty = [this](const std::string& path) {
    return code(exports_.remove({.path = path, .empty = true}, pulse_));
  };
  EXPECT_EQ(remove_empty("data/file"), ErrorCode::kSourceUnreadable);
  EXPECT_EQ(remove_empty("data/none"), ErrorCode::kSourceUnreadable);
  EXPECT_EQ(remove_empty("data"), ErrorCode::kOutsideExports);
  std::filesystem::create_directory(root_ / "data/new");
  std::filesystem::create_directory(root_ / "data/new/er");
  EXPECT_EQ(remove_empty("data/new"), ErrorCode::kUsage);
  EXPECT_EQ(remove_empty("data/new/er/"), ErrorCode::kOk);
  std::filesystem::create_directory_symlink("new", root_ / "data/link");
  EXPECT_EQ(remove_empty("data/link"), ErrorCode::kSourceUnreadable);
  EXPECT_EQ(remove_empty("data/new"), ErrorCode::kOk);
  EXPECT_FALSE(std::filesystem::exists(root_ / "data/new"));
}

TEST_P(ManageTest, RemovesADirectoryAndAllThatIsInIt) {
  for (int i = 0; i < 30; ++i) {
    const fs::path directory = root_ / "data/sub" / ("d" + std::to_string(i)) / "e";
    fs::create_directories(directory);
    write(directory / "x\n", "");
    write(directory / ".sluice-part", "");
    fs::create_directory_symlink(root_ / "outside", directory / "out");
  }
  const auto removed = remove_all("data/sub");
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(removed->entries, 1U + 30 * 5);
  EXPECT_EQ(removed->failed, 0U);
  EXPECT_FALSE(there("data/sub"));
  EXPECT_TRUE(there("outside/secret"));
}

TEST_P(ManageTest, WhatAClientOfNfsStillHasOpenStays) {
  fs::create_directories(root_ / "data/sub/a");
  const char* const open_elsewhere = "data/sub/a/.nfs000000000000a0c600000012";
  for (const char* name : {open_elsewhere, "data/sub/a/x"}) write(root_ / name, "");
  const auto removed = remove_all("data/sub");
  EXPECT_TRUE(there(open_elsewhere));
  EXPECT_FALSE(there("data/sub/a/x"));
  ASSERT_TRUE(removed && removed->failed == 1);
  EXPECT_NE(removed->problems.at(0).error.find("client of NFS"), std::string::npos);
}

TEST_P(ManageTest, GoesOnAfterWhatCannotBeRemoved) {
  fs::create_directories(root_ / "data/sub/a/mounted");
  fs::create_directories(root_ / "data/sub/b");
  write(root_ / "data/sub/a/x", "");
  const std::string there_it_is = path("data/sub/a/mounted");
  if (::mount("none", there_it_is.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "cannot mount";
  write(there_it_is + "/kept", "");
  const auto removed = remove_all("data/sub");
  const bool kept = fs::exists(there_it_is + "/kept");
  const auto itself = remove_all("data/sub/a/mounted");
  EXPECT_EQ(::umount2(there_it_is.c_str(), MNT_DETACH), 0);
  EXPECT_TRUE(kept) << "a mount is never crossed";
  EXPECT_FALSE(itself);
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(removed->entries, 2U) << "a/x and b";
  EXPECT_EQ(removed->failed, 1U);
  ASSERT_EQ(removed->problems.size(), 1U);
  EXPECT_EQ(removed->problems[0].path, "a/mounted");
  EXPECT_NE(removed->problems[0].error.find("mounted"), std::string::npos) << removed->problems[0].error;
  EXPECT_FALSE(there("data/sub/b"));
}

TEST_P(ManageTest, ABindMountInItIsNotCrossedEither) {
  fs::create_directories(root_ / "data/sub/bound");
  if (::mount(path("outside").c_str(), path("data/sub/bound").c_str(), nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP() << "cannot mount";
  const auto removed = remove_all("data/sub");
  EXPECT_EQ(::umount2(path("data/sub/bound").c_str(), MNT_DETACH), 0);
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(removed->failed, 1U);
  EXPECT_TRUE(there("outside/secret")) << "of the same file system";
}

// Directories become links, and are put back, while they are removed: nothing outside goes.
TEST_P(ManageTest, ADirectoryThatBecomesALinkMeanwhileLeadsNowhere) {
  for (int i = 0; i < 50; ++i) write(root_ / "outside" / ("precious" + std::to_string(i)), "");
  const fs::path victim = root_ / "data/sub/victim";
  const fs::path aside = root_ / "data/aside";
  std::atomic<bool> over = false;
  std::thread enemy([&] {
    std::error_code ignored;
    while (!over) {
      fs::rename(victim, aside, ignored);
      fs::create_directory_symlink(root_ / "outside", victim, ignored);
      ::unlink(victim.c_str());
      fs::rename(aside, victim, ignored);
    }
  });
  for (int round = 0; round < 60; ++round) {
    std::error_code ignored;
    fs::create_directories(victim, ignored);
    for (int i = 0; i < 20; ++i) write(victim / ("x" + std::to_string(i)), "");
    (void)remove_all("data/sub/victim");
    (void)remove_all("data/sub");
    fs::create_directory(root_ / "data/sub", ignored);
  }
  over = true;
  enemy.join();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(there("outside/precious" + std::to_string(i))) << i;
  EXPECT_TRUE(there("outside/secret"));
}

TEST_P(ManageTest, StopsWhenNobodyWaits) {
  write(root_ / "data/sub/x", "");
  pulse_.stop = true;
  EXPECT_EQ(remove("data/sub", true), ErrorCode::kCancelled);
  EXPECT_TRUE(there("data/sub/x"));
}

TEST_P(ManageTest, WhatLiesTooDeepIsNamed) {
  std::string deep = "data/sub";
  for (int i = 0; i < 200; ++i) deep += "/d";
  fs::create_directories(root_ / deep);
  EXPECT_EQ(remove("data/sub", true), ErrorCode::kStorage);
  EXPECT_EQ(remove(deep.substr(0, 9 + 2 * 120), true), ErrorCode::kOk);
  EXPECT_EQ(remove("data/sub", true), ErrorCode::kOk);
}

// ---- transfers under way -------------------------------------------------------------------------

TEST_P(ManageTest, WhatATransferWritesStaysWhereItIs) {
  DestinationSpec wanted = spec("data/sub/new");
  fs::create_directory(root_ / "data/other");
  std::optional<DestinationFile> file;
  {
    auto made = exports_.create_destination(wanted);
    ASSERT_TRUE(made) << made.error().message;
    file.emplace(std::move(*made));
  }
  for (const char* path : {"data/sub/new", "data/sub"}) {
    EXPECT_EQ(remove(path, true), ErrorCode::kDestinationExists) << path;
    EXPECT_EQ(move(path, "data/elsewhere"), ErrorCode::kDestinationExists) << path;
  }
  EXPECT_EQ(move("data/file", "data/sub/new"), ErrorCode::kDestinationExists);
  EXPECT_EQ(mkdir("data/sub/new"), ErrorCode::kDestinationExists);
  EXPECT_EQ(remove("data/sub/.new.sluice-part"), ErrorCode::kDestinationExists);
  EXPECT_EQ(move("data/sub/.new.sluice-part", "data/x"), ErrorCode::kStorage);
  EXPECT_EQ(remove("data/other", true), ErrorCode::kOk) << "nothing is written there";
  fill(*file, "hello");
  EXPECT_TRUE(complete(*file));
  EXPECT_EQ(remove("data/sub/new"), ErrorCode::kOk);
  file.reset();
  EXPECT_EQ(remove("data/sub", true), ErrorCode::kOk);
}

TEST_P(ManageTest, WhatAPausedTransferLetGoOfStays) {
  auto made = exports_.create_destination(spec("data/sub/new"));
  ASSERT_TRUE(made);
  const auto identity = made->identity();
  Reservation reservation = exports_.reserve(identity, made->name_path());
  made->keep();
  { const DestinationFile gone = std::move(*made); }
  EXPECT_EQ(remove("data/sub", true), ErrorCode::kDestinationExists);
  EXPECT_EQ(remove("data/sub/.new.sluice-part"), ErrorCode::kDestinationExists);
  reservation.reset();
  EXPECT_EQ(remove("data/sub/.new.sluice-part"), ErrorCode::kOk) << "a leftover now";
}

// Another process holds it: its lock tells.
TEST_P(ManageTest, WhatAnotherDaemonWritesStays) {
  write(root_ / "data/sub/.x.sluice-part", "");
  write(root_ / "data/sub/y", "");
  const UniqueFd held(::open(path("data/sub/.x.sluice-part").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  const auto removed = remove_all("data/sub");
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(removed->failed, 1U);
  EXPECT_EQ(removed->entries, 1U);
  EXPECT_TRUE(there("data/sub/.x.sluice-part"));
}

}  // namespace
}  // namespace sluice::exports
