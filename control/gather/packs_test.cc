// SPDX-License-Identifier: Apache-2.0
#include "control/gather/packs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

#include "control/exports/times.h"
#include "control/gather/sources.h"
#include "control/tree/pack.h"

namespace sluice::gather {
namespace {

namespace fs = std::filesystem;
using catalog::Entry;
using catalog::EntryKind;
using catalog::Failure;
using catalog::FileKind;

class PacksTest : public testing::Test {
 protected:
  PacksTest() {
    char name[] = "/tmp/sluice-packs-XXXXXX";
    root_ = ::mkdtemp(name);
    for (const char* directory : {"from/t/sub", "to"}) fs::create_directories(root_ / directory);
    exports_ = std::move(
        *exports::Exports::open({{"from", root_ / "from", true, false}, {"to", root_ / "to", true, true}}));
  }
  ~PacksTest() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(root_ / name) << text; }
  std::string read(const std::string& name) const {
    std::ifstream in(root_ / name);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  std::vector<catalog::File> sources(const std::vector<std::string>& paths) const {
    Result<OpenSources> opened = open_sources(exports_, paths, {});
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? opened->files : std::vector<catalog::File>();
  }
  std::vector<Entry> entries_of(const PackMemory& memory) const {
    Result<tree::Index> index = tree::read_index(memory.bytes());
    EXPECT_TRUE(index) << index.error().message;
    return index ? index->entries : std::vector<Entry>();
  }
  Status unpack(const catalog::File& pack, const PackMemory& memory) const {
    catalog::File at_destination = pack;
    at_destination.path = "to";
    auto unpacker = stage_pack(exports_, at_destination, memory,
                               staging_name("0123456789abcdef", ObjectId(7)), nullptr, nullptr);
    if (!unpacker) return unpacker.error();
    return (*unpacker)->commit();
  }
  static ErrorCode code(const Result<std::shared_ptr<PackMemory>>& memory) {
    return memory ? ErrorCode::kOk : memory.error().code;
  }

  fs::path root_;
  exports::Exports exports_;
};

TEST(PackThreads, AreTwoForEachCoreWithinLimits) {
  EXPECT_EQ(pack_threads(0), 4U) << "it is not known";
  EXPECT_EQ(pack_threads(1), 4U);
  EXPECT_EQ(pack_threads(4), 8U);
  EXPECT_EQ(pack_threads(256), 16U);
}

TEST_F(PacksTest, ATreeGoesThroughItsPacksToADestination) {
  write("from/t/a", "bytes of a");
  write("from/t/sub/b", "");
  fs::create_symlink("a", root_ / "from/t/l");
  fs::create_hard_link(root_ / "from/t/a", root_ / "from/t/sub/h");
  const std::vector<catalog::File> files = sources({"from/t"});
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].kind, FileKind::kPack);
  EXPECT_EQ(files[0].pack.members, 3U);
  EXPECT_EQ(files[1].kind, FileKind::kLastPack);
  EXPECT_EQ(files[1].pack.members, 3U);
  for (const catalog::File& pack : files) {
    const auto memory = fill_pack(exports_, pack);
    ASSERT_TRUE(memory) << memory.error().message;
    EXPECT_EQ((*memory)->bytes().size(), pack.size_bytes);
    for (const Entry& entry : entries_of(**memory)) EXPECT_EQ(entry.failure, Failure::kNone) << entry.path;
    const Status status = unpack(pack, **memory);
    ASSERT_TRUE(status) << status.error().message;
  }
  EXPECT_EQ(read("to/t/a"), "bytes of a");
  EXPECT_TRUE(fs::is_regular_file(root_ / "to/t/sub/b"));
  EXPECT_EQ(fs::read_symlink(root_ / "to/t/l"), "a");
  EXPECT_TRUE(fs::equivalent(root_ / "to/t/a", root_ / "to/t/sub/h"));
  EXPECT_EQ(fs::last_write_time(root_ / "to/t"), fs::last_write_time(root_ / "from/t"));
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "to"), fs::directory_iterator()), 1);
}

TEST_F(PacksTest, NamesOfADirectorysContentsAreFoundInIt) {
  write("from/t/t", "same name as its tree");
  write("from/t/sub/b", "b");
  for (const char* path : {"from/t/", "from/t/.", "from/t"}) {
    const std::vector<catalog::File> files = sources({path});
    const auto memory = fill_pack(exports_, files.front());
    ASSERT_TRUE(memory) << memory.error().message;
    for (const Entry& entry : entries_of(**memory)) EXPECT_EQ(entry.failure, Failure::kNone) << entry.path;
  }
}

// Between listing and filling anything may happen to a file. Those beside it do not suffer.
TEST_F(PacksTest, WhatIsNotAsItWasListedIsAFailureAndTheOthersAreNot) {
  const std::vector<std::pair<std::function<void(const fs::path&)>, Failure>> changes = {
      {[](const fs::path& file) { fs::remove(file); }, Failure::kVanished},
      {[](const fs::path& file) {
         fs::last_write_time(file, fs::last_write_time(file) - std::chrono::hours(1));
       },
       Failure::kChanged},
      {[](const fs::path& file) { std::ofstream(file, std::ios::app) << "more"; }, Failure::kChanged},
      {[](const fs::path& file) { fs::resize_file(file, 1); }, Failure::kChanged},
      {[](const fs::path& file) {
         fs::remove(file);
         fs::create_symlink("a", file);
       },
       Failure::kVanished},
      {[](const fs::path& file) {
         fs::remove(file);
         fs::create_directory(file);
       },
       Failure::kChanged},
      {[](const fs::path& file) {
         fs::remove(file);
         ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
       },
       Failure::kChanged},
      {[](const fs::path& file) {
         fs::rename(file.parent_path(), file.parent_path().string() + "-moved");
         fs::create_directory_symlink(file.parent_path().string() + "-moved", file.parent_path());
       },
       Failure::kVanished},
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    fs::remove_all(root_ / "from/t");
    fs::create_directories(root_ / "from/t/sub");
    write("from/t/a", "first");
    write("from/t/sub/b", "victim");
    write("from/t/z", "last");
    const std::vector<catalog::File> files = sources({"from/t"});
    changes[i].first(root_ / "from/t/sub/b");
    const auto memory = fill_pack(exports_, files.front());
    ASSERT_TRUE(memory) << memory.error().message;
    fs::remove_all(root_ / "to/t");
    for (const Entry& entry : entries_of(**memory))
      EXPECT_EQ(entry.failure, entry.path == "t/sub/b" ? changes[i].second : Failure::kNone) << entry.path;
    ASSERT_TRUE(unpack(files.front(), **memory));
    EXPECT_EQ(read("to/t/a"), "first");
    EXPECT_EQ(read("to/t/z"), "last");
    EXPECT_FALSE(fs::exists(root_ / "to/t/sub/b"));
  }
}

TEST_F(PacksTest, WithoutItsTreeOrItsListAPackIsNotFilled) {
  write("from/t/a", "a");
  const catalog::File pack = sources({"from/t"}).front();
  catalog::File other = pack;
  other.pack.list = nullptr;
  EXPECT_EQ(code(fill_pack(exports_, other)), ErrorCode::kInternal);
  other = pack;
  ++other.size_bytes;
  EXPECT_EQ(code(fill_pack(exports_, other)), ErrorCode::kStorage);
  other = pack;
  other.pack.list = std::make_shared<const std::string>("\xff");
  EXPECT_EQ(code(fill_pack(exports_, other)), ErrorCode::kStorage);
  fs::rename(root_ / "from/t", root_ / "from/moved");
  EXPECT_EQ(code(fill_pack(exports_, pack)), ErrorCode::kSourceUnreadable);
  write("from/t", "a file");
  EXPECT_EQ(code(fill_pack(exports_, pack)), ErrorCode::kSourceUnreadable);
}

TEST_F(PacksTest, MemoryOfAFormerControlIsTakenWithItsBytes) {
  const auto made = PackMemory::make(5000);
  ASSERT_TRUE(made);
  (*made)->bytes()[4999] = 77;
  const auto adopted = PackMemory::adopt(UniqueFd(::dup((*made)->fd())), 5000);
  ASSERT_TRUE(adopted) << adopted.error().message;
  EXPECT_EQ((*adopted)->bytes()[4999], 77);
  EXPECT_NE(::ftruncate((*adopted)->fd(), 4999), 0) << "it never becomes shorter than it is mapped";
}

TEST_F(PacksTest, WhatIsNoPacksMemoryIsNotTaken) {
  const auto adopt = [](UniqueFd fd, uint64_t bytes) {
    return code(PackMemory::adopt(std::move(fd), bytes));
  };
  const auto made = PackMemory::make(5000);
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{4999}, uint64_t{5001}, UINT64_MAX})
    EXPECT_EQ(adopt(UniqueFd(::dup((*made)->fd())), bytes), ErrorCode::kResources) << bytes;
  EXPECT_EQ(adopt(UniqueFd(), 5000), ErrorCode::kResources);
  write("from/file", std::string(5000, 'x'));
  EXPECT_EQ(adopt(UniqueFd(::open((root_ / "from/file").c_str(), O_RDWR | O_CLOEXEC)), 5000),
            ErrorCode::kResources);
  EXPECT_EQ(adopt(UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)), 0), ErrorCode::kResources);
  UniqueFd unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 5000), 0);
  EXPECT_EQ(adopt(std::move(unsealed), 5000), ErrorCode::kResources) << "it might shrink under the mapping";
}

TEST_F(PacksTest, NothingOfADamagedPackIsStored) {
  write("from/t/a", "a");
  const catalog::File pack = sources({"from/t"}).front();
  const auto memory = fill_pack(exports_, pack);
  (*memory)->bytes()[0] ^= 1;
  EXPECT_EQ(unpack(pack, **memory).error().code, ErrorCode::kIncompatible);
  EXPECT_TRUE(fs::is_empty(root_ / "to"));
}

TEST_F(PacksTest, StagingHasANameOfItsOwnThatIsKeptForFilesUnderWay) {
  const std::string id = "0123456789abcdef0123456789abcdef";
  EXPECT_EQ(staging_name(id, ObjectId(7)), ".sluice-01234567-7.sluice-part");
  EXPECT_NE(staging_name(id, ObjectId(7)), staging_name(id, ObjectId(8)));
}

// ---- what is sent of a tree --------------------------------------------------------------------

TEST_F(PacksTest, LargeFilesAreObjectsOfTheirOwnBetweenThePacksAndTheLast) {
  write("from/t/large", std::string((1U << 20) + 1, 'x'));
  write("from/t/small", "x");
  write("from/single", "x");
  const std::vector<catalog::File> files = sources({"from/single", "from/t"});
  ASSERT_EQ(files.size(), 4U);
  EXPECT_EQ(files[0].kind, FileKind::kPack);
  EXPECT_EQ(files[1].name, "single");
  EXPECT_EQ(files[2].name, "t/large");
  EXPECT_NE(files[2].mtime_ns, 0);
  EXPECT_NE(files[2].identity.inode, 0U);
  EXPECT_EQ(files[3].kind, FileKind::kLastPack);
}

TEST_F(PacksTest, WhatWouldBeOneNameAtTheDestinationIsRefused) {
  fs::create_directories(root_ / "from/sub/t");
  const auto refusal = [this](const std::vector<std::string>& paths) {
    const Result<OpenSources> opened = open_sources(exports_, paths, {});
    return opened ? ErrorCode::kOk : opened.error().code;
  };
  EXPECT_EQ(refusal({"from/t", "from/sub/t"}), ErrorCode::kUsage);
  EXPECT_EQ(refusal({"from/t", "from/sub"}), ErrorCode::kOk);
  fs::remove(root_ / "from/sub/t");
  write("from/sub/t", "a file");
  EXPECT_EQ(refusal({"from/t", "from/sub/t"}), ErrorCode::kUsage);
  EXPECT_EQ(refusal({"from/t/sub/"}), ErrorCode::kUsage) << "it holds nothing";
  EXPECT_EQ(refusal({"from/t/sub"}), ErrorCode::kOk) << "a directory is something";
}

// They say that they are empty, and are not: nothing of that name may arrive.
TEST_F(PacksTest, AFileThatIsMadeWhileItIsReadIsNamedAndNotSentEmpty) {
  auto proc = exports::Exports::open({{"proc", "/proc/sys/kernel/random", true, false}});
  ASSERT_TRUE(proc);
  Result<OpenSources> opened = open_sources(*proc, {"proc/"}, {});
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_EQ(opened->files.size(), 1U);
  const auto memory = fill_pack(*proc, opened->files.front());
  ASSERT_TRUE(memory) << memory.error().message;
  for (const Entry& entry : entries_of(**memory)) {
    EXPECT_TRUE(entry.kind != EntryKind::kFile || entry.failure == Failure::kTellsNoSize) << entry.path;
  }
}

}  // namespace
}  // namespace sluice::gather
