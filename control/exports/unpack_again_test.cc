// A pack where something stands already: what an interrupted life left, or what is somebody else's.
// SPDX-License-Identifier: Apache-2.0
#include "control/exports/unpack_fixture.h"

namespace sluice::exports {
namespace {

class UnpackAgainTest : public UnpackTest {
 protected:
  static Content some() {
    Content content;
    content.add_file("t/a", "first").add_file("t/b", "second").add(symlink("t/l", "a"));
    return content;
  }
};
INSTANTIATE_TEST_SUITE_P(FileSystems, UnpackAgainTest, testing::Values("/tmp", "/dev/shm"));

TEST_P(UnpackAgainTest, TheSameFileIsTakenAsItIsAndMadeAlike) {
  EXPECT_EQ(unpack(some()), Names());
  const ino_t before = info("t/a").st_ino;
  ::chmod(path("data/t/a").c_str(), 0777);
  write(root_ / "data/t/a", "first");  // another time
  EXPECT_EQ(unpack(some()), Names());
  EXPECT_EQ(info("t/a").st_ino, before);
  EXPECT_EQ(mode("t/a"), 0644U);
  EXPECT_EQ(mtime_ns("t/a"), 1'700'000'000'123'456'789);
}

TEST_P(UnpackAgainTest, AnotherFileIsNotTouched) {
  fs::create_directory(root_ / "data/t");
  write(root_ / "data/t/a", "other");  // as long
  write(root_ / "data/t/b", "longer than the second");
  fs::create_symlink("b", root_ / "data/t/l");
  const int64_t before = mtime_ns("t/a");
  EXPECT_EQ(unpack(some()),
            (Names{{"t/a", Failure::kExists}, {"t/b", Failure::kExists}, {"t/l", Failure::kExists}}));
  EXPECT_EQ(text("t/a"), "other");
  EXPECT_EQ(text("t/b"), "longer than the second");
  EXPECT_EQ(mtime_ns("t/a"), before);
  EXPECT_EQ(fs::read_symlink(root_ / "data/t/l"), "b");
}

TEST_P(UnpackAgainTest, ALinkIsTheSameOnlyWithAllOfItsTarget) {
  fs::create_directory(root_ / "data/t");
  for (const char* target : {"a-and-more", "b", ""}) {
    if (*target == '\0') {
      write(root_ / "data/t/l", "a");  // no link
    } else {
      fs::create_symlink(target, root_ / "data/t/l");
    }
    EXPECT_EQ(unpack(Content().add(symlink("t/l", "a"))), (Names{{"t/l", Failure::kExists}})) << target;
    fs::remove(root_ / "data/t/l");
  }
}

TEST_P(UnpackAgainTest, OverwritingReplacesFilesAndLinks) {
  fs::create_directory(root_ / "data/t");
  fs::create_symlink(root_ / "outside/secret", root_ / "data/t/a");
  write(root_ / "data/t/b", "other");
  write(root_ / "data/t/l", "other");
  EXPECT_EQ(unpack(some(), {.overwrite = true, .verify = true}), Names());
  EXPECT_EQ(read(root_ / "outside/secret"), "secret");
  EXPECT_TRUE(S_ISREG(info("t/a").st_mode));
  EXPECT_EQ(text("t/a"), "first");
  EXPECT_EQ(text("t/b"), "second");
  EXPECT_EQ(fs::read_symlink(root_ / "data/t/l"), "a");
}

TEST_P(UnpackAgainTest, OverwritingReplacesNoDirectoryAndNoPipe) {
  fs::create_directories(root_ / "data/t/a/full");
  fs::create_directories(root_ / "data/t/l");
  ASSERT_EQ(::mkfifo(path("data/t/b").c_str(), 0600), 0);
  EXPECT_EQ(
      unpack(some(), {.overwrite = true}),
      (Names{{"t/a", Failure::kOtherKind}, {"t/b", Failure::kOtherKind}, {"t/l", Failure::kOtherKind}}));
  EXPECT_TRUE(S_ISFIFO(info("t/b").st_mode));
  EXPECT_TRUE(there("t/a/full"));
  EXPECT_EQ(
      unpack(some()),
      (Names{{"t/a", Failure::kOtherKind}, {"t/b", Failure::kOtherKind}, {"t/l", Failure::kOtherKind}}));
}

TEST_P(UnpackAgainTest, WhatStandsInPlaceOfADirectoryIsNotRemoved) {
  for (const bool overwrite : {false, true}) {
    write(root_ / "data/t", "a file");
    Content content = some();
    content.add(directory("t"));
    EXPECT_EQ(unpack(content, {.overwrite = overwrite}), (Names{{"t/a", Failure::kOtherKind},
                                                                {"t/b", Failure::kOtherKind},
                                                                {"t/l", Failure::kOtherKind},
                                                                {"t", Failure::kOtherKind}}));
    EXPECT_EQ(text("t"), "a file");
  }
}

TEST_P(UnpackAgainTest, ACommitThatAnErrorEndedIsRepeated) {
  const auto one = unpacker();
  ASSERT_TRUE(one->stage(some().pack()));
  fs::rename(root_ / "data", root_ / "elsewhere");
  Status status = one->commit();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kStorage);
  EXPECT_NE(status.error().message.find("leads elsewhere"), std::string::npos);
  fs::create_directory(root_ / "data");
  EXPECT_FALSE(one->commit()) << "another directory has its name";
  EXPECT_EQ(entries("data"), 0U);
  fs::remove(root_ / "data");
  fs::rename(root_ / "elsewhere", root_ / "data");
  status = one->commit();
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_EQ(text("t/b"), "second");
  EXPECT_EQ(missing(*one), Names());
  EXPECT_TRUE(one->commit()) << "and once more";
  EXPECT_EQ(missing(*one), Names());
}

// Of a life before this one, which ended after some names were given.
TEST_P(UnpackAgainTest, AfterACrashTheSamePackIsUnpackedAgain) {
  Content content = some();
  content.add(hard_link("t/h", "t/a")).add(directory("t", 0755, 77));
  fs::create_directories(root_ / "data" / kStaging);
  write(root_ / "data" / kStaging / "0", "half");
  write(root_ / "data" / kStaging / "99", "of no name");
  EXPECT_EQ(unpack(content), Names());
  fs::remove(root_ / "data/t/b");  // it had no name yet
  EXPECT_EQ(unpack(content), Names());
  EXPECT_EQ(text("t/b"), "second");
  EXPECT_EQ(info("t/h").st_ino, info("t/a").st_ino);
  EXPECT_EQ(info("t/h").st_nlink, 2U) << "nothing staged is left";
  EXPECT_EQ(mtime_ns("t"), 77);
  EXPECT_EQ(unpack(content, {.overwrite = true}), Names());
  EXPECT_EQ(info("t/h").st_ino, info("t/a").st_ino);
}

TEST_P(UnpackAgainTest, WhatAnInterruptedLifeStagedIsRemoved) {
  fs::create_directories(root_ / "data" / kStaging);
  write(root_ / "data" / kStaging / "0", "half");
  const Result<DestinationTree> tree = exports_.open_destination_tree("data");
  Staging::remove(tree->fd.get(), kStaging);
  EXPECT_FALSE(there(kStaging));
  Staging::remove(tree->fd.get(), kStaging);
}

TEST_P(UnpackAgainTest, WhatIsNoDirectoryInTheWayOfStagingIsAnError) {
  fs::create_symlink(root_ / "outside", root_ / "data" / kStaging);
  const auto one = unpacker();
  const Status status = one->stage(some().pack());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kStorage);
  EXPECT_EQ(entries("outside"), 1U);
}

TEST_P(UnpackAgainTest, AHardLinkNeedsItsTarget) {
  fs::create_directories(root_ / "data/t/dir");
  Content content;
  content.add(hard_link("t/h", "t/missing")).add(hard_link("t/i", "none/at/all"));
  content.add(hard_link("t/j", "t/dir")).add_file("t/b", "b");
  EXPECT_EQ(unpack(content), (Names{{"t/h", Failure::kTargetMissing},
                                    {"t/i", Failure::kTargetMissing},
                                    {"t/j", Failure::kOtherKind}}));
  EXPECT_EQ(text("t/b"), "b");
}

// Else a name would have come whose bytes are not those of the source.
TEST_P(UnpackAgainTest, AHardLinkToWhatIsAnotherFileHereIsNotMade) {
  fs::create_directory(root_ / "data/t");
  write(root_ / "data/t/a", "somebody else's");
  Content content = some();
  content.add(hard_link("t/h", "t/a")).add(hard_link("t/i", "t/b"));
  EXPECT_EQ(unpack(content), (Names{{"t/a", Failure::kExists}, {"t/h", Failure::kExists}}));
  EXPECT_FALSE(there("t/h"));
  EXPECT_EQ(text("t/i"), "second");
  EXPECT_EQ(info("t/a").st_nlink, 1U);
}

TEST_P(UnpackAgainTest, AHardLinkTakesThePlaceOfAnotherFileOnlyWhenOverwriting) {
  fs::create_directory(root_ / "data/t");
  write(root_ / "data/t/h", "other");
  Content content = some();
  content.add(hard_link("t/h", "t/a"));
  EXPECT_EQ(unpack(content), (Names{{"t/h", Failure::kExists}}));
  EXPECT_EQ(text("t/h"), "other");
  EXPECT_EQ(unpack(content, {.overwrite = true}), Names());
  EXPECT_EQ(text("t/h"), "first");
}

TEST_P(UnpackAgainTest, TheDirectoryItselfGetsThemOnlyWhereThatWasAgreedUponAndNotTheRootOfAnExport) {
  Content content;
  content.add_file("a", "a");
  content.add(directory(".", 0710));
  const auto into = [this, &content](const Exports& exports, const char* where, bool agreed) {
    Result<DestinationTree> tree = exports.open_destination_tree(path(where));
    EXPECT_TRUE(tree);
    Unpacker one(std::move(*tree), kStaging, {.overwrite = true, .keep = {.top = agreed}});
    const Status status = one.stage(content.pack());
    if (!status) return status.error().code;
    EXPECT_TRUE(one.commit());
    EXPECT_EQ(one.missing().failed, 0U);
    return ErrorCode::kOk;
  };
  const mode_t before = mode("");
  EXPECT_EQ(into(exports_, "data/sub", false), ErrorCode::kIncompatible);
  EXPECT_FALSE(there("sub/a"));
  EXPECT_EQ(into(exports_, "data/sub", true), ErrorCode::kOk);
  EXPECT_EQ(mode("sub"), 0710U);
  EXPECT_EQ(mtime_ns("sub"), 1'000'000'001);
  EXPECT_EQ(into(exports_, "data", true), ErrorCode::kOk);
  EXPECT_TRUE(there("a"));
  EXPECT_EQ(mode(""), before);
  EXPECT_EQ(into(exports_.for_operator(), "data", true), ErrorCode::kOk);
  EXPECT_EQ(mode(""), 0710U) << "his own wish";
}

TEST_P(UnpackAgainTest, TwoNamesThatAreOneAreOne) {
  Content content;
  content.add_file("t/a", "first").add_file("t/a", "first").add_file("t/a", "other").add_file("t/a/b", "b");
  const Names names = unpack(content);
  EXPECT_EQ(names, (Names{{"t/a", Failure::kExists}, {"t/a/b", Failure::kOtherKind}}));
  EXPECT_EQ(text("t/a"), "first");
}

}  // namespace
}  // namespace sluice::exports
