// SPDX-License-Identifier: Apache-2.0
#include "storage/memory_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "dataplane/core/unique_fd.h"

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
}

TEST(Mapping, ShowsTheFile) {
  const std::string content = pages(3) + "end";
  const UniqueFd fd = memory_file(content);
  const auto mapping = Mapping::of(fd.get(), content.size());
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
  EXPECT_EQ(Mapping::of(fd.get(), 1 << 20), nullptr) << "holes";
  const UniqueFd small = memory_file("small");
  EXPECT_EQ(Mapping::of(small.get(), 4097), nullptr) << "shorter than asked for";
  EXPECT_EQ(Mapping::of(small.get(), 0), nullptr);
}

TEST(Mapping, FileCutOffMeanwhileIsDamageNotDeath) {
  const std::string content = pages(4);
  const UniqueFd fd = memory_file(content);
  const auto other = Mapping::of(fd.get(), 4096);
  const auto mapping = Mapping::of(fd.get(), content.size());
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
  const auto mapping = Mapping::of(fd.get(), 4096);  // installs the handler
  const UniqueFd empty = memory_file("");
  auto* const at = static_cast<volatile uint8_t*>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, empty.get(), 0));
  EXPECT_EXIT((void)*at, testing::KilledBySignal(SIGBUS), "");
}

TEST(GatheredWrites, WritesWhatFollowsInOneGo) {
  const UniqueFd fd = memory_file(std::string(32, '.'));
  const std::string a = "aaa";
  const std::string b = "bb";
  const auto bytes = [](const std::string& s) { return reinterpret_cast<const uint8_t*>(s.data()); };
  GatheredWrites writes;
  EXPECT_TRUE(writes.empty());
  EXPECT_EQ(writes.flush(), 0);
  EXPECT_TRUE(writes.add(fd.get(), 4, bytes(a), 3));
  EXPECT_TRUE(writes.add(fd.get(), 7, bytes(b), 2));
  EXPECT_FALSE(writes.add(fd.get(), 10, bytes(b), 2)) << "does not follow";
  EXPECT_FALSE(writes.add(fd.get() + 1, 9, bytes(b), 2)) << "another file";
  EXPECT_EQ(writes.flush(), 0);
  EXPECT_TRUE(writes.empty());
  EXPECT_TRUE(writes.add(fd.get(), 10, bytes(b), 2));
  EXPECT_EQ(writes.flush(), 0);
  char got[12];
  ASSERT_EQ(pread(fd.get(), got, sizeof got, 0), 12);
  EXPECT_EQ(std::string(got, sizeof got), "....aaabb.bb");
}

TEST(GatheredWrites, SaysWhatFailed) {
  const UniqueFd reader(open("/dev/null", O_RDONLY | O_CLOEXEC));
  GatheredWrites writes;
  const uint8_t byte = 1;
  EXPECT_TRUE(writes.add(reader.get(), 0, &byte, 1));
  EXPECT_EQ(writes.flush(), EBADF);
  EXPECT_TRUE(writes.empty()) << "a failed burst is not written again";
}

TEST(GatheredWrites, IsFullAtSomePoint) {
  const UniqueFd fd = memory_file("");
  const uint8_t byte = 'x';
  GatheredWrites writes;
  uint32_t n = 0;
  while (writes.add(fd.get(), n, &byte, 1)) ++n;
  EXPECT_EQ(n, GatheredWrites::kPartsMax);
  EXPECT_EQ(writes.flush(), 0);
  EXPECT_EQ(lseek(fd.get(), 0, SEEK_END), n);
}

}  // namespace
}  // namespace sluice::storage
