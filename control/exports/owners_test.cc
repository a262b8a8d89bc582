// SPDX-License-Identifier: Apache-2.0
#include "control/exports/owners.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/exports/unpack_fixture.h"

namespace sluice::exports {
namespace {

constexpr catalog::Keep kBoth{.owner = true, .group = true};

class OwnersTest : public UnpackTest {
 protected:
  void SetUp() override {
    UnpackTest::SetUp();
    if (!may_give_away()) GTEST_SKIP() << "only root gives files away";
  }
  std::pair<uid_t, gid_t> owners(const std::string& name) const {
    const struct stat found = info(name);
    return {found.st_uid, found.st_gid};
  }
  static Entry owned(Entry entry, uint32_t uid, uint32_t gid) {
    entry.attributes = {.uid = uid, .gid = gid, .user = {}, .group = {}};
    return entry;
  }
};
INSTANTIATE_TEST_SUITE_P(FileSystems, OwnersTest, testing::Values("/tmp", "/dev/shm"));

TEST(Accounts, SayWhatIsAskedForAlone) {
  const passwd* const nobody = ::getpwuid(65534);
  Accounts accounts;
  EXPECT_TRUE(accounts.attributes(1, 2, {}).empty());
  EXPECT_EQ(accounts.attributes(7, 8, {.group = true, .numeric_ids = true}),
            (catalog::Attributes{.uid = {}, .gid = 8, .user = {}, .group = {}}));
  EXPECT_EQ(accounts.attributes(0, 0, kBoth),
            (catalog::Attributes{.uid = 0, .gid = 0, .user = {}, .group = {}}))
      << "root is root everywhere";
  if (nobody != nullptr) {
    EXPECT_EQ(accounts.attributes(65534, 0, kBoth).user, nobody->pw_name);
  }
  EXPECT_EQ(accounts.attributes(4'000'000'000, 0, kBoth).user, "") << "a number that has no name";
}

TEST_P(OwnersTest, ANameThatIsKnownCountsMoreThanItsNumber) {
  const passwd* const daemon = ::getpwnam("daemon");
  if (daemon == nullptr) GTEST_SKIP() << "no user daemon here";
  const UniqueFd fd(::open(path("data/f").c_str(), O_CREAT | O_WRONLY, 0600));
  Accounts accounts;
  EXPECT_EQ(accounts.give(fd.get(), {.uid = 4321, .gid = 1234, .user = "daemon", .group = "no such group"}),
            0);
  EXPECT_EQ(owners("f"), (std::pair<uid_t, gid_t>{daemon->pw_uid, 1234}));
  EXPECT_EQ(accounts.give(fd.get(), {.uid = 0, .gid = {}, .user = "daemon", .group = {}}), 0);
  EXPECT_EQ(owners("f"), (std::pair<uid_t, gid_t>{0, 1234})) << "0 is root whatever it is called; no group";
}

TEST_P(OwnersTest, AllKindsOfNamesOfAPackGetThem) {
  Content content;
  content.add(owned(tree::test::file("t/a", "a"), 1001, 2001), "a");
  content.add(owned(symlink("t/l", "/nowhere"), 1002, 2002));
  content.add(hard_link("t/h", "t/a"));
  content.add(owned(directory("t", 0750), 1003, 2003));
  for (const bool verify : {false, true}) {
    EXPECT_EQ(unpack(content, {.overwrite = true, .verify = verify, .keep = kBoth}), Names());
    EXPECT_EQ(owners("t/a"), (std::pair<uid_t, gid_t>{1001, 2001}));
    EXPECT_EQ(owners("t/h"), owners("t/a"));
    EXPECT_EQ(owners("t/l"), (std::pair<uid_t, gid_t>{1002, 2002}));
    EXPECT_EQ(owners("t"), (std::pair<uid_t, gid_t>{1003, 2003}));
    EXPECT_EQ(mode("t/a"), 0644U);
    EXPECT_EQ(mode("t"), 0750U);
    EXPECT_EQ(mtime_ns("t"), 1'000'000'001);
    EXPECT_EQ(mtime_ns("t/l"), 1'000'000'001);
  }
}

TEST_P(OwnersTest, WhatWasNotAgreedUponIsNotStored) {
  const auto refused = [this](const catalog::Attributes& attributes, const catalog::Keep& keep) {
    Entry entry = tree::test::file("a", "a");
    entry.attributes = attributes;
    const auto one = unpacker({.keep = keep});
    const Status status = one->stage(Content().add(entry, "a").pack());
    return !status && status.error().code == ErrorCode::kIncompatible && !there("a");
  };
  EXPECT_TRUE(refused({.uid = 0, .gid = {}, .user = {}, .group = {}}, {}));
  EXPECT_TRUE(refused({.uid = {}, .gid = 5, .user = {}, .group = {}}, {.owner = true}));
  EXPECT_TRUE(refused({.uid = 5, .gid = {}, .user = {}, .group = {}}, {.group = true}));
  EXPECT_TRUE(refused({.uid = UINT32_MAX, .gid = {}, .user = {}, .group = {}}, kBoth))
      << "that means: nobody";
  EXPECT_TRUE(refused({.uid = 1, .gid = {}, .user = std::string(257, 'x'), .group = {}}, kBoth));
  EXPECT_TRUE(refused({.uid = 1, .gid = 1, .user = {}, .group = std::string("a\0b", 3)}, kBoth));
  EXPECT_TRUE(refused({.uid = 1, .gid = {}, .user = "root", .group = {}},
                      {.owner = true, .group = false, .numeric_ids = true}));
  EXPECT_FALSE(refused({.uid = 1, .gid = 1, .user = "a", .group = "b"}, kBoth));
}

TEST_P(OwnersTest, APeerChoosesThemOnlyWhereTheExportSaysSo) {
  const auto code_of = [](const auto& result) { return result ? ErrorCode::kOk : result.error().code; };
  const DestinationSpec spec{
      .path = "data/f", .keep = kBoth, .attributes = {.uid = 5, .gid = 6, .user = {}, .group = {}}};
  EXPECT_EQ(code_of(exports_.create_destination(spec)), ErrorCode::kOutsideExports);
  EXPECT_EQ(code_of(exports_.open_destination_tree("data", kBoth)), ErrorCode::kOutsideExports);
  EXPECT_EQ(code_of(exports_.open_destination_tree("data")), ErrorCode::kOk);
  EXPECT_FALSE(there("f"));
  Result<DestinationFile> file = exports_.for_operator().create_destination(spec);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(file->finish());
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(owners("f"), (std::pair<uid_t, gid_t>{5, 6}));
  EXPECT_EQ(mode("f"), 0644U);
}

}  // namespace
}  // namespace sluice::exports
