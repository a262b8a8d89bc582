// SPDX-License-Identifier: Apache-2.0
#include "storage/memory_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "dataplane/base/unique_fd.h"

namespace sluice::storage {
namespace {

UniqueFd memory_file(const std::string& content) {
  UniqueFd fd(memfd_create("memory_file_test", MFD_CLOEXEC));  // as good as a file of a tmpfs
  EXPECT_EQ(pwrite(fd.get(), content.data(), content.size(), 0), static_cast<ssize_t>(content.size()));
  return fd;
}

std::string pages(size_t count) {
  std::string s(count * 4096, '\0');
  for (size_t i = 0; i < s.size(); ++i) s[i] = static_cast<char>('a' + i / 4096 % 26);
  return s;
}

TEST(MemoryFile, IsToldFromOthers) {
  EXPECT_TRUE(is_memory_file(memory_file("x").get()));
  const UniqueFd other(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(is_memory_file(other.get()));
  const UniqueFd shared(open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  EXPECT_TRUE(!shared || is_memory_file(shared.get()));
  const UniqueFd disk(open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  struct statfs info {};
  EXPECT_TRUE(!disk || fstatfs(disk.get(), &info) != 0 || info.f_type == TMPFS_MAGIC ||
              !is_memory_file(disk.get()));
}

TEST(Mapping, ShowsTheFile) {
  const std::string content = pages(3) + "end";
  const UniqueFd fd = memory_file(content);
  const auto mapping = Mapping::of_source(fd.get(), content.size());
  ASSERT_NE(mapping, nullptr);
  EXPECT_EQ(mapping->populate(4096, content.size() - 4096), 0);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(mapping->data()), content.size()), content);
  mapping->forget(0, content.size());
  EXPECT_EQ(mapping->data()[4096], 'b') << "forgotten bytes are still there";
  EXPECT_FALSE(mapping->damaged());
}

TEST(Mapping, IsNotMadeOfWhatItWouldFill) {
  const UniqueFd fd = memory_file("");
  ASSERT_EQ(ftruncate(fd.get(), 1 << 20), 0);
  EXPECT_EQ(Mapping::of_source(fd.get(), 1 << 20), nullptr) << "holes";
  const UniqueFd small = memory_file("small");
  EXPECT_EQ(Mapping::of_source(small.get(), 4097), nullptr) << "shorter than asked for";
  EXPECT_EQ(Mapping::of_source(small.get(), 0), nullptr);
}

TEST(Mapping, FileCutOffMeanwhileIsDamageNotDeath) {
  const std::string content = pages(4);
  const UniqueFd fd = memory_file(content);
  const auto other = Mapping::of_source(fd.get(), 4096);
  const auto mapping = Mapping::of_source(fd.get(), content.size());
  ASSERT_NE(mapping, nullptr);
  ASSERT_EQ(ftruncate(fd.get(), 4096), 0);
  EXPECT_EQ(mapping->populate(8192, 4096), ENODATA);
  EXPECT_FALSE(mapping->damaged());
  EXPECT_EQ(*static_cast<volatile uint8_t*>(mapping->data() + 8192), 0);
  EXPECT_TRUE(mapping->damaged());
  EXPECT_EQ(*static_cast<volatile uint8_t*>(mapping->data()), 'a') << "what is left of it";
  EXPECT_FALSE(other->damaged());
}

TEST(MappingDeathTest, FaultsOfOthersStillEndTheProcess) {
  const UniqueFd fd = memory_file(pages(1));
  const auto mapping = Mapping::of_source(fd.get(), 4096);  // installs the handler
  const UniqueFd empty = memory_file("");
  auto* const at = static_cast<volatile uint8_t*>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, empty.get(), 0));
  EXPECT_EXIT((void)*at, testing::KilledBySignal(SIGBUS), "");
}

uint64_t allotted(int fd) {
  struct stat info {};
  EXPECT_EQ(fstat(fd, &info), 0);
  return static_cast<uint64_t>(info.st_blocks) * 512;
}

TEST(Destination, TakesWhatIsWrittenWhereItLies) {
  constexpr uint64_t kBytes = 2 * Mapping::kBlockBytes + 12345;
  const UniqueFd fd = memory_file("");
  EXPECT_EQ(Mapping::of_destination(fd.get(), kBytes), nullptr) << "shorter than asked for";
  ASSERT_EQ(ftruncate(fd.get(), kBytes), 0);
  const auto mapping = Mapping::of_destination(fd.get(), kBytes);
  ASSERT_NE(mapping, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(mapping->data()) % Mapping::kBlockBytes, 0U);
  const uint64_t offset = kBytes - 70000;  // over the last block's edge, to the end
  ASSERT_EQ(mapping->populate(offset, 70000), 0);
  EXPECT_GE(allotted(fd.get()), 70000U);
  std::memset(mapping->data() + offset, 'x', 70000);
  mapping->forget(offset, 70000);
  std::string got(70002, '?');
  EXPECT_EQ(pread(fd.get(), got.data(), got.size(), static_cast<off_t>(offset) - 1), 70001);
  EXPECT_EQ(got, std::string(1, '\0') + std::string(70000, 'x') + "?");
  EXPECT_FALSE(mapping->damaged());
}

// As the kernel tells it of the mapping that begins at `data`.
std::string smaps_of(const uint8_t* data, const std::string& key) {
  char head[32];
  std::snprintf(head, sizeof head, "%lx-", reinterpret_cast<unsigned long>(data));
  std::ifstream smaps("/proc/self/smaps");
  std::string line;
  while (std::getline(smaps, line) && line.rfind(head, 0) != 0) {
  }
  while (std::getline(smaps, line) && line.rfind(key, 0) != 0) {
  }
  return line.substr(std::min(line.size(), key.size()));
}

TEST(Destination, IsAllottedInBlocks) {
  const UniqueFd fd = memory_file("");
  ASSERT_EQ(ftruncate(fd.get(), 2 * Mapping::kBlockBytes), 0);
  const auto mapping = Mapping::of_destination(fd.get(), 2 * Mapping::kBlockBytes);
  ASSERT_NE(mapping, nullptr);
  // Has this kernel (6.1 or later, tmpfs not forbidden to) a huge page at all? Asked for as a file's owner
  // would.
  mapping->data()[Mapping::kBlockBytes] = 1;
  if (madvise(mapping->data() + Mapping::kBlockBytes, Mapping::kBlockBytes, MADV_COLLAPSE) != 0) {
    GTEST_SKIP() << "no huge pages for a tmpfs here: " << std::strerror(errno);
  }
  ASSERT_EQ(mapping->populate(0, 4096), 0);
  EXPECT_EQ(allotted(fd.get()), 2 * Mapping::kBlockBytes);
  EXPECT_NE(smaps_of(mapping->data(), "ShmemPmdMapped:").find("4096 kB"), std::string::npos);
}

TEST(Destination, WhatIsThereStaysWhenTheRestOfItsBlockIsAllotted) {
  const std::string content = pages(Mapping::kBlockBytes / 4096);
  const UniqueFd fd = memory_file(content.substr(0, Mapping::kBlockBytes / 2));
  ASSERT_EQ(ftruncate(fd.get(), Mapping::kBlockBytes), 0);
  const auto mapping = Mapping::of_destination(fd.get(), Mapping::kBlockBytes);
  ASSERT_NE(mapping, nullptr);
  ASSERT_EQ(mapping->populate(Mapping::kBlockBytes / 2, Mapping::kBlockBytes / 2), 0);
  EXPECT_EQ(std::memcmp(mapping->data(), content.data(), Mapping::kBlockBytes / 2), 0);
}

TEST(Destination, CutOffMeanwhileIsAnErrorOrDamage) {
  const UniqueFd fd = memory_file(pages(4));
  const auto mapping = Mapping::of_destination(fd.get(), 16384);
  ASSERT_NE(mapping, nullptr);
  ASSERT_EQ(mapping->populate(0, 8192), 0);
  ASSERT_EQ(ftruncate(fd.get(), 4096), 0);
  EXPECT_EQ(mapping->populate(8192, 8192), ENODATA);
  EXPECT_FALSE(mapping->damaged());
  *static_cast<volatile uint8_t*>(mapping->data() + 4096) = 1;
  EXPECT_TRUE(mapping->damaged());
}

TEST(Destination, IsNotMadeOfAFileThatCannotBeRead) {
  const UniqueFd fd = memory_file(pages(1));
  const UniqueFd only_written(open(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), O_WRONLY));
  ASSERT_TRUE(only_written);
  EXPECT_EQ(Mapping::of_destination(only_written.get(), 4096), nullptr);
}

}  // namespace
}  // namespace sluice::storage
