// What a pack becomes where nothing is in its way.
// SPDX-License-Identifier: Apache-2.0
#include "control/exports/unpack.h"

#include <fmt/format.h>

#include "control/exports/times.h"
#include "control/exports/unpack_fixture.h"

namespace sluice::exports {
namespace {

using tree::test::file;

INSTANTIATE_TEST_SUITE_P(FileSystems, UnpackTest, testing::Values("/tmp", "/dev/shm"));

TEST_P(UnpackTest, EveryKindOfNameIsMadeWithItsModeAndTime) {
  Content content;
  content.add_file("t/a", "bytes of a");
  content.add_file("t/sub/deep/b", "");
  content.add_file("top", std::string(100'000, 'x'));
  content.add(symlink("t/l", "../outside/secret", 1'234'567'890'000'000'001));
  content.add(hard_link("t/h", "t/a"));
  content.add(directory("t/empty/deep", 0500, 3));
  content.add(directory("t/sub", 0711, 4));
  content.add(directory("t", 0750, 5));
  content.entries[0].mode = 0;
  content.entries[0].mtime_ns = -1'500'000'001;  // before 1970
  content.entries[4].mtime_ns = -1'500'000'001;
  content.entries[2].mode = 07777;
  EXPECT_EQ(unpack(content), Names());
  EXPECT_EQ(text("t/a"), "bytes of a");
  EXPECT_EQ(mode("t/a"), 0U);
  EXPECT_EQ(mtime_ns("t/a"), -1'500'000'001);
  EXPECT_EQ(text("t/sub/deep/b"), "");
  EXPECT_EQ(mtime_ns("t/sub/deep/b"), 1'700'000'000'123'456'789);
  EXPECT_EQ(text("top"), std::string(100'000, 'x'));
  EXPECT_EQ(mode("top"), 0777U) << "nothing of a peer becomes another user";
  EXPECT_EQ(fs::read_symlink(root_ / "data/t/l"), "../outside/secret");
  EXPECT_EQ(mtime_ns("t/l"), 1'234'567'890'000'000'001);
  EXPECT_EQ(info("t/h").st_ino, info("t/a").st_ino);
  EXPECT_EQ(mode("t/empty/deep"), 0500U);
  EXPECT_EQ(mtime_ns("t/empty/deep"), 3);
  EXPECT_EQ(mode("t/sub"), 0711U);
  EXPECT_EQ(mtime_ns("t/sub"), 4);
  EXPECT_EQ(mode("t"), 0750U);
  EXPECT_EQ(mtime_ns("t"), 5);
  EXPECT_EQ(mode("t/sub/deep"), 0700U) << "nobody said anything of it";
}

TEST_P(UnpackTest, OfManyNamesEachFailsByItself) {
  Content content;
  Names expected;
  for (int i = 0; i < 300; ++i) {
    const std::string name = fmt::format("{}/{}", "abc"[i % 3], i);
    content.add_file(name, name);
    if (i % 7 == 0) expected[name] = Failure::kDamaged;
    if (i % 7 == 0) content.entries.back().digest ^= 1;
    if (i % 50 == 1) content.add_file(name, name);  // twice
  }
  EXPECT_EQ(unpack(content), expected);
  for (int i = 0; i < 300; ++i) {
    const std::string name = fmt::format("{}/{}", "abc"[i % 3], i);
    EXPECT_EQ(there(name), i % 7 != 0);
    EXPECT_EQ(there(name) ? text(name) : name, name);
  }
}

TEST_P(UnpackTest, NamesThatAreNoTextAreMadeAsTheyAre) {
  Content content;
  const std::vector<std::string> names = {"\xff\xfe", "a\nb", " ", "-rf", "~", "*", std::string(255, 'n')};
  for (const std::string& name : names) content.add_file("t/" + name, name);
  EXPECT_EQ(unpack(content), Names());
  for (const std::string& name : names) EXPECT_EQ(text("t/" + name), name);
}

TEST_P(UnpackTest, ADirectoryKeepsItsTimeWhateverIsMadeInIt) {
  Content content;
  content.add_file("t/a/b/f", "f");
  content.add(hard_link("t/a/b/h", "t/a/b/f"));
  content.add(directory("t/a/b", 0755, 11));
  content.add(directory("t/a", 0555, 12));
  content.add(directory("t", 0, 13));
  EXPECT_EQ(unpack(content), Names());
  EXPECT_EQ(mtime_ns("t/a/b"), 11);
  EXPECT_EQ(mtime_ns("t/a"), 12);
  EXPECT_EQ(mtime_ns("t"), 13);
}

TEST_P(UnpackTest, NothingHasANameBeforeItIsCommitted) {
  const auto one = unpacker();
  ASSERT_TRUE(one->stage(Content().add_file("t/a", "a").pack()));
  EXPECT_FALSE(there("t"));
  EXPECT_TRUE(there(kStaging));
  EXPECT_EQ(mode(kStaging), 0700U) << "nobody else looks into it";
}

TEST_P(UnpackTest, WhatIsNotCommittedLeavesNothing) {
  const size_t before = entries("data");
  {
    const auto one = unpacker();
    ASSERT_TRUE(one->stage(Content().add_file("t/a", "a").add(symlink("l", "x")).pack()));
    EXPECT_EQ(entries("data"), before + 1);
  }
  EXPECT_EQ(entries("data"), before);
}

TEST_P(UnpackTest, APackOfNothingIsUnpacked) { EXPECT_EQ(unpack(Content()), Names()); }

TEST_P(UnpackTest, WhatTheSourceCouldNotSendIsMissingAndTheRestIsNot) {
  Content content;
  content.add_file("t/a", "a");
  content.add({.path = "t/lost", .failure = Failure::kForbidden});
  content.add({.path = "t/pipe", .failure = Failure::kSpecial});
  content.add({.path = "t/closed", .kind = EntryKind::kDirectory, .failure = Failure::kForbidden});
  EXPECT_EQ(unpack(content), (Names{{"t/lost", Failure::kForbidden},
                                    {"t/pipe", Failure::kSpecial},
                                    {"t/closed", Failure::kForbidden}}));
  EXPECT_EQ(text("t/a"), "a");
  for (const char* name : {"t/lost", "t/pipe", "t/closed"}) EXPECT_FALSE(there(name)) << name;
}

TEST_P(UnpackTest, BytesThatAreNotThoseThatWereSummedAreDamaged) {
  Content content;
  content.add_file("t/a", "first").add_file("t/b", "second").add_file("t/c", "third");
  Bytes pack = content.pack();
  pack[tree::layout_of(content.entries).data_at + 5] ^= 1;  // the first byte of the second
  const auto one = unpacker();
  ASSERT_TRUE(one->stage(pack));
  ASSERT_TRUE(one->commit());
  EXPECT_EQ(missing(*one), (Names{{"t/b", Failure::kDamaged}}));
  EXPECT_EQ(text("t/a"), "first");
  EXPECT_EQ(text("t/c"), "third");
  EXPECT_FALSE(there("t/b"));
}

TEST_P(UnpackTest, WhatIsNoPackIsRefusedAndLeavesNothing) {
  const size_t before = entries("data");
  Bytes pack = Content().add_file("t/a", "a").pack();
  pack[0] ^= 1;
  const auto one = unpacker();
  const Status status = one->stage(pack);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIncompatible);
  EXPECT_EQ(entries("data"), before);
}

TEST_P(UnpackTest, OfManyThatFailTheFirstAreTold) {
  Content content;
  for (int i = 0; i < 150; ++i) content.add({.path = std::to_string(i), .failure = Failure::kVanished});
  const auto one = unpacker();
  ASSERT_TRUE(one->stage(content.pack()));
  ASSERT_TRUE(one->commit());
  EXPECT_EQ(one->missing().failed, 150U);
  EXPECT_EQ(one->missing().names.size(), catalog::kFailuresKept);
  EXPECT_EQ(one->missing().names.front().path, "0");
}

TEST_P(UnpackTest, WhatIsVerifiedIsReadBackAlsoByWhomItsModeLetsNotRead) {
  if (!give_to_nobody()) GTEST_SKIP() << "needs root, to be somebody else";
  Content content;
  content.add_file("t/none", "none").add_file("t/write", "write").add_file("t/read", "read");
  content.entries[0].mode = 0;
  content.entries[1].mode = 0200;
  content.entries[2].mode = 0400;
  const AsNobody nobody;
  EXPECT_EQ(unpack(content, {.overwrite = false, .verify = true}), Names());
  EXPECT_EQ(mode("t/none"), 0U);
  EXPECT_EQ(mode("t/write"), 0200U);
  EXPECT_EQ(mode("t/read"), 0400U);
  EXPECT_EQ(text("t/read"), "read");
  EXPECT_EQ(mtime_ns("t/none"), 1'700'000'000'123'456'789);
}

TEST_P(UnpackTest, WhereNothingMayBeWrittenTheNameIsForbiddenAndOthersAreNot) {
  fs::create_directory(root_ / "data/closed");
  if (!give_to_nobody()) GTEST_SKIP() << "needs root, to be somebody else";
  ASSERT_EQ(::chown(path("data/closed").c_str(), 0, 0), 0);
  const AsNobody nobody;
  EXPECT_EQ(
      unpack(Content().add_file("closed/a", "a").add_file("b", "b").add_file("closed/d/c", "c")),
      (Names{{"closed/a", Failure::kDirectoryForbidden}, {"closed/d/c", Failure::kDirectoryForbidden}}));
  EXPECT_EQ(text("b"), "b");
}

TEST_P(UnpackTest, WhatADirectorysModeForbidsToItsOwnerComesAndTheModeStays) {
  fs::create_directories(root_ / "data/t/closed/deep");
  write(root_ / "data/t/closed/a", "before");
  if (!give_to_nobody()) GTEST_SKIP() << "needs root, to be somebody else";
  for (const char* each : {"data/t/closed/deep", "data/t/closed", "data/t"})
    ASSERT_EQ(::chmod(path(each).c_str(), 0555), 0);
  const AsNobody nobody;
  Content content;
  content.add_file("t/closed/a", "a").add_file("t/closed/new/c", "c").add_file("t/closed/deep/d", "d");
  content.add(hard_link("t/closed/h", "t/closed/a"));
  EXPECT_EQ(unpack(content, {.overwrite = true}), Names());
  EXPECT_EQ(text("t/closed/a"), "a");
  EXPECT_EQ(text("t/closed/deep/d"), "d");
  EXPECT_EQ(info("t/closed/h").st_nlink, 2U);
  for (const char* each : {"t/closed/deep", "t/closed", "t"}) EXPECT_EQ(mode(each), 0555U) << each;
  // Its own mode is another one meanwhile, and the directory itself is no different where it is sent.
  Content more;
  more.add_file("e", "e").add(directory("closed", 0511)).add(directory(".", 0500));
  const auto one = unpacker({.overwrite = true, .keep = {.top = true}}, "data/t");
  ASSERT_TRUE(one->stage(more.pack()));
  ASSERT_TRUE(one->commit());
  EXPECT_EQ(missing(*one), Names());
  EXPECT_EQ(mode("t/closed"), 0511U);
  EXPECT_EQ(mode("t"), 0500U);
  const auto without = unpacker({}, "data/t");
  const Status refused = without->stage(more.pack());
  ASSERT_FALSE(refused);
}

TEST(Unpack, ADiskThatIsFullEndsItAndLeavesNothing) {
  expect_good_on_a_small_disk([](const Exports& exports, const fs::path& root) {
    {
      auto tree = exports.open_destination_tree("small");
      Unpacker unpacker(std::move(*tree), ".s.sluice-part", {});
      Content content;
      content.add_file("t/small", "fits").add_file("t/large", std::string(2U << 20, 'x'));
      const Status full = unpacker.stage(content.pack());
      if (full || full.error().code != ErrorCode::kNoSpace) return 1;
    }
    return fs::directory_iterator(root) == fs::directory_iterator() ? 0 : 2;
  });
}

// Not of bytes: there are enough of these.
TEST(Unpack, ADiskWithoutAnInodeSaysSo) {
  expect_good_on_a_small_disk([](const Exports& exports, const fs::path& root) {
    if (::mount("tmpfs", root.c_str(), "tmpfs", MS_REMOUNT, "nr_inodes=4") != 0) return 77;
    auto tree = exports.open_destination_tree("small");
    Unpacker unpacker(std::move(*tree), ".s.sluice-part", {});
    Content content;
    for (const char* name : {"a", "b", "c", "d"}) content.add_file(name, "x");
    const Status full = unpacker.stage(content.pack());
    if (full || full.error().code != ErrorCode::kNoSpace) return 1;
    return full.error().message.find("inode") != std::string::npos ? 0 : 2;
  });
}

// The nine permission bits travel, and the sticky bit of a directory; what else a directory has here stays.
TEST_P(UnpackTest, ADirectoryKeepsItsOtherBitsAndBecomesSticky) {
  for (const char* name : {"shared", "sticky"}) fs::create_directory(root_ / "data" / name);
  ASSERT_EQ(::chmod(path("data/shared").c_str(), 02770), 0);
  ASSERT_EQ(::chmod(path("data/sticky").c_str(), 01777), 0);
  Content content;
  content.add(directory("shared", 0750)).add(directory("sticky", 0755)).add(directory("spool", 07777));
  Entry odd = tree::test::file("plain", "x");
  odd.mode = 07644;
  content.add(odd, "x");
  EXPECT_EQ(unpack(content), Names());
  EXPECT_EQ(mode("spool"), 01777U) << "neither set-user-ID nor set-group-ID";
  EXPECT_EQ(mode("plain"), 0644U);
  EXPECT_EQ(mode("shared"), 02750U);
  EXPECT_EQ(mode("sticky"), 01755U);
}

// Whatever the file system makes of it, it makes of the time that was sent; and says so where that is
// another.
TEST_P(UnpackTest, TimesOfAnyYearArriveOrAreToldOf) {
  for (const int64_t year_s : {int64_t{10'413'792'000}, int64_t{13'569'465'600}, int64_t{-20'000'000'000}}) {
    write(root_ / "data/made", "");
    const timespec times[2] = {{0, UTIME_OMIT}, {.tv_sec = year_s, .tv_nsec = 500}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path("data/made").c_str(), times, 0), 0);
    const timespec made = info("made").st_mtim;
    Content content;
    content.add_file("f", "bytes").add(hard_link("h", "f")).add(directory("d", 0755));
    for (Entry& entry : content.entries) entry.mtime_ns = base::file_time_ns(year_s, 500);
    const auto one = unpacker();
    ASSERT_TRUE(one->stage(content.pack()));
    ASSERT_TRUE(one->commit());
    for (const char* name : {"f", "h", "d"}) {
      EXPECT_EQ(info(name).st_mtim.tv_sec, made.tv_sec) << name << year_s;
      EXPECT_EQ(info(name).st_mtim.tv_nsec, made.tv_nsec) << name << year_s;
    }
    EXPECT_EQ(one->missing().failed, 0U);
    const bool held = made.tv_sec == year_s;
    EXPECT_EQ(one->missing().names.size(), held ? 0U : 2U) << year_s;
    for (const catalog::FailedName& each : one->missing().names) EXPECT_EQ(each.failure, catalog::kOtherTime);
    for (const char* name : {"f", "h", "d"}) fs::remove_all(root_ / "data" / name);
  }
}

TEST(Times, AnyNumberOfNanosecondsIsATime) {
  for (const base::FileTimeNs ns :
       {base::FileTimeNs{0}, base::FileTimeNs{1}, base::FileTimeNs{-1}, base::FileTimeNs{-1'000'000'000},
        base::FileTimeNs{INT64_MIN}, base::FileTimeNs{INT64_MAX}, base::file_time_ns(INT64_MAX, 999'999'999),
        base::file_time_ns(INT64_MIN, 0)}) {
    const timespec time = timespec_of(ns);
    EXPECT_GE(time.tv_nsec, 0);
    EXPECT_LT(time.tv_nsec, 1'000'000'000);
    EXPECT_TRUE(ns_of(time) == ns);
  }
  EXPECT_EQ(clock_ns_of(timespec{.tv_sec = INT64_MAX / 2, .tv_nsec = 5}), INT64_MAX);
  EXPECT_EQ(clock_ns_of(timespec{.tv_sec = INT64_MIN, .tv_nsec = 5}), INT64_MIN);
}

}  // namespace
}  // namespace sluice::exports
