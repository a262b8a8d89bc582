// SPDX-License-Identifier: Apache-2.0
#include "dataplane/crc/crc.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string_view>
#include <vector>

namespace sluice::crc {
namespace {

std::vector<uint8_t> random_bytes(size_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> data(bytes);
  for (auto& b : data) b = static_cast<uint8_t>(random());
  return data;
}

class CrcTest : public testing::TestWithParam<CrcKind> {};

INSTANTIATE_TEST_SUITE_P(Kinds, CrcTest, testing::Values(CrcKind::kCrc32c, CrcKind::kCrc64Ecma),
                         [](const auto& test) { return std::string(wire::crc_kind_name(test.param)); });

TEST_P(CrcTest, AgreesWithTheReferenceAtEveryLengthAndAlignment) {
  const auto data = random_bytes(9000, 1);
  for (size_t bytes : {0, 1, 2, 7, 8, 15, 63, 64, 65, 127, 256, 1023, 1384, 4096, 8191, 8192, 8900}) {
    for (size_t at : {0, 1, 3, 8, 31}) {
      ASSERT_EQ(compute(GetParam(), 0, &data[at], bytes), reference(GetParam(), 0, &data[at], bytes))
          << bytes << " bytes at " << at;
    }
  }
}

TEST_P(CrcTest, CopiesWhatItSums) {
  const auto data = random_bytes(9100, 4);
  std::vector<uint8_t> room(9200 + 64);
  uint8_t* const aligned = room.data() + (32 - reinterpret_cast<uintptr_t>(room.data()) % 32);
  for (size_t bytes : {0, 1, 255, 256, 257, 383, 384, 1384, 4096, 8192, 8900, 8999}) {
    for (size_t from : {0, 1, 42}) {
      for (size_t to : {0, 8}) {
        for (const auto copied : {copy, copy_past_caches}) {
          std::fill(room.begin(), room.end(), uint8_t{0xEE});
          ASSERT_EQ(copied(GetParam(), 7, &data[from], aligned + to, bytes),
                    compute(GetParam(), 7, &data[from], bytes));
          ASSERT_EQ(std::memcmp(aligned + to, &data[from], bytes), 0) << bytes << " bytes";
          ASSERT_EQ(aligned[to + bytes], 0xEE) << bytes << " bytes: one too many";
        }
      }
    }
  }
}

TEST_P(CrcTest, ContinuesFromASeed) {
  const auto data = random_bytes(8256, 2);
  const uint64_t first = compute(GetParam(), 0, data.data(), 8192);
  EXPECT_EQ(compute(GetParam(), first, &data[8192], 64), compute(GetParam(), 0, data.data(), 8256));
}

TEST_P(CrcTest, FoldsPiecesInAnyOrderToTheWhole) {
  const auto data = random_bytes(100'003, 3);
  const uint64_t whole = compute(GetParam(), 0, data.data(), data.size());
  uint64_t folded = 0;
  std::vector<size_t> cuts = {0, 1, 512, 8192, 8193, 50'000, 99'999, data.size()};
  for (size_t i = cuts.size() - 1; i > 0; --i) {  // last piece first
    const size_t begin = cuts[i - 1];
    const uint64_t piece = compute(GetParam(), 0, &data[begin], cuts[i] - begin);
    folded ^= shift(GetParam(), piece, data.size() - cuts[i]);
  }
  EXPECT_EQ(folded, whole);
}

TEST_P(CrcTest, ZerosNeedNotBeRead) {
  const std::vector<uint8_t> zeros(70'000);
  for (const size_t bytes : {0, 1, 7, 8, 4096, 65'536, 69'999})
    EXPECT_EQ(of_zeros(GetParam(), bytes), reference(GetParam(), 0, zeros.data(), bytes)) << bytes;
}

TEST_P(CrcTest, ShiftTableEqualsShift) {
  for (uint64_t bytes : {1ULL, 1384ULL, 8192ULL, 1ULL << 20, (1ULL << 46) + 12345}) {
    const ShiftTable table(GetParam(), bytes);
    uint64_t crc = 0x0123456789ABCDEF;
    if (GetParam() == CrcKind::kCrc32c) crc &= 0xFFFFFFFF;
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(table(crc), shift(GetParam(), crc, bytes));
      crc = table(crc) + (GetParam() == CrcKind::kCrc32c ? 0 : static_cast<uint64_t>(i));
    }
  }
}

TEST(CrcKnownAnswers, CheckValuesOfThePublishedParameters) {
  constexpr std::string_view kDigits = "123456789";
  EXPECT_EQ(compute(CrcKind::kCrc64Ecma, 0, kDigits.data(), kDigits.size()),
            0x995DC9BBDF1939FAULL);                                                        // CRC-64/XZ
  EXPECT_EQ(compute(CrcKind::kCrc32c, 0, kDigits.data(), kDigits.size()), 0xE3069283ULL);  // CRC-32/ISCSI
  EXPECT_EQ(compute(CrcKind::kNone, 0, kDigits.data(), kDigits.size()), 0ULL);
  EXPECT_EQ(compute(CrcKind::kRead, 0, kDigits.data(), kDigits.size()), 0ULL);
}

}  // namespace
}  // namespace sluice::crc
