// SPDX-License-Identifier: Apache-2.0
#include "control/exports/tree_walk.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "control/exports/times.h"
#include "control/exports/unpack_fixture.h"

namespace sluice::exports {
namespace {

class TreeWalkTest : public UnpackTest {
 protected:
  std::vector<Entry> walk(const std::string& path, const selection::Selection& selection = {}) const {
    const Result<selection::Choice> choice = selection::Choice::make(selection);
    EXPECT_TRUE(choice) << choice.error().message;
    std::vector<Entry> entries;
    Result<std::optional<SourceTree>> tree = exports_.open_tree(path);
    EXPECT_TRUE(tree) << tree.error().message;
    if (!tree || !tree->has_value()) return entries;
    const Status walked = walk_tree(**tree, *choice, [&](Entry entry) -> Status {
      entries.push_back(std::move(entry));
      return {};
    });
    EXPECT_TRUE(walked) << walked.error().message;
    return entries;
  }
  static std::vector<std::string> paths(const std::vector<Entry>& entries) {
    std::vector<std::string> all;
    for (const Entry& entry : entries) all.push_back(entry.path);
    return all;
  }
  static Entry find(const std::vector<Entry>& entries, const std::string& path) {
    for (const Entry& entry : entries)
      if (entry.path == path) return entry;
    ADD_FAILURE() << path << " is not there";
    return {};
  }
  void put(const std::string& name, const std::string& text = "x") const {
    write(root_ / "data/t" / name, text);
  }
  void make(const std::string& name) const { fs::create_directories(root_ / "data/t" / name); }
};
INSTANTIATE_TEST_SUITE_P(FileSystems, TreeWalkTest, testing::Values("/tmp", "/dev/shm"));

using Paths = std::vector<std::string>;

TEST_P(TreeWalkTest, ADirectoryComesAfterWhatIsInItAndNamesAreSorted) {
  for (const char* name : {"b/y", "b/x", "a", "a-b"}) make(name);
  for (const char* name : {"z", "a/2", "a/1", "b/x/f", "b.c"}) put(name);
  const std::vector<Entry> found = walk("data/t");
  EXPECT_EQ(paths(found), (Paths{"b.c", "z", "a/1", "a/2", "a", "a-b", "b/x/f", "b/x", "b/y", "b", ""}));
  EXPECT_EQ(find(found, "a").kind, EntryKind::kDirectory);
  EXPECT_EQ(find(found, "").kind, EntryKind::kDirectory);
}

TEST_P(TreeWalkTest, OfWhatADirectoryHoldsTheDirectoryItselfIsNoPart) {
  make("sub");
  for (const char* path : {"data/t/", "data/t/."}) EXPECT_EQ(paths(walk(path)), Paths{"sub"}) << path;
  EXPECT_EQ(exports_.open_tree("data/t/")->value().name, "");
  EXPECT_EQ(exports_.open_tree("data/t")->value().name, "t");
  EXPECT_EQ(exports_.open_tree("data//t")->value().name, "t");
  EXPECT_EQ(exports_.open_tree("data")->value().name, "");
  EXPECT_EQ(exports_.open_tree(path("data"))->value().name, "data") << "as any other directory";
  EXPECT_EQ(exports_.open_tree("data/readonly")->value().name, "readonly") << "an export as well";
}

// What a peer that asked for a path lets come is what it gets.
TEST_P(TreeWalkTest, TheNameOfATreeIsTheOneThatIsAwaited) {
  make("sub");
  for (const std::string& asked :
       {std::string("data/t"), path("data/t"), std::string("data/t/"), path("data"), std::string("data"),
        std::string("data/readonly"), std::string("data/./t/.")}) {
    const catalog::AskedNames names({asked});
    const std::string name = exports_.open_tree(asked)->value().name;
    EXPECT_TRUE(names.include(name.empty() ? "whatever" : name)) << asked;
    EXPECT_EQ(name.empty(), names.any()) << asked;
  }
}

TEST_P(TreeWalkTest, WhatRulesLeaveOutIsNotThereAndNotGoneInto) {
  for (const char* name : {"no/deep", "yes", "t"}) make(name);
  for (const char* name : {"no/f", "no/deep/f", "yes/f", "yes/no.tmp", "t/f"}) put(name);
  ::chmod(path("data/t/no").c_str(), 0);
  const selection::Selection rules{
      .rules = {{.include = false, .pattern = "no/"}, {.include = false, .pattern = "*.tmp"}}, .names = {}};
  EXPECT_EQ(paths(walk("data/t", rules)), (Paths{"t/f", "t", "yes/f", "yes", ""}));
  ::chmod(path("data/t/no").c_str(), 0755);
  // Rules judge names as they arrive.
  const selection::Selection anchored{
      .rules = {{.include = false, .pattern = "/t/yes"}, {.include = false, .pattern = "/no"}}, .names = {}};
  EXPECT_EQ(paths(walk("data/t", anchored)), (Paths{"no/f", "no/deep/f", "no/deep", "no", "t/f", "t", ""}));
  EXPECT_EQ(paths(walk("data/t/", anchored)), (Paths{"t/f", "t", "yes/f", "yes/no.tmp", "yes"}));
}

TEST_P(TreeWalkTest, OfAListNothingElseIsLookedAt) {
  for (const char* name : {"a/b/c", "d/e", "way"}) make(name);
  for (const char* name : {"a/1", "a/b/2", "a/b/c/3", "d/4", "d/e/5", "way/6", "a!"}) put(name);
  const auto of = [&](const Paths& names) { return paths(walk("data/t/", {.rules = {}, .names = names})); };
  EXPECT_EQ(of({"a/b/2", "a!"}), (Paths{"a!", "a/b/2", "a/b", "a"})) << "with the directories above it";
  EXPECT_EQ(of({"a"}), Paths{"a"});
  EXPECT_EQ(of({"a/"}), (Paths{"a/1", "a/b", "a"})) << "what it holds, and nothing deeper";
  EXPECT_EQ(of({"./", "d/e/5"}), (Paths{"a!", "d/e/5", "d/e", "d", "a", "way"}));
  EXPECT_EQ(of({"a/", "a/b/c/3", "a/1"}), (Paths{"a/1", "a/b/c/3", "a/b/c", "a/b", "a"}));
}

TEST_P(TreeWalkTest, WhatIsListedAndNotThereIsToldByItsName) {
  make("a");
  put("a/1");
  fs::create_symlink("a", root_ / "data/t/l");
  const std::vector<Entry> found =
      walk("data/t/", {.rules = {}, .names = {"a/2", "no/such", "a/1/x", "l/1", "a/1/", "l"}});
  EXPECT_EQ(paths(found), (Paths{"l/1", "l", "no/such", "a/1/x", "a/1", "a/2"}));
  for (const Entry& entry : found)
    EXPECT_EQ(entry.failure, entry.path == "l" ? Failure::kNone : Failure::kVanished) << entry.path;
}

TEST_P(TreeWalkTest, RulesJudgeWhatIsListedAndNotTheWayToIt) {
  make("a/b");
  for (const char* name : {"a/b/1", "a/b/2.tmp", "a/3.tmp"}) put(name);
  const selection::Selection selection{
      .rules = {{.include = false, .pattern = "a"}, {.include = false, .pattern = "*.tmp"}},
      .names = {"a/b/1", "a/b/2.tmp", "a"}};
  EXPECT_EQ(paths(walk("data/t/", selection)), (Paths{"a/b/1", "a/b", "a"}));
  EXPECT_EQ(paths(walk("data/t/", {.rules = selection.rules, .names = {"a/3.tmp", "a/b/2.tmp"}})), Paths{})
      << "no directory without anything in it";
}

TEST_P(TreeWalkTest, OnlyDirectoriesThatMayBeReadAreTrees) {
  EXPECT_FALSE(exports_.open_tree("data/file")->has_value());
  EXPECT_EQ(exports_.open_tree("data/missing").error().code, ErrorCode::kSourceUnreadable);
  EXPECT_EQ(exports_.open_tree("writeonly").error().code, ErrorCode::kOutsideExports);
  EXPECT_EQ(exports_.open_tree("data/../outside").error().code, ErrorCode::kOutsideExports);
  fs::create_directory_symlink(root_ / "outside", root_ / "data/l");
  for (const char* path : {"data/l", "data/l/"}) EXPECT_FALSE(exports_.open_tree(path)->has_value()) << path;
  EXPECT_EQ(exports_.open_tree("data/l/x").error().code, ErrorCode::kOutsideExports);
}

TEST_P(TreeWalkTest, AFileIsToldAsItIs) {
  make("");
  put("f", "12345");
  ::chmod(path("data/t/f").c_str(), 04751);
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 2}, {.tv_sec = -3, .tv_nsec = 4}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path("data/t/f").c_str(), times, 0), 0);
  const Entry file = find(walk("data/t"), "f");
  EXPECT_EQ(file.kind, EntryKind::kFile);
  EXPECT_EQ(file.size_bytes, 5U);
  EXPECT_EQ(file.mode & 0777, 0751U);
  EXPECT_EQ(file.mtime_ns, -2'999'999'996);
  const struct stat now = info("t/f");
  EXPECT_EQ(file.ctime_ns, clock_ns_of(now.st_ctim));
  EXPECT_EQ(file.failure, Failure::kNone);
}

TEST_P(TreeWalkTest, LinksAreToldAndNeverFollowed) {
  make("sub");
  for (const std::string target : {"nowhere", "/etc/passwd", "../../outside", "sub", ".", "\xff\n", "sub/"})
    fs::create_symlink(target, root_ / "data/t" / ("l" + std::to_string(target.size())));
  const std::vector<Entry> found = walk("data/t");
  EXPECT_EQ(found.size(), 7U + 2);
  for (const Entry& entry : found) {
    if (entry.kind == EntryKind::kDirectory) continue;
    EXPECT_EQ(entry.kind, EntryKind::kSymlink);
    EXPECT_EQ("l" + std::to_string(entry.target.size()), entry.path);
    EXPECT_EQ(entry.size_bytes, 0U);
    EXPECT_EQ(fs::read_symlink(root_ / "data/t" / entry.path).string(), entry.target);
  }
}

TEST_P(TreeWalkTest, FurtherNamesOfAFileAreLinksToTheFirst) {
  make("a");
  put("b", "bytes");
  fs::create_hard_link(root_ / "data/t/b", root_ / "data/t/a/z");
  fs::create_hard_link(root_ / "data/t/b", root_ / "data/t/c");
  put("single");
  fs::create_hard_link(root_ / "data/t/single", root_ / "data/elsewhere");
  const std::vector<Entry> found = walk("data/t");
  EXPECT_EQ(find(found, "b").kind, EntryKind::kFile);
  EXPECT_EQ(find(found, "b").size_bytes, 5U);
  for (const char* name : {"c", "a/z"}) {
    EXPECT_EQ(find(found, name).kind, EntryKind::kHardLink);
    EXPECT_EQ(find(found, name).target, "b");
    EXPECT_EQ(find(found, name).size_bytes, 0U);
    EXPECT_EQ(find(found, name).mtime_ns, find(found, "b").mtime_ns);
  }
  EXPECT_EQ(find(found, "single").kind, EntryKind::kFile) << "its other name is not in the tree";
}

TEST_P(TreeWalkTest, WhatIsNoFileIsToldAsThat) {
  make("");
  ASSERT_EQ(::mkfifo(path("data/t/pipe").c_str(), 0600), 0);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, path("data/t/socket").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  for (const char* name : {"pipe", "socket"})
    EXPECT_EQ(find(walk("data/t"), name).failure, Failure::kSpecial) << name;
}

TEST_P(TreeWalkTest, WhatAnotherSessionReceivesIsNoPart) {
  make(".d.sluice-part");
  put(".x.sluice-part");
  put(".d.sluice-part/0");
  put(".x.sluice-parts");
  EXPECT_EQ(paths(walk("data/t")), (Paths{".x.sluice-parts", ""}));
}

TEST_P(TreeWalkTest, WhatWasRemovedWhileAClientOfNfsHadItOpenIsNoPart) {
  make("d");
  put(".nfs000000000000a0c600000012");
  put(".nfs0000");
  EXPECT_EQ(paths(walk("data/t")), (Paths{".nfs0000", "d", ""}));
}

TEST_P(TreeWalkTest, NamesThatAreNoTextAreToldAsTheyAre) {
  make("\xff\xfe");
  for (const char* name : {"a\nb", "\x80", "\xff\xfe/\xc2"}) put(name);
  EXPECT_EQ(paths(walk("data/t")), (Paths{"a\nb", "\x80", "\xff\xfe/\xc2", "\xff\xfe", ""}));
}

TEST_P(TreeWalkTest, WhatCannotBeReadIsToldAndTheRestGoesOn) {
  for (const char* name : {"closed/sub", "open", "unlisted"}) make(name);
  for (const char* name : {"closed/f", "open/f", "unlisted/f"}) put(name);
  if (!give_to_nobody()) GTEST_SKIP() << "needs root, to be somebody else";
  ::chmod(path("data/t/closed").c_str(), 0);
  ::chmod(path("data/t/unlisted").c_str(), 0100);
  const AsNobody nobody;
  const std::vector<Entry> found = walk("data/t");
  EXPECT_EQ(paths(found), (Paths{"closed", "open/f", "open", "unlisted", ""}));
  for (const char* name : {"closed", "unlisted"}) {
    EXPECT_EQ(find(found, name).failure, Failure::kForbidden);
    EXPECT_EQ(find(found, name).kind, EntryKind::kDirectory);
  }
  EXPECT_EQ(find(found, "open").failure, Failure::kNone);
}

TEST_P(TreeWalkTest, ATreeThatCannotBeReadAtAllIsAnError) {
  make("sub");
  if (!give_to_nobody()) GTEST_SKIP() << "needs root, to be somebody else";
  ::chmod(path("data/t").c_str(), 0100);
  const AsNobody nobody;
  for (const char* path : {"data/t", "data/t/"}) {
    const Result<std::optional<SourceTree>> tree = exports_.open_tree(path);
    ASSERT_TRUE(tree && tree->has_value());
    const Status walked = walk_tree(**tree, {}, [](const Entry&) -> Status { return {}; });
    ASSERT_FALSE(walked) << "nothing of it would be sent, and nobody told";
    EXPECT_EQ(walked.error().code, ErrorCode::kSourceUnreadable);
  }
}

TEST_P(TreeWalkTest, AnExportWithinThisOneThatMayNotBeReadIsNot) {
  write(root_ / "data/writeonly/secret", "secret");
  write(root_ / "data/readonly/f", "f");
  const std::vector<Entry> found = walk("data");
  EXPECT_EQ(find(found, "writeonly").failure, Failure::kForbidden);
  EXPECT_EQ(find(found, "readonly").failure, Failure::kNone);
  EXPECT_EQ(paths(found), (Paths{"file", "readonly/f", "readonly", "sub", "writeonly"}));
}

TEST_P(TreeWalkTest, AnErrorOfWhoTakesThemEndsIt) {
  make("a/b");
  put("a/b/f");
  const Result<std::optional<SourceTree>> tree = exports_.open_tree("data/t");
  for (size_t wanted = 0; wanted < 4; ++wanted) {
    size_t taken = 0;
    const Status walked = walk_tree(**tree, {}, [&](const Entry&) -> Status {
      if (taken++ == wanted) return Error{ErrorCode::kUsage, "too many"};
      return {};
    });
    ASSERT_FALSE(walked);
    EXPECT_EQ(walked.error().message, "too many");
    EXPECT_EQ(taken, wanted + 1);
  }
}

// Deeper than a path can be long: what is beneath that is told, and nothing is left out without a word.
TEST_P(TreeWalkTest, AsDeepAsAPathCanBeEverythingIsTold) {
  constexpr int kLevels = 2100;
  make("");
  UniqueFd at(::open(path("data/t").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < kLevels; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0700), 0);
    at = UniqueFd(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at);
  }
  const std::vector<Entry> found = walk("data/t");
  size_t directories = 0;
  size_t too_long = 0;
  for (const Entry& entry : found) {
    if (entry.failure == Failure::kName) {
      ++too_long;
    } else {
      EXPECT_EQ(entry.failure, Failure::kNone);
      EXPECT_EQ(entry.path.size(), 2 * (2048 - directories) - (directories == 2048 ? 0 : 1));
      ++directories;
    }
  }
  EXPECT_EQ(directories, 2049U) << "of 4095 bytes, and all above";
  EXPECT_EQ(too_long, 1U);
  EXPECT_TRUE(found.back().path.empty());
}

}  // namespace
}  // namespace sluice::exports
