// SPDX-License-Identifier: Apache-2.0
#include "control/exports/xattrs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "control/exports/unpack_fixture.h"

namespace sluice::exports {
namespace {

namespace tag = catalog::acl_tag;
using catalog::Acl;

constexpr catalog::Keep kXattrs{.xattrs = true};
constexpr catalog::Keep kAcls{.acls = true};
constexpr catalog::Keep kAll{.xattrs = true, .acls = true};
constexpr const char* kAccess = "system.posix_acl_access";
constexpr const char* kDefault = "system.posix_acl_default";

Acl shared_with(uint32_t uid, const std::string& name = "") {
  return {{.tag = tag::kUserObj, .perm = 6},
          {.tag = tag::kUser, .perm = 4, .id = uid, .name = name},
          {.tag = tag::kGroupObj, .perm = 0},
          {.tag = tag::kMask, .perm = 4},
          {.tag = tag::kOther, .perm = 0}};
}

class XattrsTest : public UnpackTest {
 protected:
  void SetUp() override {
    UnpackTest::SetUp();
    write(root_ / "data/probe", "");
    if (!root_.empty() && ::setxattr(path("data/probe").c_str(), "user.a", "1", 1, 0) != 0)
      GTEST_SKIP() << "no extended attributes here";
  }
  std::string value(const std::string& name, const char* attribute) const {
    char text[4096];
    const ssize_t bytes = ::getxattr(path("data/" + name).c_str(), attribute, text, sizeof text);
    return bytes < 0 ? "none" : std::string(text, static_cast<size_t>(bytes));
  }
  catalog::Attributes kept(const std::string& name, const catalog::Keep& keep) const {
    const UniqueFd fd(::open(path("data/" + name).c_str(), O_RDONLY));
    struct stat info {};
    EXPECT_EQ(::fstat(fd.get(), &info), 0);
    Accounts accounts;
    catalog::Attributes found;
    EXPECT_EQ(read_kept(fd.get(), S_ISDIR(info.st_mode), keep, accounts, &found), Failure::kNone);
    return found;
  }
  static Entry with(Entry entry, const catalog::Attributes& attributes) {
    entry.attributes = attributes;
    return entry;
  }
};
INSTANTIATE_TEST_SUITE_P(FileSystems, XattrsTest, testing::Values("/tmp", "/dev/shm"));

TEST(Acl, BecomesBytesAndBack) {
  const Acl acl = shared_with(1234);
  EXPECT_EQ(acl_of_bytes(bytes_of_acl(acl)), acl);
  const std::string bytes = bytes_of_acl(acl);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_TRUE(!acl_of_bytes(bytes.substr(0, size)) || acl_of_bytes(bytes.substr(0, size))->empty()) << size;
  std::string other = bytes;
  other[0] = 3;
  EXPECT_FALSE(acl_of_bytes(other)) << "a version that is not known";
}

TEST(Acl, OnlyWhatLinuxTakesIsGood) {
  EXPECT_TRUE(catalog::good_acl({}));
  EXPECT_TRUE(catalog::good_acl(shared_with(1)));
  const auto bad = [](auto change) {
    Acl acl = shared_with(1);
    change(acl);
    return !catalog::good_acl(acl);
  };
  EXPECT_TRUE(bad([](Acl& acl) { acl.erase(acl.begin()); }));
  EXPECT_TRUE(bad([](Acl& acl) { acl.pop_back(); }));
  EXPECT_TRUE(bad([](Acl& acl) { acl.erase(acl.begin() + 3); })) << "no mask";
  EXPECT_TRUE(bad([](Acl& acl) { std::swap(acl[0], acl[1]); }));
  EXPECT_TRUE(bad([](Acl& acl) { acl[1].tag = 64; }));
  EXPECT_TRUE(bad([](Acl& acl) { acl[1].perm = 8; }));
  EXPECT_TRUE(bad([](Acl& acl) { acl[1].id = UINT32_MAX; }));
  EXPECT_TRUE(bad([](Acl& acl) { acl[2].id = 5; })) << "an account that is none";
  EXPECT_TRUE(bad([](Acl& acl) { acl[4].name = "a"; }));
  EXPECT_TRUE(bad([](Acl& acl) { acl.push_back(acl.back()); }));
}

TEST_P(XattrsTest, AllKindsOfNamesOfAPackGetThem) {
  const catalog::Attributes of_file{.uid = {},
                                    .gid = {},
                                    .user = {},
                                    .group = {},
                                    .xattrs = {{"user.\xff", std::string("a\0b", 3)}},
                                    .acl = shared_with(1234)};
  catalog::Attributes of_directory = of_file;
  of_directory.default_acl = shared_with(77);
  Content content;
  Entry file = with(tree::test::file("t/a", "a"), of_file);
  file.mode = 0640;
  content.add(file, "a");
  content.add(symlink("t/l", "/nowhere"));
  content.add(hard_link("t/h", "t/a"));
  content.add(with(directory("t", 0640), of_directory));
  for (const bool verify : {false, true}) {
    EXPECT_EQ(unpack(content, {.overwrite = true, .verify = verify, .keep = kAll}), Names());
    EXPECT_EQ(kept("t/a", kAll), of_file);
    EXPECT_EQ(kept("t", kAll), of_directory);
    EXPECT_EQ(mode("t/a"), 0640U) << "the mask is what the mode says of the group";
    EXPECT_EQ(mtime_ns("t"), 1'000'000'001);
  }
}

TEST_P(XattrsTest, WhatTheSourceHasNotIsTakenAway) {
  fs::create_directory(root_ / "data/t");
  ASSERT_EQ(::setxattr(path("data/t").c_str(), "user.old", "1", 1, 0), 0);
  const std::string acl = bytes_of_acl(shared_with(5));
  ASSERT_EQ(::setxattr(path("data").c_str(), kDefault, acl.data(), acl.size(), 0), 0);
  ASSERT_EQ(::setxattr(path("data/t").c_str(), kDefault, acl.data(), acl.size(), 0), 0);
  Content content;
  content.add_file("t/a", "a");
  content.add(directory("t"));
  EXPECT_EQ(unpack(content), Names());
  EXPECT_EQ(value("t", "user.old"), "1") << "nothing is kept, nothing is taken";
  EXPECT_EQ(unpack(content, {.overwrite = true, .keep = kAll}), Names());
  EXPECT_EQ(value("t", "user.old"), "none");
  EXPECT_EQ(value("t", kDefault), "none");
  EXPECT_EQ(value("t/a", kAccess), "none") << "not that of the directory that it was made in";
}

TEST_P(XattrsTest, AnAccountThatIsKnownCountsMoreThanItsNumber) {
  const passwd* const daemon = ::getpwnam("daemon");
  if (daemon == nullptr) GTEST_SKIP() << "no user daemon here";
  Content content;
  catalog::Attributes attributes;
  attributes.acl = shared_with(4321, "daemon");
  content.add(with(tree::test::file("a", "a"), attributes), "a");
  EXPECT_EQ(unpack(content, {.keep = kAcls}), Names());
  EXPECT_EQ(kept("a", kAcls).acl[1].id, daemon->pw_uid);
  EXPECT_EQ(kept("a", kAcls).acl[1].name, "daemon");
  EXPECT_EQ(kept("a", {.numeric_ids = true, .acls = true}).acl[1].name, "");
}

TEST_P(XattrsTest, OnlyThoseOfUsersAreReadAndOnlyAsManyAsTravel) {
  if (::geteuid() == 0) {
    ASSERT_EQ(::setxattr(path("data/file").c_str(), "trusted.a", "1", 1, 0), 0);
  }
  ASSERT_EQ(::setxattr(path("data/file").c_str(), "user.b", "2", 1, 0), 0);
  EXPECT_EQ(kept("file", kXattrs).xattrs, (std::vector<catalog::Xattr>{{"user.b", "2"}}));
  EXPECT_TRUE(kept("file", {.owner = true}).xattrs.empty());
  // Which of the file systems has room for so much is its own matter.
  const std::string large(40'000, 'x');
  if (::setxattr(path("data/file").c_str(), "user.c", large.data(), large.size(), 0) != 0 ||
      ::setxattr(path("data/file").c_str(), "user.d", large.data(), large.size(), 0) != 0)
    GTEST_SKIP() << "no room for so much";
  const UniqueFd fd(::open(path("data/file").c_str(), O_RDONLY));
  Accounts accounts;
  catalog::Attributes found;
  EXPECT_EQ(read_kept(fd.get(), false, kXattrs, accounts, &found), Failure::kAttributesTooLarge);
}

TEST_P(XattrsTest, WhatWasNotAgreedUponIsNotStored) {
  const auto refused = [this](const catalog::Attributes& attributes, const catalog::Keep& keep,
                              const Entry& entry = tree::test::file("a", "a")) {
    const auto one = unpacker({.overwrite = true, .keep = keep});
    const Status status = one->stage(Content().add(with(entry, attributes), "a").pack());
    return !status && status.error().code == ErrorCode::kIncompatible && !there("a");
  };
  const auto xattr = [](std::string name, std::string of = "1") {
    catalog::Attributes attributes;
    attributes.xattrs.push_back({std::move(name), std::move(of)});
    return attributes;
  };
  EXPECT_TRUE(refused(xattr("user.a"), {}));
  EXPECT_TRUE(refused(xattr("user.a"), kAcls));
  for (const char* name :
       {"security.capability", "trusted.overlay.opaque", "system.posix_acl_access", "user.", "x"})
    EXPECT_TRUE(refused(xattr(name), kAll)) << name;
  EXPECT_TRUE(refused(xattr(std::string("user.a\0b", 8)), kAll));
  EXPECT_TRUE(refused(xattr("user." + std::string(251, 'x')), kAll));
  EXPECT_TRUE(refused(xattr("user.a", std::string(65'536, 'x')), kAll));
  catalog::Attributes twice = xattr("user.a");
  twice.xattrs.push_back(twice.xattrs.front());
  EXPECT_TRUE(refused(twice, kAll));
  catalog::Attributes acl;
  acl.acl = shared_with(5);
  EXPECT_TRUE(refused(acl, kXattrs));
  acl.acl[1].perm = 9;
  EXPECT_TRUE(refused(acl, kAll));
  acl.acl = shared_with(5, "daemon");
  EXPECT_TRUE(refused(acl, {.numeric_ids = true, .acls = true}));
  acl = {};
  acl.default_acl = shared_with(5);
  EXPECT_TRUE(refused(acl, kAll)) << "of what is no directory";
  EXPECT_FALSE(refused(xattr("user.a"), kAll));
}

TEST_P(XattrsTest, APeerChoosesACLsOnlyWhereTheExportSaysSo) {
  const auto code_of = [](const auto& result) { return result ? ErrorCode::kOk : result.error().code; };
  DestinationSpec spec{.path = path("data/f"), .mode = 0640, .keep = kAll};
  spec.attributes.xattrs = {{"user.a", "1"}};
  spec.attributes.acl = shared_with(54321);
  EXPECT_EQ(code_of(exports_.create_destination(spec)), ErrorCode::kOutsideExports);
  EXPECT_EQ(code_of(exports_.open_destination_tree(path("data"), kAcls)), ErrorCode::kOutsideExports);
  EXPECT_EQ(code_of(exports_.open_destination_tree(path("data"), kXattrs)), ErrorCode::kOk);
  Result<DestinationFile> file = exports_.for_operator().create_destination(spec);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(complete(*file));
  EXPECT_EQ(kept("f", kAll), spec.attributes);
}

// A file system of memory that has neither.
TEST(Xattrs, WhatAFileSystemDoesNotTakeFailsByNameAndAllElseArrives) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root for a ramfs";
  char name[] = "/tmp/sluice-ramfs-XXXXXX";
  const fs::path root = ::mkdtemp(name);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("ramfs", root.c_str(), "ramfs", 0, nullptr) != 0)
      ::_exit(77);
    const auto exports = Exports::open({{"ram", root, true, true}})->for_operator();
    Content content;
    catalog::Attributes attributes;
    attributes.xattrs = {{"user.a", "1"}};
    Entry entry = tree::test::file("a", "a");
    entry.attributes = attributes;
    content.add(entry, "a");
    attributes = {};
    attributes.acl = shared_with(5);
    entry = tree::test::file("b", "b");
    entry.attributes = attributes;
    content.add(entry, "b");
    content.add_file("c", "c");
    Unpacker unpacker(std::move(*exports.open_destination_tree(root.string())), ".sluice-test.sluice-part",
                      {.keep = kAll});
    if (!unpacker.stage(content.pack()) || !unpacker.commit()) ::_exit(1);
    const auto& missing = unpacker.missing().names;
    const bool told = missing.size() == 2 && missing[0].failure == Failure::kAttributesRefused &&
                      missing[1].failure == Failure::kAttributesRefused;
    if (!told || fs::exists(root / "a") || fs::exists(root / "b") || !fs::exists(root / "c")) ::_exit(2);
    DestinationSpec spec{.path = root / "d", .keep = kAll, .attributes = attributes};
    Result<DestinationFile> file = exports.create_destination(spec);
    if (!file) ::_exit(3);
    const Status status = file->finish();
    ::_exit(!status && status.error().code == ErrorCode::kAttributes ? 0 : 4);
  }
  int result = 0;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  fs::remove_all(root);
  if (WIFEXITED(result) && WEXITSTATUS(result) == 77) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_TRUE(WIFEXITED(result));
  EXPECT_EQ(WEXITSTATUS(result), 0);
}

}  // namespace
}  // namespace sluice::exports
