// SPDX-License-Identifier: Apache-2.0
#include "control/exports/holes.h"

#include "control/exports/exports_fixture.h"
#include "control/exports/read_back.h"
#include "dataplane/crc/crc.h"

namespace sluice::exports {
namespace {

using Ranges = std::vector<base::Range>;
constexpr uint64_t kBlock = 64U << 10;

class HolesTest : public ExportsTest {
 protected:
  // Of so many bytes, with data in these ranges.
  UniqueFd sparse(const std::string& name, uint64_t bytes, const Ranges& data) {
    UniqueFd fd(::open((root_ / "data" / name).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
    for (const base::Range& run : data) {
      const std::string text(run.length, 'x');
      EXPECT_EQ(::pwrite(fd.get(), text.data(), text.size(), static_cast<off_t>(run.offset)),
                static_cast<ssize_t>(text.size()));
    }
    return fd;
  }
  uint64_t blocks_bytes(const std::string& name) const {
    struct stat info {};
    EXPECT_EQ(::stat((root_ / "data" / name).c_str(), &info), 0);
    return static_cast<uint64_t>(info.st_blocks) * 512;
  }
};

INSTANTIATE_TEST_SUITE_P(FileSystems, HolesTest, testing::Values("/tmp", "/dev/shm"));

TEST_P(HolesTest, AreFoundBetweenWhatWasWritten) {
  constexpr uint64_t kSize = 100 * kBlock + 17;
  const UniqueFd fd = sparse("f", kSize, {{10 * kBlock, 5}, {50 * kBlock, 2 * kBlock}});
  const Ranges holes = holes_of(fd.get(), kSize);
  EXPECT_EQ(holes,
            (Ranges{{0, 10 * kBlock}, {11 * kBlock, 39 * kBlock}, {52 * kBlock, kSize - 52 * kBlock}}));
}

TEST_P(HolesTest, AFileThatIsOneHoleHasOne) {
  const UniqueFd fd = sparse("f", 3 * kBlock + 1, {});
  EXPECT_EQ(holes_of(fd.get(), 3 * kBlock + 1), (Ranges{{0, 3 * kBlock + 1}}));
}

TEST_P(HolesTest, ShortOnesAndFullFilesHaveNone) {
  const UniqueFd full = sparse("full", kBlock * 2, {{0, kBlock * 2}});
  EXPECT_TRUE(holes_of(full.get(), kBlock * 2).empty());
  const UniqueFd shorts = sparse("shorts", kBlock * 4, {{4096, 4096}, {kBlock + 8192, 3 * kBlock - 8192}});
  EXPECT_TRUE(holes_of(shorts.get(), kBlock * 4).empty());
}

TEST_P(HolesTest, OfMoreThanCanBeToldTheLargestAreToldInOrder) {
  Ranges data;
  uint64_t at = 0;
  for (uint64_t i = 0; i < catalog::kHolesMax + 100; ++i) {
    at += (i % 50 == 7 ? 3 : 1) * kBlock;  // large ones among the small
    data.push_back({.offset = at, .length = 1});
    at += kBlock;
  }
  const UniqueFd fd = sparse("f", at, data);
  const Ranges holes = holes_of(fd.get(), at);
  ASSERT_EQ(holes.size(), catalog::kHolesMax);
  uint64_t large = 0;
  for (size_t i = 0; i < holes.size(); ++i) {
    EXPECT_TRUE(i == 0 || holes[i].offset >= holes[i - 1].end());
    large += holes[i].length == 3 * kBlock ? 1 : 0;
  }
  EXPECT_EQ(large, (catalog::kHolesMax + 100 + 42) / 50);
}

TEST_P(HolesTest, AreReadAsZerosAndNotBeyondTheEnd) {
  constexpr uint64_t kSize = 20 * kBlock + 100;
  const UniqueFd fd = sparse("f", kSize, {{5 * kBlock + 1000, 4096}});
  const std::string all = read(root_ / "data/f");
  for (const auto kind : {wire::CrcKind::kCrc32c, wire::CrcKind::kCrc64Ecma}) {
    const Result<uint64_t> crc = exports::read_crc(fd.get(), kind, 0, kSize);
    ASSERT_TRUE(crc) << crc.error().message;
    EXPECT_EQ(*crc, crc::compute(kind, 0, all.data(), all.size()));
    EXPECT_EQ(*exports::read_crc(fd.get(), kind, 8 * kBlock, 4 * kBlock), crc::of_zeros(kind, 4 * kBlock));
  }
  EXPECT_FALSE(exports::read_crc(fd.get(), wire::CrcKind::kCrc32c, 0, kSize + 1)) << "it ends before";
}

// However long a hole is, a part ends soon after the bytes that take time to read.
TEST_P(HolesTest, APartOfAFileEndsAfterItsDataAndNotAfterItsHoles) {
  constexpr uint64_t kHole = uint64_t{1} << 42;
  constexpr uint64_t kData = 8U << 20;
  std::vector<base::Range> data;
  for (uint64_t at = 0; at < kData; at += kBlock) data.push_back({.offset = kHole + at, .length = kBlock});
  const UniqueFd fd = sparse("f", 2 * kHole, data);
  constexpr auto kKind = wire::CrcKind::kCrc64Ecma;
  const uint64_t all = *exports::read_crc(fd.get(), kKind, 0, 2 * kHole);
  uint64_t crc = 0;
  uint64_t parts = 0;
  for (uint64_t at = 0; at < 2 * kHole; ++parts) {
    const auto part = exports::read_back_part(fd.get(), kKind, at, 2 * kHole - at, 1U << 20);
    ASSERT_TRUE(part) << part.error().message;
    if (parts == 0) EXPECT_LT(part->bytes, kHole + kData) << "its first data end it";
    crc = crc::shift(kKind, crc, part->bytes) ^ part->crc;
    at += part->bytes;
  }
  EXPECT_EQ(crc, all);
  EXPECT_LE(parts, 4U);
}

TEST_P(HolesTest, ADestinationTakesRoomForWhatIsToComeAlone) {
  DestinationSpec wanted = spec("data/new", uint64_t{1} << 40);
  wanted.holes = {{.offset = 0, .length = (uint64_t{1} << 39)},
                  {.offset = (uint64_t{1} << 39) + kBlock, .length = (uint64_t{1} << 39) - kBlock}};
  auto file = exports_.create_destination(wanted);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(file->finish());
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(fs::file_size(root_ / "data/new"), uint64_t{1} << 40);
  EXPECT_LE(blocks_bytes("new"), 2 * kBlock);
  const auto source = exports_.open_source(path("data/new"));
  ASSERT_TRUE(source);
  EXPECT_GE(holes_of(source->fd.get(), source->size).size(), 1U);
}

}  // namespace
}  // namespace sluice::exports
