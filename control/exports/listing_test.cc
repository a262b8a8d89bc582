// What peers are told of names. docs/WIRE.md, 2.6.
// SPDX-License-Identifier: Apache-2.0
#include "control/exports/listing.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <map>

#include "control/exports/exports_fixture.h"
#include "control/names/list_check.h"
#include "dataplane/crc/adler32.h"
#include "dataplane/crc/crc.h"

namespace sluice::exports {
namespace {

class ListingTest : public ExportsTest {
 protected:
  // The whole list, as an asker would take it.
  std::vector<names::Entry> list(names::List asked) {
    asked.pages = 1'000'000;
    const auto listing = exports_.list(asked, pulse_);
    EXPECT_TRUE(listing) << listing.error().message;
    std::vector<names::Entry> all;
    if (!listing) return all;
    names::ListCheck check(asked);
    for (;;) {
      Result<names::Page> page = (*listing)->next();
      EXPECT_TRUE(page) << page.error().message;
      if (!page || page->entries.empty()) break;
      ++pages_;
      names::Word word = *page;
      EXPECT_TRUE(names::admit(&word));
      const Status fits = check.take(*page);
      EXPECT_TRUE(fits) << fits.error().message;
      all.insert(all.end(), page->entries.begin(), page->entries.end());
    }
    EXPECT_TRUE(check.end({.entries = (*listing)->entries(), .failed = (*listing)->failed()}));
    return all;
  }
  std::vector<std::string> paths(const names::List& asked) {
    std::vector<std::string> found;
    for (const names::Entry& entry : list(asked)) found.push_back(entry.path);
    return found;
  }
  Error error_of(const names::List& asked) {
    const auto listing = exports_.list(asked, pulse_);
    if (!listing) return listing.error();
    for (;;) {
      const Result<names::Page> page = (*listing)->next();
      if (!page) return page.error();
      if (page->entries.empty()) return {ErrorCode::kOk, ""};
    }
  }

  Pulse pulse_;
  int pages_ = 0;
};
using Names = std::vector<std::string>;

INSTANTIATE_TEST_SUITE_P(FileSystems, ListingTest, testing::Values("/tmp", "/dev/shm"),
                         [](const auto& chosen) { return chosen.index == 0 ? "disk" : "memory"; });

TEST_P(ListingTest, TellsWhatIsInADirectoryInOrder) {
  write(root_ / "data/b\xff", "");
  write(root_ / "data/a\nb", "");
  EXPECT_EQ(paths({.path = "data"}), (Names{"a\nb", "b\xff", "file", "readonly", "sub", "writeonly"}));
  EXPECT_EQ(paths({.path = path("data/")}), paths({.path = "data"}));
}

TEST_P(ListingTest, TellsOfEachNameWhatItIs) {
  fs::create_symlink("/etc/passwd", root_ / "data/link");
  ASSERT_EQ(::mkfifo((root_ / "data/pipe").c_str(), 0640), 0);
  ASSERT_EQ(::truncate((root_ / "data/file").c_str(), 1 << 20), 0);
  const auto all = list({.path = "data"});
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[0].type, names::Type::kFile);
  EXPECT_EQ(all[0].size_bytes, 1U << 20);
  EXPECT_LT(all[0].allocated_bytes, 1U << 20) << "it has a hole";
  EXPECT_EQ(all[0].links, 1U);
  EXPECT_EQ(all[0].uid, ::getuid());
  EXPECT_GT(all[0].mtime_ns, 1'500'000'000'000'000'000);
  EXPECT_EQ(all[1].type, names::Type::kLink);
  EXPECT_EQ(all[1].target, "/etc/passwd");
  EXPECT_EQ(all[2].type, names::Type::kFifo);
  EXPECT_EQ(all[2].mode, 0640U) << "whatever the umask: none takes these";
  EXPECT_EQ(all[3].type, names::Type::kDirectory);
  EXPECT_EQ(all[3].size_bytes, 0U);
}

TEST_P(ListingTest, TellsOfAnythingButADirectoryItself) {
  fs::create_symlink("/", root_ / "data/link");
  for (const char* name : {"data/file", "data/link"}) {
    const auto all = list({.path = name});
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].path, "");
  }
  const auto itself = list({.path = "data/sub", .itself = true});
  ASSERT_EQ(itself.size(), 1U);
  EXPECT_EQ(itself[0].type, names::Type::kDirectory);
  EXPECT_EQ(list({.path = "data", .itself = true}).size(), 1U) << "the root of an export";
  EXPECT_EQ(error_of({.path = "data/file/"}).code, ErrorCode::kSourceUnreadable);
}

TEST_P(ListingTest, GoesIntoDirectoriesWhenAsked) {
  fs::create_directories(root_ / "data/sub/deep");
  write(root_ / "data/sub/deep/x", "");
  write(root_ / "data/sub!", "");
  fs::create_symlink("..", root_ / "data/sub/up");
  EXPECT_EQ(paths({.path = "data", .recursive = true}),
            (Names{"file", "readonly", "sub", "sub/deep", "sub/deep/x", "sub/up", "sub!", "writeonly"}));
}

TEST_P(ListingTest, RightsOfAnExportInsideCount) {
  write(root_ / "data/writeonly/secret", "");
  write(root_ / "data/readonly/known", "");
  const auto all = list({.path = "data", .recursive = true});
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[2].path, "readonly/known");
  EXPECT_EQ(all[4].path, "writeonly");
  EXPECT_EQ(all[4].error_code, static_cast<uint32_t>(ErrorCode::kOutsideExports));
  EXPECT_EQ(error_of({.path = "writeonly"}).code, ErrorCode::kOutsideExports);
  EXPECT_EQ(error_of({.path = path("data/writeonly/secret"), .itself = true}).code,
            ErrorCode::kOutsideExports);
  EXPECT_EQ(error_of({.path = path("data/writeonly/*"), .glob = true}).code, ErrorCode::kOutsideExports);
}

TEST_P(ListingTest, NothingOutsideIsTold) {
  fs::create_directory_symlink(root_ / "outside", root_ / "data/out");
  for (const std::string& way :
       {path("outside"), std::string("/"), std::string("/etc"), std::string("data/../outside"),
        std::string("nothing/x"), path("data/out/secret"), path("data/out/")}) {
    const ErrorCode code = error_of({.path = way}).code;
    EXPECT_TRUE(code == ErrorCode::kOutsideExports || code == ErrorCode::kSourceUnreadable) << way;
  }
  EXPECT_EQ(error_of({.path = std::string("data\0/x", 7)}).code, ErrorCode::kOutsideExports);
  EXPECT_EQ(error_of({.path = "data/none"}).code, ErrorCode::kSourceUnreadable);
}

TEST_P(ListingTest, ThePathOfNothingTellsTheExports) {
  EXPECT_EQ(paths({}), (Names{"data", "readonly", "writeonly"}));
}

TEST_P(ListingTest, PatternsFitComponentByComponent) {
  fs::create_directories(root_ / "data/run1/x");
  fs::create_directories(root_ / "data/run2");
  for (const char* name : {"run1/a.h5", "run1/b.txt", "run2/c.h5", "run1/x/d.h5", "e.h5"})
    write(root_ / "data" / name, "");
  EXPECT_EQ(paths({.path = "data/*.h5", .glob = true}), Names{"e.h5"});
  EXPECT_EQ(paths({.path = "data/run*/*.h5", .glob = true}), (Names{"run1/a.h5", "run2/c.h5"}));
  EXPECT_EQ(paths({.path = "data/run[1]", .glob = true}), Names{"run1"})
      << "the directory, not what is in it";
  EXPECT_EQ(paths({.path = "data/run[1]", .recursive = true, .glob = true}),
            (Names{"run1", "run1/a.h5", "run1/b.txt", "run1/x", "run1/x/d.h5"}));
  EXPECT_EQ(error_of({.path = "data/*.none", .glob = true}).code, ErrorCode::kSourceUnreadable);
  EXPECT_EQ(error_of({.path = "*/x", .glob = true}).code, ErrorCode::kUsage);
}

TEST_P(ListingTest, UnfinishedFilesAreToldWhenAsked) {
  write(root_ / "data/sub/.x.sluice-part", "");
  write(root_ / "data/sub/.y", "");
  EXPECT_EQ(paths({.path = "data/sub"}), Names{".y"});
  EXPECT_EQ(paths({.path = "data/sub", .unfinished = true}), (Names{".x.sluice-part", ".y"}));
  EXPECT_EQ(error_of({.path = "data/sub/.x.sluice-part"}).code, ErrorCode::kSourceUnreadable);
  EXPECT_EQ(list({.path = "data/sub/.x.sluice-part", .unfinished = true}).size(), 1U);
}

TEST_P(ListingTest, FilesThatAClientOfNfsStillHasOpenAreToldWhenAsked) {
  const std::string open_elsewhere = ".nfs000000000000a0c600000012";
  write(root_ / "data/sub" / open_elsewhere, "");
  write(root_ / "data/sub/.nfs", "");
  write(root_ / "data/sub/.nfs000000000000a0c60000001g", "");
  EXPECT_EQ(paths({.path = "data/sub"}), (Names{".nfs", ".nfs000000000000a0c60000001g"}));
  EXPECT_EQ(paths({.path = "data/sub", .unfinished = true}).size(), 3U);
}

TEST_P(ListingTest, ManyNamesComeInManyPages) {
  constexpr int kNames = 5000;
  for (int i = 0; i < kNames; ++i) write(root_ / "data/sub" / ("name" + std::to_string(i)), "");
  EXPECT_EQ(list({.path = "data/sub"}).size(), size_t{kNames});
  EXPECT_GE(pages_, kNames / static_cast<int>(names::kEntriesPerPage));
}

TEST_P(ListingTest, DirectoriesThatLieTooDeepAreNamedAndNotGoneInto) {
  std::string deep = "data/sub";
  for (int i = 0; i < 200; ++i) deep += "/d";
  fs::create_directories(root_ / deep);
  const auto all = list({.path = "data/sub", .recursive = true});
  ASSERT_EQ(all.size(), Walk::kDepthMax);
  EXPECT_NE(all.back().error.find("too deep"), std::string::npos) << all.back().error;
  EXPECT_EQ(list({.path = deep.substr(0, 9 + 2 * 120), .recursive = true}).size(), 80U) << "by its own path";
}

TEST_P(ListingTest, ABindMountOfADirectoryAboveIsNoLoop) {
  const std::string loop = path("data/sub/loop");
  fs::create_directory(loop);
  if (::mount(path("data").c_str(), loop.c_str(), nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP() << "cannot mount";
  const auto all = list({.path = "data", .recursive = true});
  EXPECT_EQ(::umount2(loop.c_str(), MNT_DETACH), 0);
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[3].path, "sub/loop");
  EXPECT_NE(all[3].error.find("bind mount"), std::string::npos) << all[3].error;
}

TEST_P(ListingTest, AnOperatorSeesAllOfHisExports) {
  write(root_ / "data/writeonly/mine", "");
  for (const std::string& path : {std::string("writeonly"), path("data/writeonly"), std::string("data")}) {
    const auto listing = exports_.list({.path = path, .recursive = true}, pulse_, Asker::kOperator);
    ASSERT_TRUE(listing) << path;
    const auto page = (*listing)->next();
    ASSERT_TRUE(page);
    EXPECT_TRUE(page->entries.back().path.ends_with("mine")) << path;
    EXPECT_EQ((*listing)->failed(), 0U);
  }
  EXPECT_FALSE(exports_.list({.path = path("outside")}, pulse_, Asker::kOperator));
}

TEST_P(ListingTest, StopsWhenNobodyListens) {
  const auto listing = exports_.list({.path = "data"}, pulse_);
  ASSERT_TRUE(listing);
  pulse_.stop = true;
  const auto page = (*listing)->next();
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, ErrorCode::kCancelled);
}

TEST_P(ListingTest, TellsWhatFilesHoldToThoseThatMayReadThem) {
  write(root_ / "data/sub/large", std::string(9'000'000, 'x'));
  write(root_ / "data/sub/none", "");
  const auto digest_of = [](std::string_view text) {
    return crc::compute(wire::CrcKind::kCrc64Ecma, 0, text.data(), text.size());
  };
  const auto found = list({.path = "data", .recursive = true, .digests = true});
  std::map<std::string, std::optional<uint64_t>> digests;
  for (const names::Entry& entry : found) digests[entry.path] = entry.digest;
  EXPECT_EQ(digests.at("file"), digest_of("hello"));
  EXPECT_EQ(digests.at("sub/large"), digest_of(std::string(9'000'000, 'x')));
  EXPECT_EQ(digests.at("sub/none"), digest_of(""));
  EXPECT_FALSE(digests.at("sub"));
  EXPECT_EQ(list({.path = "data/file", .digests = true}).at(0).digest, digest_of("hello"));
  EXPECT_FALSE(list({.path = "data/file"}).at(0).digest);
  // Of the kind that is asked for.
  std::filesystem::resize_file(root_ / "data/sub/large", 100'000'000);  // the rest is a hole
  const std::string large = std::string(9'000'000, 'x') + std::string(91'000'000, '\0');
  for (const names::DigestKind kind : {names::DigestKind::kAdler32, names::DigestKind::kCrc32c}) {
    const names::Entry entry = list({.path = "data/sub/large", .digests = true, .digest_kind = kind}).at(0);
    EXPECT_EQ(entry.digest_kind, kind);
    EXPECT_EQ(entry.digest, kind == names::DigestKind::kAdler32
                                ? adler32::compute(adler32::kOfNothing, large.data(), large.size())
                                : crc::compute(wire::CrcKind::kCrc32c, 0, large.data(), large.size()));
  }
  const auto none =
      list({.path = "data/sub/none", .digests = true, .digest_kind = names::DigestKind::kAdler32});
  EXPECT_EQ(none.at(0).digest, 1U);
  // Whoever may only manage an export is told its names, and not what they hold.
  auto managed = Exports::open({{.name = "data", .path = root_ / "data", .read = false, .manage = true}});
  ASSERT_TRUE(managed);
  EXPECT_TRUE(managed->list({.path = "data"}, pulse_));
  const auto refused = managed->list({.path = "data", .digests = true}, pulse_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOutsideExports);
}

}  // namespace
}  // namespace sluice::exports
