// Destinations: nothing under the final name before commit, nothing left behind, one writer at a time.
// SPDX-License-Identifier: Apache-2.0
#include "control/exports/exports_fixture.h"

namespace sluice::exports {
namespace {

class DestinationTest : public ExportsTest {};

INSTANTIATE_TEST_SUITE_P(FileSystems, DestinationTest, testing::Values("/tmp", "/dev/shm"),
                         [](const auto& chosen) {
                           return std::string(chosen.param) == "/tmp" ? "Tmp" : "Shm";
                         });

TEST_P(DestinationTest, ADestinationGetsItsNameOnlyByCommit) {
  auto wanted = spec("data/new");
  wanted.mode = 0640;
  wanted.mtime_ns = 1'700'000'000'123'456'789;
  auto file = exports_.create_destination(wanted);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->final_path(), path("data/new"));
  EXPECT_FALSE(fs::exists(root_ / "data/new"));
  EXPECT_EQ(fs::file_size(root_ / "data/.new.sluice-part"), 4096U) << "allocated, aligned";
  fill(*file, "hello");
  EXPECT_TRUE(file->sync());
  const auto status = complete(*file);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(read(root_ / "data/new"), "hello");
  EXPECT_FALSE(fs::exists(root_ / "data/.new.sluice-part"));
  struct stat info {};
  ASSERT_EQ(::stat(path("data/new").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640U);
  EXPECT_EQ(info.st_mtim.tv_sec, 1'700'000'000);
  EXPECT_EQ(info.st_mtim.tv_nsec, 123'456'789);
}

TEST_P(DestinationTest, AnAbandonedDestinationLeavesNothing) {
  const size_t before = entries("data");
  {
    auto file = exports_.create_destination(spec("data/new"));
    ASSERT_TRUE(file);
    fill(*file, "hello");
    EXPECT_EQ(entries("data"), before + 1);
    auto moved = std::move(*file);
    EXPECT_EQ(entries("data"), before + 1) << "moving is not abandoning";
  }
  EXPECT_EQ(entries("data"), before);
}

TEST_P(DestinationTest, OneThatIsDroppedIsGoneWhoeverHoldsIt) {
  const size_t before = entries("data");
  auto file = exports_.create_destination(spec("data/new"));
  ASSERT_TRUE(file);
  fill(*file, "hello");
  ASSERT_TRUE(file->drop());
  EXPECT_EQ(entries("data"), before);
  write(root_ / "data/.new.sluice-part", "of somebody else");
  ASSERT_TRUE(file->drop());
  EXPECT_EQ(read(root_ / "data/.new.sluice-part"), "of somebody else");
}

TEST_P(DestinationTest, ATemporaryFileThatBecameAnotherIsLeftAlone) {
  {
    auto file = exports_.create_destination(spec("data/new"));
    ASSERT_TRUE(file);
    fs::remove(root_ / "data/.new.sluice-part");
    write(root_ / "data/.new.sluice-part", "of somebody else");
    EXPECT_EQ(complete(*file).error().code, ErrorCode::kStorage);
  }
  EXPECT_EQ(read(root_ / "data/.new.sluice-part"), "of somebody else");
  EXPECT_FALSE(fs::exists(root_ / "data/new"));
}

TEST_P(DestinationTest, AnEmptyFileAndOneOfWholeBlocksWork) {
  for (const uint64_t size : {uint64_t{0}, uint64_t{4096}, uint64_t{8191}}) {
    auto file = exports_.create_destination(spec("data/sized" + std::to_string(size), size));
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(complete(*file));
    EXPECT_EQ(fs::file_size(root_ / ("data/sized" + std::to_string(size))), size);
  }
}

TEST_P(DestinationTest, ADirectoryTakesTheFileUnderItsOwnName) {
  auto inside = exports_.create_destination(spec("data/sub"));
  ASSERT_TRUE(inside) << inside.error().message;
  EXPECT_EQ(inside->final_path(), path("data/sub/source-name"));
  EXPECT_TRUE(complete(*inside));
  auto at_root = spec("");
  at_root.path = "data/";
  EXPECT_EQ(exports_.create_destination(at_root)->final_path(), path("data/source-name"));

  for (const char* name : {"", "..", "a/b"}) {
    auto odd = spec("data/sub");
    odd.name = name;
    EXPECT_EQ(destination_error(odd).code, ErrorCode::kStorage) << name;
  }
}

TEST_P(DestinationTest, MissingDirectoriesAreMadeWhereThatIsAskedFor) {
  const auto make = [this](const std::string& where, bool is_directory) {
    const Status made = exports_.make_missing(where, is_directory, {});
    return made ? ErrorCode::kOk : made.error().code;
  };
  EXPECT_EQ(make("data/a/b/file", false), ErrorCode::kOk);
  EXPECT_TRUE(fs::is_directory(root_ / "data/a/b"));
  EXPECT_FALSE(fs::exists(root_ / "data/a/b/file")) << "that is the name of what comes";
  EXPECT_EQ(destination_error(spec("data/a/b/file")).code, ErrorCode::kOk);
  EXPECT_EQ(make(path("data/c/d/"), false), ErrorCode::kOk);
  EXPECT_TRUE(fs::is_directory(root_ / "data/c/d"));
  EXPECT_EQ(make("data/e", true), ErrorCode::kOk);
  EXPECT_TRUE(fs::is_directory(root_ / "data/e"));
  for (const char* there : {"data", "data/", "data/sub", "data/e/"})
    EXPECT_EQ(make(there, true), ErrorCode::kOk) << there;
  EXPECT_EQ(make("writeonly/f", true), ErrorCode::kOk) << "the right to write is enough";
  EXPECT_EQ(make("readonly/f", true), ErrorCode::kOutsideExports);
  EXPECT_EQ(make(path("data/readonly/f"), true), ErrorCode::kOutsideExports) << "the inner export decides";
  EXPECT_EQ(make("data/../outside/f", true), ErrorCode::kOutsideExports);
  EXPECT_EQ(make("elsewhere/f", true), ErrorCode::kOutsideExports);
  EXPECT_EQ(make("data/file/f", true), ErrorCode::kDestinationExists);
  EXPECT_EQ(make("data/.x.sluice-part/f", true), ErrorCode::kStorage);
  fs::create_directory_symlink(root_ / "outside", root_ / "data/link");
  EXPECT_EQ(make("data/link/f", true), ErrorCode::kDestinationExists) << "a link is not followed";
  EXPECT_EQ(entries("outside"), 1U);
  EXPECT_EQ(entries("data/readonly"), 0U);
}

TEST_P(DestinationTest, NoDirectoryIsMadeUnderTheNameOfAFileUnderWay) {
  const auto file = exports_.create_destination(spec("data/coming"));
  ASSERT_TRUE(file) << file.error().message;
  const Status made = exports_.make_missing("data/coming/sub", true, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kDestinationExists);
  EXPECT_FALSE(fs::exists(root_ / "data/coming"));
}

TEST_P(DestinationTest, MissingDirectoriesAreNamed) {
  const Error parent = destination_error(spec("data/none/new"));
  EXPECT_EQ(parent.code, ErrorCode::kStorage);
  EXPECT_EQ(parent.message,
            "directory " + path("data/none") + " does not exist; make it first, or use --mkdir");
  auto wanted = spec("data/none");
  wanted.is_directory = true;
  EXPECT_EQ(destination_error(wanted).message,
            "directory " + path("data/none") + " does not exist; make it first, or use --mkdir");
  EXPECT_NE(
      destination_error(spec("data/none/")).message.find("does not exist; make it first, or use --mkdir"),
      std::string::npos);
  wanted = spec("data/file");
  wanted.is_directory = true;
  EXPECT_EQ(destination_error(wanted).code, ErrorCode::kStorage);
  EXPECT_EQ(destination_error(spec("outside/new")).code, ErrorCode::kOutsideExports);
  EXPECT_EQ(destination_error(spec("data/sub/../../outside/new")).code, ErrorCode::kOutsideExports);
}

TEST_P(DestinationTest, AnExistingFileIsReplacedOnlyOnRequest) {
  const Error refused = destination_error(spec("data/file"));
  EXPECT_EQ(refused.code, ErrorCode::kDestinationExists);
  EXPECT_NE(refused.message.find("--overwrite"), std::string::npos);
  auto wanted = spec("data/file", 3);
  wanted.overwrite = true;
  auto file = exports_.create_destination(wanted);
  ASSERT_TRUE(file) << file.error().message;
  fill(*file, "new");
  EXPECT_EQ(read(root_ / "data/file"), "hello") << "until it is complete";
  ASSERT_TRUE(complete(*file));
  EXPECT_EQ(read(root_ / "data/file"), "new");
}

TEST_P(DestinationTest, AFileThatAppearsMeanwhileIsNotReplaced) {
  {
    auto file = exports_.create_destination(spec("data/new"));
    ASSERT_TRUE(file);
    write(root_ / "data/new", "quicker");
    EXPECT_EQ(complete(*file).error().code, ErrorCode::kDestinationExists);
  }
  EXPECT_EQ(read(root_ / "data/new"), "quicker");
  EXPECT_FALSE(fs::exists(root_ / "data/.new.sluice-part"));
}

TEST_P(DestinationTest, ADirectoryIsNeverReplaced) {
  auto wanted = spec("data");
  wanted.name = "sub";
  wanted.overwrite = true;
  EXPECT_EQ(destination_error(wanted).code, ErrorCode::kDestinationExists);
  auto late = spec("data/late");
  late.overwrite = true;
  auto file = exports_.create_destination(late);
  ASSERT_TRUE(file);
  fs::create_directory(root_ / "data/late");
  EXPECT_EQ(complete(*file).error().code, ErrorCode::kDestinationExists);
  EXPECT_TRUE(fs::is_directory(root_ / "data/late"));
}

TEST_P(DestinationTest, TwoWritersForOneDestinationTheSecondIsTold) {
  auto first = exports_.create_destination(spec("data/new"));
  ASSERT_TRUE(first);
  const Error second = destination_error(spec("data/new"));
  EXPECT_EQ(second.code, ErrorCode::kDestinationExists);
  EXPECT_NE(second.message.find("another transfer writes to " + path("data/.new.sluice-part")),
            std::string::npos)
      << second.message;
  fill(*first, "hello");
  ASSERT_TRUE(complete(*first));
  EXPECT_EQ(read(root_ / "data/new"), "hello");
}

TEST_P(DestinationTest, AWriterInAnotherProcessHoldsTheDestinationUntilItDies) {
  int to_child[2];
  int to_parent[2];
  ASSERT_EQ(::pipe(to_child), 0);
  ASSERT_EQ(::pipe(to_parent), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  char byte = 'x';
  if (child == 0) {
    ::close(to_child[1]);
    const auto file = exports_.create_destination(spec("data/new"));
    if (::write(to_parent[1], file ? "y" : "n", 1) != 1) ::_exit(1);
    (void)!::read(to_child[0], &byte, 1);
    ::_exit(0);  // without destructors, like a crash
  }
  ASSERT_EQ(::read(to_parent[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  EXPECT_EQ(destination_error(spec("data/new")).code, ErrorCode::kDestinationExists);
  ::close(to_child[1]);
  ::close(to_child[0]);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(to_parent[0]);
  ::close(to_parent[1]);
  EXPECT_TRUE(fs::exists(root_ / "data/.new.sluice-part"));
  auto file = exports_.create_destination(spec("data/new"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(complete(*file));
}

TEST_P(DestinationTest, AnUnfinishedFileIsFoundAgainByItsIdentity) {
  auto wanted = spec("data/new");
  catalog::FileIdentity identity;
  {
    auto file = exports_.create_destination(wanted);
    ASSERT_TRUE(file);
    identity = file->identity();
    wanted.path = file->name_path();
    fill(*file, "hello");
    EXPECT_TRUE(file->sync());
    auto second = exports_.reopen_destination(wanted, identity, UniqueFd());
    ASSERT_FALSE(second) << "somebody has it";
    EXPECT_EQ(second.error().code, ErrorCode::kDestinationExists);
    file->keep();
  }
  auto other = exports_.reopen_destination(wanted, {.device = identity.device, .inode = identity.inode + 1},
                                           UniqueFd());
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_FALSE(other->has_value()) << "another file";
  auto again = exports_.reopen_destination(wanted, identity, UniqueFd());
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_TRUE(again->has_value());
  EXPECT_EQ(destination_error(spec("data/new")).code, ErrorCode::kDestinationExists) << "locked again";
  ASSERT_TRUE((*again)->finish());
  auto committed = exports_.is_committed(wanted.path, identity);
  ASSERT_TRUE(committed);
  EXPECT_FALSE(*committed);
  ASSERT_TRUE((*again)->commit());
  EXPECT_EQ(read(root_ / "data/new"), "hello");
  committed = exports_.is_committed(wanted.path, identity);
  ASSERT_TRUE(committed);
  EXPECT_TRUE(*committed);
}

TEST_P(DestinationTest, AnUnfinishedFileThatIsGoneIsNothing) {
  auto wanted = spec("data/new");
  catalog::FileIdentity identity;
  {
    auto file = exports_.create_destination(wanted);
    ASSERT_TRUE(file);
    identity = file->identity();
    wanted.path = file->name_path();
  }
  auto again = exports_.reopen_destination(wanted, identity, UniqueFd());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_FALSE(again->has_value());
}

TEST_P(DestinationTest, TheLockComesBackWithADescriptorThatSomebodyKept) {
  auto wanted = spec("data/new");
  UniqueFd kept;
  catalog::FileIdentity identity;
  {
    auto file = exports_.create_destination(wanted);
    ASSERT_TRUE(file);
    identity = file->identity();
    wanted.path = file->name_path();
    kept = UniqueFd(::dup(file->fd()));
    file->keep();
  }
  EXPECT_FALSE(exports_.reopen_destination(wanted, identity, UniqueFd()));
  auto again = exports_.reopen_destination(wanted, identity, std::move(kept));
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_TRUE(again->has_value());
  ASSERT_TRUE(complete(**again));
}

TEST_P(DestinationTest, ALeftoverIsReplacedAndOtherThingsInTheWayAreNot) {
  write(root_ / "data/.new.sluice-part", std::string(10000, 'x'));
  auto file = exports_.create_destination(spec("data/new"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(fs::file_size(root_ / "data/.new.sluice-part"), 4096U);
  fs::create_directory(root_ / "data/.dir.sluice-part");
  EXPECT_EQ(destination_error(spec("data/dir")).code, ErrorCode::kDestinationExists);
  fs::create_symlink(root_ / "outside/secret", root_ / "data/.link.sluice-part");
  EXPECT_EQ(destination_error(spec("data/link")).code, ErrorCode::kDestinationExists);
  EXPECT_EQ(read(root_ / "outside/secret"), "secret");
}

// Somebody took the name while control was down, after it had made the file and before it could note that.
TEST_P(DestinationTest, ALeftoverOfANameThatIsTakenIsRemoved) {
  write(root_ / "data/new", "theirs");
  write(root_ / "data/.new.sluice-part", std::string(10000, 'x'));
  EXPECT_EQ(destination_error(spec("data/new")).code, ErrorCode::kDestinationExists);
  EXPECT_FALSE(fs::exists(root_ / "data/.new.sluice-part"));
  EXPECT_EQ(read(root_ / "data/new"), "theirs");
}

TEST_P(DestinationTest, WhatIsUnderWayStaysThoughItsNameIsTaken) {
  const auto file = exports_.create_destination(spec("data/new"));
  ASSERT_TRUE(file) << file.error().message;
  write(root_ / "data/new", "theirs");
  EXPECT_EQ(destination_error(spec("data/new")).code, ErrorCode::kDestinationExists);
  EXPECT_TRUE(fs::exists(root_ / "data/.new.sluice-part"));
}

TEST_P(DestinationTest, NamesThatLeaveNoRoomOrAreKeptAreRefused) {
  EXPECT_EQ(destination_error(spec("data/" + std::string(256, 'n'))).code, ErrorCode::kStorage);
  EXPECT_EQ(destination_error(spec("data/" + std::string(241, 'n'))).code, ErrorCode::kOk);
  EXPECT_EQ(destination_error(spec("data/.x.sluice-part")).code, ErrorCode::kStorage);
}

TEST_P(DestinationTest, SizesBeyondTheDiskAreRefusedAndLeaveNothing) {
  const size_t before = entries("data");
  for (const uint64_t size : {uint64_t{1} << 60, uint64_t{INT64_MAX}, UINT64_MAX}) {
    EXPECT_EQ(destination_error(spec("data/huge", size)).code, ErrorCode::kNoSpace) << size;
  }
  EXPECT_EQ(entries("data"), before);
}

TEST(Destination, AFullFileSystemIsNoticedBeforeAnyByteIsSent) {
  expect_good_on_a_small_disk([](const Exports& exports, const fs::path& root) {
    const auto fits = exports.create_destination({.path = "small/half", .size = 512U << 10});
    // In memory nothing is reserved: what is written counts.
    if (!fits || ::fallocate(fits->fd(), 0, 0, 512U << 10) != 0) return 1;
    const auto full = exports.create_destination({.path = "small/more", .size = 768U << 10});
    if (full || full.error().code != ErrorCode::kNoSpace) return 2;
    return std::distance(fs::directory_iterator(root), fs::directory_iterator()) == 1 ? 0 : 3;
  });
}

}  // namespace
}  // namespace sluice::exports
