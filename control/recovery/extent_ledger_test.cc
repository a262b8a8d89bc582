// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/extent_ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sluice::recovery {
namespace {

constexpr uint32_t kExtent = 4096;

class ExtentLedgerTest : public testing::TestWithParam<std::tuple<uint64_t, crc::CrcKind>> {
 protected:
  ExtentLedgerTest()
      : data_(std::get<0>(GetParam())), layout_{data_.size(), kExtent, std::get<1>(GetParam())} {
    for (auto& byte : data_) byte = static_cast<uint8_t>(random_());
    for (uint64_t i = 0; i < ExtentLedger(layout_).map().extents(); ++i) order_.push_back(i);
    std::shuffle(order_.begin(), order_.end(), random_);
  }
  uint64_t crc_of(uint64_t extent) const {
    const ExtentMap map(layout_.size_bytes, layout_.extent_bytes);
    return crc::compute(layout_.crc_kind, 0, data_.data() + map.extent_offset(extent),
                        map.extent_length(extent));
  }
  uint64_t crc_of_all() const { return crc::compute(layout_.crc_kind, 0, data_.data(), data_.size()); }

  std::mt19937_64 random_{7};
  std::vector<uint8_t> data_;
  Layout layout_;
  std::vector<uint64_t> order_;
};

TEST_P(ExtentLedgerTest, FoldsTheDigestOfTheObjectInAnyOrder) {
  ExtentLedger ledger(layout_);
  for (const uint64_t extent : order_) EXPECT_EQ(ledger.add(extent, crc_of(extent)), ExtentLedger::Add::kNew);
  EXPECT_TRUE(ledger.complete());
  EXPECT_EQ(ledger.digest(), crc_of_all());
}

TEST_P(ExtentLedgerTest, SurvivesAnyNumberOfRestartsInBetween) {
  ExtentLedger ledger(layout_);
  std::map<uint64_t, std::string> journal;
  for (size_t i = 0; i < order_.size(); ++i) {
    ledger.add(order_[i], crc_of(order_[i]));
    if (random_() % 8 != 0) continue;
    for (const Block& block : ledger.take_changed()) journal[block.index] = block.bytes;
    ExtentLedger again(layout_);
    for (const auto& [index, bytes] : journal) ASSERT_TRUE(again.restore({index, bytes}));
    EXPECT_EQ(again.map().set_extents(), i + 1);
    EXPECT_TRUE(again.take_changed().empty());
    ledger = again;
  }
  EXPECT_TRUE(ledger.complete());
  EXPECT_EQ(ledger.digest(), crc_of_all());
}

INSTANTIATE_TEST_SUITE_P(Sizes, ExtentLedgerTest,
                         testing::Combine(testing::Values(1, kExtent, kExtent + 1, 64 * kExtent,
                                                          64 * kExtent + 1, 300 * kExtent + 77),
                                          testing::Values(crc::CrcKind::kCrc64Ecma, crc::CrcKind::kCrc32c)));

TEST(ExtentLedger, TellsAnotherCrcOfAKnownExtent) {
  ExtentLedger ledger({10 * kExtent, kExtent, crc::CrcKind::kCrc64Ecma});
  EXPECT_EQ(ledger.add(3, 33), ExtentLedger::Add::kNew);
  EXPECT_EQ(ledger.add(3, 33), ExtentLedger::Add::kSame);
  EXPECT_EQ(ledger.add(3, 34), ExtentLedger::Add::kDiffers);
  EXPECT_EQ(ledger.extent_crc(3), 33U);
  EXPECT_FALSE(ledger.extent_crc(4).has_value());
}

TEST(ExtentLedger, AFullBlockIsEightBytesAndItsBitmap) {
  ExtentLedger ledger({64 * kExtent, kExtent, crc::CrcKind::kCrc64Ecma});
  for (uint64_t i = 0; i < 64; ++i) ledger.add(i, i);
  const std::vector<Block> blocks = ledger.take_changed();
  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0].bytes.size(), 16U);
  EXPECT_TRUE(ledger.block_digest(0).has_value());
}

TEST(ExtentLedger, RefusesRowsThatCannotBeIts) {
  const Layout layout{70 * kExtent, kExtent, crc::CrcKind::kCrc64Ecma};
  ExtentLedger good(layout);
  good.add(65, 1);
  good.add(66, 2);
  const Block block = good.take_changed().front();
  const std::vector<Block> wrong = {{2, block.bytes},  // no such block
                                    {1, ""},
                                    {1, block.bytes.substr(0, 16)},        // a CRC is missing
                                    {1, block.bytes + std::string(8, 0)},  // one too many
                                    {1, "\xff" + block.bytes.substr(1)}};  // extents that there are not
  for (const Block& row : wrong) {
    ExtentLedger ledger(layout);
    EXPECT_FALSE(ledger.restore(row));
    EXPECT_EQ(ledger.map().set_extents(), 0U);
  }
  ExtentLedger ledger(layout);
  EXPECT_TRUE(ledger.restore(block));
  EXPECT_FALSE(ledger.restore(block));
}

}  // namespace
}  // namespace sluice::recovery
