// In which order a tree's packs and large files travel.
// SPDX-License-Identifier: Apache-2.0
#include "control/gather/sources.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace sluice::gather {
namespace {

namespace fs = std::filesystem;

// P: a pack, L: a large file.
std::string letters(const std::vector<catalog::File>& files) {
  std::string letters;
  for (const catalog::File& file : files) letters += file.packed() ? 'P' : 'L';
  return letters;
}

class Parts final : public SourceSink {
 public:
  Status go_on() override { return {}; }
  Status take(OpenSources part) override {
    EXPECT_EQ(part.files.size(), part.open.size());
    std::move(part.files.begin(), part.files.end(), std::back_inserter(files));
    return {};
  }
  std::vector<catalog::File> files;
};

class SourcesTest : public testing::Test {
 protected:
  SourcesTest() {
    char name[] = "/tmp/sluice-sources-XXXXXX";
    root_ = ::mkdtemp(name);
    exports_.emplace(std::move(*exports::Exports::open({{"from", root_, true, false}})));
  }
  ~SourcesTest() override { fs::remove_all(root_); }

  // Of nothing but a length; three of 1 MiB fill a pack, and longer ones are large.
  void make(const std::string& directory, int files, uint64_t bytes) const {
    fs::create_directories(root_ / directory);
    for (int i = 0; i < files; ++i) {
      const fs::path path = root_ / directory / ("f" + std::to_string(i));
      std::ofstream{path};
      fs::resize_file(path, bytes);
    }
  }
  Result<OpenSources> open(SourceSink* sink) { return open_sources(*exports_, {"from/t"}, {}, sink); }

  static constexpr uint64_t kMiB = 1 << 20;
  fs::path root_;
  std::optional<exports::Exports> exports_;
};

TEST_F(SourcesTest, LargeFilesAreEvenlyAmongThePacks) {
  make("t", 3, 2 * kMiB);
  make("t/beside", 36, kMiB);
  const Result<OpenSources> all = open(nullptr);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(letters(all->files), "PPPLPPPLPPPLPPPP");  // the last one of directories
}

TEST_F(SourcesTest, WhereThereAreNoPacksLargeFilesComeAlone) {
  make("t", 3, 2 * kMiB);
  const Result<OpenSources> all = open(nullptr);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(letters(all->files), "LLLP");
}

// Sixteen objects are open at a time: of many large files found first packs would have to wait for each.
TEST_F(SourcesTest, WhileMoreIsLookedForFewLargeFilesGoBeforeThePacks) {
  make("t", 5, 2 * kMiB);
  make("t/beside", 60, kMiB);
  Parts parts;
  const Result<OpenSources> rest = open(&parts);
  ASSERT_TRUE(rest) << rest.error().message;
  std::move(rest->files.begin(), rest->files.end(), std::back_inserter(parts.files));
  const std::string order = letters(parts.files);
  EXPECT_EQ(std::count(order.begin(), order.end(), 'L'), 5) << "all of them come";
  for (size_t end = 1; end <= order.size() - 4; ++end) {
    const auto large = std::count(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(end), 'L');
    EXPECT_LE(large, static_cast<std::ptrdiff_t>(end / 9 + 1)) << order;
  }
}

// A directory of nothing but large files must not wait for its end.
TEST_F(SourcesTest, ManyLargeFilesComeWhileMoreIsLookedFor) {
  make("t", 200, 2 * kMiB);
  Parts parts;
  const Result<OpenSources> rest = open(&parts);
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_GE(parts.files.size(), 64U);
}

// Before a peer is called, and whatever the file holds: it says a size, and has not a byte.
TEST(Sources, MoreBytesThanASessionTakesAreRefusedByName) {
  char name[] = "/dev/shm/sluice-sources-XXXXXX";
  const fs::path root = ::mkdtemp(name);
  const auto exports = exports::Exports::open({{"from", root, true, false}});
  ASSERT_TRUE(exports);
  fs::create_directories(root / "t");
  for (const char* each : {"t/one", "t/two"}) {
    std::ofstream{root / each};
    fs::resize_file(root / each, 200ULL << 40);
  }
  const auto code = [&](const std::vector<std::string>& paths) {
    const Result<OpenSources> opened = open_sources(*exports, paths, {});
    if (opened) return ErrorCode::kOk;
    EXPECT_NE(opened.error().message.find("256 TiB"), std::string::npos) << opened.error().message;
    return opened.error().code;
  };
  EXPECT_EQ(code({"from/t/one"}), ErrorCode::kOk);
  EXPECT_EQ(code({"from/t"}), ErrorCode::kResources) << "both";
  EXPECT_EQ(code({"from/t/one", "from/t/two"}), ErrorCode::kResources);
  EXPECT_EQ(code({"memory:257TiB"}), ErrorCode::kResources);
  fs::resize_file(root / "t/one", 1ULL << 60);
  EXPECT_EQ(code({"from/t/one"}), ErrorCode::kResources);
  fs::remove_all(root);
}

// A daemon may have few files open: those that are not kept are opened again when their turn comes, if they
// are what they were.
TEST_F(SourcesTest, OnlySoManyFilesStayOpenAndTheOthersAreFoundAgain) {
  make("t", 9, 2 * kMiB);
  const Result<OpenSources> all = open_sources(*exports_, {"from/t"}, {}, nullptr, {}, 4);
  ASSERT_TRUE(all) << all.error().message;
  const auto count = [](const auto& open) {
    return std::ranges::count_if(open, [](const auto& one) { return one != nullptr; });
  };
  EXPECT_EQ(count(all->open), 4);
  EXPECT_EQ(letters(all->files), "LLLLLLLLLP");
  ASSERT_FALSE(all->open[8]);
  const auto again = reopen_source(*exports_, all->files[8]);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ((*again)->size, 2 * kMiB);
  fs::remove(root_ / all->files[8].path.substr(5));  // behind "from/"
  EXPECT_FALSE(reopen_source(*exports_, all->files[8]));
  fs::resize_file(root_ / all->files[7].path.substr(5), kMiB);
  const auto changed = reopen_source(*exports_, all->files[7]);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::kIntegrity);
  const ReopenedSources reopened = reopen_sources(*exports_, *all, 6);
  EXPECT_EQ(count(reopened.open), 6);
  ASSERT_EQ(reopened.failed.size(), 2U) << "also of those that do not stay open";
  EXPECT_EQ(reopened.failed[0].first, ObjectId(7));
  EXPECT_EQ(reopened.failed[1].first, ObjectId(8));
}

}  // namespace
}  // namespace sluice::gather
