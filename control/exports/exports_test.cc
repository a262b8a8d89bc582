// Paths and sources.
// SPDX-License-Identifier: Apache-2.0
#include "control/exports/exports_fixture.h"

namespace sluice::exports {
namespace {

INSTANTIATE_TEST_SUITE_P(FileSystems, ExportsTest, testing::Values("/tmp", "/dev/shm"),
                         [](const auto& chosen) {
                           return std::string(chosen.param) == "/tmp" ? "Tmp" : "Shm";
                         });

TEST_P(ExportsTest, ASourceIsFoundByItsAbsolutePathAndByItsExport) {
  for (const std::string& name :
       {path("data/file"), std::string("data/file"), path("data//./file"), path("data") + "/sub/../file"}) {
    const auto file = exports_.open_source(name);
    if (name.find("..") != std::string::npos) {
      EXPECT_FALSE(file) << name;
      continue;
    }
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->path, path("data/file"));
    EXPECT_EQ(file->name, "file");
    EXPECT_EQ(file->size, 5U);
    EXPECT_EQ(::fcntl(file->fd.get(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_EQ((::fcntl(file->fd.get(), F_GETFL) & O_DIRECT) != 0, file->direct);
  }
}

// Nested in one that does: the innermost export decides.
TEST_P(ExportsTest, AnExportMayHaveItsFilesPassThePageCache) {
  const config::Export outer{.name = "data", .path = root_ / "data", .write = true};
  const config::Export cached{.name = "cached", .path = root_ / "data/sub", .write = true, .direct = false};
  auto exports = Exports::open({outer, cached});
  ASSERT_TRUE(exports) << exports.error().message;
  write(root_ / "data/sub/file", "hello");
  const bool can = exports->open_source("data/file")->direct;
  for (const std::string& name : {"data", "cached"}) {
    const bool direct = can && name == "data";
    const auto source = exports->open_source(name + "/file");
    ASSERT_TRUE(source) << source.error().message;
    EXPECT_EQ(source->direct, direct) << name;
    EXPECT_EQ((::fcntl(source->fd.get(), F_GETFL) & O_DIRECT) != 0, direct) << name;
    DestinationSpec wanted{.path = name + "/new", .name = "new", .size = 5};
    std::optional<catalog::FileIdentity> left;
    {
      auto made = exports->create_destination(wanted);
      ASSERT_TRUE(made) << made.error().message;
      EXPECT_EQ(made->direct(), direct) << name;
      EXPECT_EQ((::fcntl(made->fd(), F_GETFL) & O_DIRECT) != 0, direct) << name;
      fill(*made, "12345");
      ASSERT_TRUE(made->sync());
      left = made->identity();
      wanted.path = made->name_path();
      made->keep();
    }
    auto again = exports->reopen_destination(wanted, *left, UniqueFd());
    ASSERT_TRUE(again && *again) << name;
    EXPECT_EQ((*again)->direct(), direct) << name;
  }
}

TEST_P(ExportsTest, PathsBeneathNoExportAreRefused) {
  for (const std::string& name :
       {std::string("/etc/passwd"), path("outside/secret"), path("datax/file"), path(""),
        std::string("unknown/file"), std::string("file"), std::string(""), std::string("/"),
        path("data/../outside/secret"), std::string("data/../outside/secret"),
        path("data/file") + std::string(1, '\0') + "x"}) {
    EXPECT_EQ(source_error(name), ErrorCode::kOutsideExports) << name;
  }
}

TEST_P(ExportsTest, SymbolicLinksLeadNowhere) {
  fs::create_symlink(root_ / "outside", root_ / "data/link");
  fs::create_symlink(root_ / "outside/secret", root_ / "data/secret");
  fs::create_symlink("file", root_ / "data/alias");
  EXPECT_EQ(source_error(path("data/link/secret")), ErrorCode::kOutsideExports);
  EXPECT_EQ(source_error(path("data/secret")), ErrorCode::kOutsideExports);
  EXPECT_EQ(source_error(path("data/alias")), ErrorCode::kOutsideExports);
  EXPECT_EQ(destination_error(spec("data/link/new")).code, ErrorCode::kOutsideExports);
  auto over = spec("data/secret");
  over.overwrite = true;
  EXPECT_EQ(destination_error(over).code, ErrorCode::kDestinationExists);
  EXPECT_EQ(read(root_ / "outside/secret"), "secret");
  EXPECT_EQ(entries("outside"), 1U);
}

TEST_P(ExportsTest, OnlyRegularFilesAreSources) {
  ASSERT_EQ(::mkfifo(path("data/pipe").c_str(), 0600), 0);
  EXPECT_EQ(source_error(path("data/pipe")), ErrorCode::kSourceUnreadable) << "and this did not hang";
  EXPECT_EQ(source_error(path("data/missing")), ErrorCode::kSourceUnreadable);
  EXPECT_EQ(source_error(path("data/file/below")), ErrorCode::kSourceUnreadable);
  const auto directory = exports_.open_source(path("data/sub"));
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().code, ErrorCode::kSourceUnreadable);
  EXPECT_NE(directory.error().message.find("is a directory; name a file"), std::string::npos);
  EXPECT_EQ(source_error("data"), ErrorCode::kSourceUnreadable) << "the root itself";
}

TEST_P(ExportsTest, TheInnermostExportDecidesWhateverTheSpelling) {
  write(root_ / "data/readonly/file", "r");
  write(root_ / "data/writeonly/file", "w");
  EXPECT_EQ(source_error(path("data/readonly/file")), ErrorCode::kOk);
  EXPECT_EQ(source_error(path("data/writeonly/file")), ErrorCode::kOutsideExports);
  EXPECT_EQ(source_error("data/writeonly/file"), ErrorCode::kOutsideExports);
  EXPECT_EQ(source_error("writeonly/file"), ErrorCode::kOutsideExports);
  EXPECT_EQ(destination_error(spec("data/readonly/new")).code, ErrorCode::kOutsideExports);
  EXPECT_EQ(destination_error(spec("data/writeonly/new")).code, ErrorCode::kOk);
}

TEST_P(ExportsTest, OddNamesAreTakenAsTheyAreAndShownOnOneLine) {
  write(root_ / "data/two\nlines", "x");
  const auto file = exports_.open_source("data/two\nlines");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->name, "two\nlines");
  EXPECT_EQ(file->path, path("data/two?lines"));
  EXPECT_EQ(source_error("data/missing\nlines"), ErrorCode::kSourceUnreadable);
  auto made = exports_.create_destination(spec("data/new\nlines"));
  ASSERT_TRUE(made);
  EXPECT_TRUE(complete(*made));
  EXPECT_TRUE(fs::exists(root_ / "data/new\nlines"));
}

TEST_P(ExportsTest, AChangedSourceIsNoticed) {
  const auto file = exports_.open_source("data/file");
  ASSERT_TRUE(file);
  EXPECT_TRUE(Exports::check_unchanged(*file));
  const timespec touched[2] = {{0, UTIME_OMIT}, {12345, 0}};
  ::utimensat(AT_FDCWD, path("data/file").c_str(), touched, 0);
  EXPECT_EQ(Exports::check_unchanged(*file).error().code, ErrorCode::kIntegrity);

  const auto other = exports_.open_source("data/file");
  ASSERT_EQ(::truncate(path("data/file").c_str(), 1), 0);
  ::utimensat(AT_FDCWD, path("data/file").c_str(), touched, 0);
  EXPECT_EQ(Exports::check_unchanged(*other).error().code, ErrorCode::kIntegrity) << "the size alone tells";
}

TEST(Exports, AMissingRootIsAConfigurationError) {
  const auto opened = Exports::open({{"data", "/nonexistent/data", true, true}});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kConfiguration);
  EXPECT_NE(opened.error().message.find("export data: /nonexistent/data"), std::string::npos);
}

TEST_P(ExportsTest, WhatIsNotOpenToAPeerIsNotThere) {
  auto opened = Exports::open({{.name = "data", .path = root_ / "data", .read = true, .write = true},
                               {.name = "inner",
                                .path = root_ / "data/sub",
                                .read = true,
                                .write = true,
                                .peers = std::vector<config::ExportPeer>{{"gamma", "r"}}}});
  ASSERT_TRUE(opened) << opened.error().message;
  write(root_ / "data/sub/secret", "for gamma");
  const Exports beta = opened->for_peer("beta");
  const Exports gamma = opened->for_peer("gamma");
  for (const std::string& name :
       {path("data/sub/secret"), std::string("inner/secret"), std::string("data/sub/secret")}) {
    const auto refused = beta.open_source(name);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::kOutsideExports);
    EXPECT_NE(refused.error().message.find("open to peer beta"), std::string::npos)
        << refused.error().message;
    EXPECT_EQ(refused.error().message.find("inner,"), std::string::npos) << "its name is not told";
    EXPECT_TRUE(gamma.open_source(name)) << name;
    EXPECT_TRUE(opened->open_source(name)) << "for an operator";
  }
  DestinationSpec wanted = spec("data/sub/new");
  EXPECT_FALSE(beta.create_destination(wanted));
  EXPECT_FALSE(gamma.create_destination(wanted)) << "it may read";
  EXPECT_TRUE(opened->create_destination(wanted));
  EXPECT_TRUE(beta.open_source("data/file"));
}

TEST_P(ExportsTest, QuotasOfAPathAreThoseOfItsExportAndOfThoseWithin) {
  const auto only = [](uint64_t bytes) { return std::vector<config::Quota>{{.session_bytes = bytes}}; };
  auto opened =
      Exports::open({{.name = "data", .path = root_ / "data", .read = true, .write = true, .quotas = only(1)},
                     {.name = "inner", .path = root_ / "data/sub", .read = true, .quotas = only(2)}});
  ASSERT_TRUE(opened) << opened.error().message;
  const Exports beta = opened->for_peer("beta");
  const auto found = [&](std::string_view path) {
    std::string text;
    for (const QuotaOf& each : beta.quotas(path))
      text += each.export_name + "=" + std::to_string(each.quota.session_bytes) + " ";
    return text;
  };
  EXPECT_EQ(found("data/"), "data=1 inner=2 ") << "a tree that is put there may come into the inner one";
  EXPECT_EQ(found("data/file"), "data=1 ");
  EXPECT_EQ(found(path("data/sub/new")), "inner=2 ");
  EXPECT_EQ(found("data/su"), "data=1 ");
  EXPECT_EQ(found("data/../x") + found("memory:1G") + found("/etc"), "");
}

}  // namespace
}  // namespace sluice::exports
