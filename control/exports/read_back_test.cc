// SPDX-License-Identifier: Apache-2.0
#include "control/exports/read_back.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "dataplane/base/unique_fd.h"
#include "dataplane/crc/crc.h"
#include "dataplane/sums/tree.h"

namespace sluice::exports {
namespace {

constexpr auto kKind = wire::CrcKind::kCrc64Ecma;

class ReadBackTest : public testing::Test {
 protected:
  ReadBackTest() : bytes_(5 * 1048576 + 5) {
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<uint8_t>(i * 31 + i / 4096);
    std::string name = testing::TempDir() + "sluice-read-XXXXXX";
    file_ = UniqueFd(::mkstemp(name.data()));
    ::unlink(name.c_str());
    EXPECT_EQ(::pwrite(file_.get(), bytes_.data(), bytes_.size(), 0), static_cast<ssize_t>(bytes_.size()));
  }
  uint64_t expected(uint64_t offset, uint64_t length) const {
    return crc::compute(kKind, 0, bytes_.data() + offset, length);
  }

  std::vector<uint8_t> bytes_;
  UniqueFd file_;
};

TEST_F(ReadBackTest, GivesTheCrcOfAnyAlignedPart) {
  for (const uint64_t offset : {uint64_t{0}, uint64_t{4096}, uint64_t{4} << 20}) {
    for (const uint64_t length : {uint64_t{1}, uint64_t{4096}, uint64_t{1048576}, bytes_.size() - offset}) {
      const auto crc = read_crc(file_.get(), kKind, offset, length);
      ASSERT_TRUE(crc) << crc.error().message;
      EXPECT_EQ(*crc, expected(offset, length)) << offset << " " << length;
    }
  }
  EXPECT_EQ(*read_crc(file_.get(), kKind, 0, 0), 0U);
  EXPECT_EQ(*read_back_crc(file_.get(), kKind, 0, bytes_.size()), expected(0, bytes_.size()));
}

// Those of the whole file, which lies in three subtrees and is read in other pieces.
TEST_F(ReadBackTest, SumsWhatItReads) {
  const sums::Shape shape{.size_bytes = bytes_.size(), .extent_bytes = 65536};
  sums::Tree tree(shape, sums::available());
  for (const base::Range range : {base::Range{.offset = 3 * 65536, .length = 40 * 65536},
                                  base::Range{.offset = 43 * 65536, .length = bytes_.size() - 43 * 65536},
                                  base::Range{.offset = 0, .length = 3 * 65536}}) {
    sums::RangeSummer summer(shape, sums::available(), range);
    const auto crc = read_back_crc(file_.get(), kKind, range.offset, range.length, {.sums = &summer});
    ASSERT_TRUE(crc) << crc.error().message;
    EXPECT_EQ(*crc, expected(range.offset, range.length));
    for (const sums::Summed& summed : summer.take()) tree.add(summed);
  }
  sums::Summer summer;
  summer.begin(sums::available(), 0, true);
  summer.add(bytes_.data(), bytes_.size());
  ASSERT_TRUE(tree.whole());
  EXPECT_EQ(*tree.whole(), summer.value());
}

TEST_F(ReadBackTest, TellsOfEveryByteOnceAndCanBeEnded) {
  uint64_t told = 0;
  const auto count = [&](uint64_t bytes) {
    told += bytes;
    return true;
  };
  ASSERT_TRUE(read_crc(file_.get(), kKind, 0, bytes_.size(), count));
  EXPECT_EQ(told, bytes_.size());
  const auto ended = read_crc(file_.get(), kKind, 0, bytes_.size(), [](uint64_t) { return false; });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kCancelled);
}

TEST_F(ReadBackTest, AFileThatEndsEarlySaysWhere) {
  const auto crc = read_crc(file_.get(), kKind, 0, bytes_.size() + 1);
  ASSERT_FALSE(crc);
  EXPECT_EQ(crc.error().code, ErrorCode::kStorage);
  EXPECT_NE(crc.error().message.find(std::to_string(bytes_.size())), std::string::npos);
}

}  // namespace
}  // namespace sluice::exports
