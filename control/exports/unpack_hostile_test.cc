// What a peer may not do with a tree: reach out of the directory, or at names that are not its own.
// SPDX-License-Identifier: Apache-2.0
#include "control/exports/unpack_fixture.h"

namespace sluice::exports {
namespace {

class UnpackHostileTest : public UnpackTest {
 protected:
  ErrorCode refusal(const Content& content, const std::vector<std::string>& paths) const {
    const size_t before = entries("data");
    const catalog::AskedNames asked(paths);
    const auto one = unpacker();
    const Status status = one->stage(content.pack(), &asked);
    if (status) return ErrorCode::kOk;
    EXPECT_EQ(entries("data"), before) << "nothing of its pack is stored";
    return status.error().code;
  }
};
INSTANTIATE_TEST_SUITE_P(FileSystems, UnpackHostileTest, testing::Values("/tmp", "/dev/shm"));

TEST_P(UnpackHostileTest, ALinkInPlaceOfADirectoryIsNeverFollowed) {
  for (const std::string& target :
       {(root_ / "outside").string(), std::string("../outside"), std::string("sub")}) {
    fs::remove(root_ / "data/t");
    fs::create_directory_symlink(target, root_ / "data/t");
    Content content;
    content.add_file("t/a", "a").add_file("t/new/b", "b").add(symlink("t/l", "x"));
    content.add(hard_link("h", "t/secret"));
    content.add(directory("t", 0700, 5)).add(directory("t/d", 0700, 5));
    for (const bool overwrite : {false, true}) {
      EXPECT_EQ(unpack(content, {.overwrite = overwrite}), (Names{{"t/a", Failure::kOtherKind},
                                                                  {"t/new/b", Failure::kOtherKind},
                                                                  {"t/l", Failure::kOtherKind},
                                                                  {"h", Failure::kOtherKind},
                                                                  {"t", Failure::kOtherKind},
                                                                  {"t/d", Failure::kOtherKind}}));
    }
    EXPECT_EQ(entries("outside"), 1U);
    EXPECT_EQ(entries("data/sub"), 0U);
    EXPECT_NE(mtime_ns("../outside"), 5);
  }
}

TEST_P(UnpackHostileTest, ALinkThatThePackBringsItselfIsNotFollowedEither) {
  Content content;
  content.add(symlink("t/l", "../../outside")).add_file("t/l/a", "a").add(directory("t/l/d"));
  EXPECT_EQ(unpack(content), (Names{{"t/l/a", Failure::kOtherKind}, {"t/l/d", Failure::kOtherKind}}));
  EXPECT_EQ(entries("outside"), 1U);
}

TEST_P(UnpackHostileTest, ALinkIsNoTargetOfAHardLink) {
  Content content;
  content.add(symlink("t/l", "../../outside/secret")).add(hard_link("t/h", "t/l"));
  EXPECT_EQ(unpack(content), (Names{{"t/h", Failure::kOtherKind}}));
}

TEST_P(UnpackHostileTest, NamesThatAreKeptForFilesUnderWayAreNotGiven) {
  write(root_ / "data/.x.sluice-part", "another session's");
  fs::create_directory(root_ / "data/.d.sluice-part");
  Content content;
  content.add_file(".x.sluice-part", "a").add_file("t/.Y.SLUICE-PART", "b").add_file("t/c", "c");
  content.add_file(".d.sluice-part/0", "d").add_file(std::string(kStaging) + "/2", "e");
  content.add(symlink(".l.sluice-part", "x")).add(directory(".n.sluice-part/d"));
  content.add(hard_link("t/h", ".x.sluice-part")).add(hard_link(".h.sluice-part", "t/c"));
  const Names names = unpack(content, {.overwrite = true});
  EXPECT_EQ(names.size(), 8U);
  for (const auto& [name, failure] : names) EXPECT_EQ(failure, Failure::kName) << name;
  EXPECT_EQ(text(".x.sluice-part"), "another session's");
  EXPECT_EQ(info(".x.sluice-part").st_nlink, 1U);
  EXPECT_EQ(entries("data/.d.sluice-part"), 0U);
  EXPECT_FALSE(there(".n.sluice-part"));
  EXPECT_EQ(text("t/c"), "c");
}

TEST_P(UnpackHostileTest, MoreNamesThanWereOfferedAreNotStored) {
  Content content;
  content.add_file("t/a", "a").add_file("t/b", "b");
  const Status status = unpacker({.names_max = 1})->stage(content.pack());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIncompatible);
  EXPECT_NE(status.error().message.find("2 names in a pack of which it offered 1"), std::string::npos);
  EXPECT_FALSE(there("t"));
  EXPECT_TRUE(unpacker({.names_max = 2})->stage(content.pack()));
}

TEST_P(UnpackHostileTest, OnlyWhatWasAskedForIsStored) {
  fs::create_directory(root_ / "data/private");
  write(root_ / "data/private/key", "key");
  EXPECT_EQ(refusal(Content().add_file("t/a", "a").add(directory("t")), {"exp/t"}), ErrorCode::kOk);
  EXPECT_EQ(refusal(Content().add_file("t/a", "a").add_file("x", "x"), {"exp/t"}), ErrorCode::kIncompatible);
  EXPECT_EQ(refusal(Content().add_file("tt/a", "a"), {"exp/t"}), ErrorCode::kIncompatible);
  EXPECT_EQ(refusal(Content().add(directory("private", 0777)), {"exp/t"}), ErrorCode::kIncompatible);
  EXPECT_EQ(refusal(Content().add(hard_link("t/k", "private/key")), {"exp/t"}), ErrorCode::kIncompatible);
  EXPECT_EQ(refusal(Content().add({.path = "x", .failure = Failure::kChanged}), {"exp/t"}),
            ErrorCode::kIncompatible);
  EXPECT_EQ(refusal(Content().add_file("x", "x"), {"exp/t/"}), ErrorCode::kOk);
}

TEST_P(UnpackHostileTest, AnExportWithinThisOneThatMayNotBeWrittenIsNot) {
  write(root_ / "data/readonly/here", "here");
  Content content;
  content.add_file("readonly/a", "a").add_file("readonly/sub/b", "b").add_file("readonlyx", "c");
  content.add_file("writeonly/d", "d").add(hard_link("h", "readonly/here"));
  content.add(directory("readonly/e")).add(directory("readonly", 0777));
  EXPECT_EQ(unpack(content, {.overwrite = true}), (Names{{"readonly/a", Failure::kForbidden},
                                                         {"readonly/sub/b", Failure::kForbidden},
                                                         {"h", Failure::kForbidden},
                                                         {"readonly/e", Failure::kForbidden},
                                                         {"readonly", Failure::kForbidden}}));
  EXPECT_EQ(entries("data/readonly"), 1U);
  EXPECT_EQ(text("writeonly/d"), "d");
  EXPECT_EQ(text("readonlyx"), "c");
  EXPECT_EQ(exports_.make_directories_for("data", "readonly/sub").error().code, ErrorCode::kOutsideExports);
}

TEST_P(UnpackHostileTest, ADirectoryForALargeFileIsMadeWhereATreesNamesMayBe) {
  const Result<std::string> made = exports_.make_directories_for("data", "t/a/b");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(*made, path("data/t/a/b"));
  EXPECT_EQ(mode("t/a"), 0700U);
  EXPECT_TRUE(exports_.make_directories_for("data", "t/a/b"));
  write(root_ / "data/file", "file");
  fs::create_directory_symlink(root_ / "outside", root_ / "data/l");
  EXPECT_EQ(exports_.make_directories_for("data", "file/a").error().code, ErrorCode::kDestinationExists);
  EXPECT_EQ(exports_.make_directories_for("data", "l/a").error().code, ErrorCode::kDestinationExists);
  EXPECT_EQ(exports_.make_directories_for("data", "t/.x.sluice-part/a").error().code, ErrorCode::kStorage);
  EXPECT_EQ(exports_.make_directories_for("data/missing", "a").error().code, ErrorCode::kStorage);
  EXPECT_EQ(entries("outside"), 1U);
}

TEST_P(UnpackHostileTest, ATreeGoesIntoADirectoryOfAnExport) {
  const auto code = [this](const std::string& where) {
    const Result<DestinationTree> tree = exports_.open_destination_tree(where);
    return tree ? ErrorCode::kOk : tree.error().code;
  };
  EXPECT_EQ(code("data/sub"), ErrorCode::kOk);
  EXPECT_EQ(code("data"), ErrorCode::kOk);
  EXPECT_EQ(code("writeonly"), ErrorCode::kOk);
  EXPECT_EQ(code("readonly"), ErrorCode::kOutsideExports);
  EXPECT_EQ(code("data/missing"), ErrorCode::kStorage);
  EXPECT_EQ(code("data/file"), ErrorCode::kStorage);
  EXPECT_EQ(code("data/../outside"), ErrorCode::kOutsideExports);
  fs::create_directory_symlink(root_ / "outside", root_ / "data/l");
  EXPECT_EQ(code("data/l"), ErrorCode::kOutsideExports);
  EXPECT_EQ(exports_.open_destination_tree("data/sub")->path, path("data/sub"));
}

}  // namespace
}  // namespace sluice::exports
