// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/extent_ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sluice::recovery {
namespace {

constexpr uint32_t kExtentBytes = 4096;

Layout ledger_layout(uint64_t extents) {
  return {.size_bytes = extents * kExtentBytes,
          .extent_bytes = kExtentBytes,
          .crc_kind = crc::CrcKind::kCrc64Ecma};
}

class ExtentLedgerTest : public testing::TestWithParam<std::tuple<uint64_t, crc::CrcKind>> {
 protected:
  ExtentLedgerTest()
      : data_(std::get<0>(GetParam())),
        layout_{
            .size_bytes = data_.size(), .extent_bytes = kExtentBytes, .crc_kind = std::get<1>(GetParam())} {
    for (auto& byte : data_) byte = static_cast<uint8_t>(random_());
    for (ExtentId extent; extent < ExtentMap(layout_).end_id(); ++extent) order_.push_back(extent);
    std::shuffle(order_.begin(), order_.end(), random_);
  }
  uint64_t crc_of(ExtentId extent) const {
    const Range range = ExtentMap(layout_).range_of(extent);
    return crc::compute(layout_.crc_kind, 0, data_.data() + range.offset, range.length);
  }
  uint64_t crc_of_all() const { return crc::compute(layout_.crc_kind, 0, data_.data(), data_.size()); }

  std::mt19937_64 random_{7};
  std::vector<uint8_t> data_;
  Layout layout_;
  std::vector<ExtentId> order_;
};

TEST_P(ExtentLedgerTest, FoldsTheDigestOfTheObjectInAnyOrder) {
  ExtentLedger ledger(layout_);
  for (const ExtentId extent : order_) EXPECT_EQ(ledger.add(extent, crc_of(extent)), ExtentLedger::Add::kNew);
  EXPECT_TRUE(ledger.complete());
  EXPECT_EQ(ledger.digest(), crc_of_all());
}

// Zeros come first, or when some of them are known already; blocks that are all zeros, and parts of blocks.
TEST_P(ExtentLedgerTest, ZerosAreAsIfEachExtentOfThemHadBeenAdded) {
  const ExtentMap map(layout_);
  const uint64_t last = map.extents();
  for (const auto& [begin, end] :
       {std::pair<uint64_t, uint64_t>{0, last}, {3, last}, {0, last / 2}, {70, 200}}) {
    if (begin >= end || end > last) continue;
    const uint64_t at = begin * kExtentBytes;
    const Range zeros{.offset = at, .length = std::min(end * kExtentBytes, layout_.size_bytes) - at};
    std::fill_n(data_.begin() + static_cast<ptrdiff_t>(at), zeros.length, 0);
    for (const uint64_t known : {uint64_t{0}, last / 3, last}) {
      ExtentLedger ledger(layout_);
      for (uint64_t i = 0; i < known; ++i) ledger.add(order_[i], crc_of(order_[i]));
      ledger.add_zeros(zeros);
      ledger.check_invariants();
      ExtentLedger again(layout_);
      for (const Block& block : ledger.take_changed()) ASSERT_TRUE(again.restore(block));
      again.add_zeros(zeros);  // whole blocks of them have no rows
      EXPECT_EQ(again.digest(), ledger.digest());
      for (const ExtentId extent : order_) {
        const bool zero = extent.value() >= begin && extent.value() < end;
        EXPECT_TRUE(!zero || ledger.map().is_set(extent));
        EXPECT_NE(ledger.add(extent, crc_of(extent)), ExtentLedger::Add::kDiffers);
      }
      EXPECT_TRUE(ledger.complete());
      EXPECT_EQ(ledger.digest(), crc_of_all()) << begin << " to " << end << ", of which " << known;
    }
  }
}

// The greatest object of a session, all holes: what is kept and done for it does not grow with its size.
TEST(ExtentLedger, TakesHolesOfAnySizeAtOnce) {
  const Layout layout{
      .size_bytes = (1ULL << 48) - 5, .extent_bytes = 1U << 20, .crc_kind = crc::CrcKind::kCrc64Ecma};
  ExtentLedger ledger(layout);
  const uint64_t data = 3ULL << 40;
  ledger.add_zeros({.offset = 0, .length = data});
  ledger.add_zeros({.offset = data + (1U << 20), .length = layout.size_bytes - data - (1U << 20)});
  const std::vector<Range> missing =
      ledger.map().missing({.offset = 0, .length = layout.size_bytes}, ~size_t{0});
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing.front(), (Range{.offset = data, .length = 1U << 20}));
  EXPECT_EQ(ledger.map().set_bytes(), layout.size_bytes - (1U << 20));
  EXPECT_EQ(ledger.take_changed().size(), 1U) << "the block that has data, and no block of zeros";
  ledger.add(ledger.map().extent_at(data), crc::of_zeros(layout.crc_kind, 1U << 20));
  EXPECT_TRUE(ledger.complete());
  EXPECT_EQ(ledger.digest(), crc::of_zeros(layout.crc_kind, layout.size_bytes));
  // Whoever reads it back does so in pieces that are long where holes are.
  uint64_t end = 0;
  uint64_t pieces = 0;
  for (; end < layout.size_bytes; ++pieces) {
    const ExtentLedger::Piece piece = ledger.piece_at(ledger.map().extent_at(end));
    ASSERT_EQ(piece.range.offset, end);
    ASSERT_EQ(piece.crc, crc::of_zeros(layout.crc_kind, piece.range.length));
    ASSERT_LE(piece.range.length, ExtentLedger::kZerosOfPiece);
    end = piece.range.end();
  }
  EXPECT_EQ(end, layout.size_bytes);
  EXPECT_LE(pieces, layout.size_bytes / ExtentLedger::kZerosOfPiece + 3);
}

TEST_P(ExtentLedgerTest, SurvivesAnyNumberOfRestartsInBetween) {
  ExtentLedger ledger(layout_);
  std::map<BlockId, std::string> journal;
  for (size_t i = 0; i < order_.size(); ++i) {
    ledger.add(order_[i], crc_of(order_[i]));
    if (random_() % 8 != 0) continue;
    for (const Block& block : ledger.take_changed()) journal[block.id] = block.bytes;
    ExtentLedger again(layout_);
    for (const auto& [id, bytes] : journal) ASSERT_TRUE(again.restore({.id = id, .bytes = bytes}));
    EXPECT_EQ(again.map().set_extents(), i + 1);
    EXPECT_TRUE(again.take_changed().empty());
    ledger = again;
  }
  EXPECT_TRUE(ledger.complete());
  EXPECT_EQ(ledger.digest(), crc_of_all());
}

INSTANTIATE_TEST_SUITE_P(Sizes, ExtentLedgerTest,
                         testing::Combine(testing::Values(1, kExtentBytes, kExtentBytes + 1,
                                                          64 * kExtentBytes, 64 * kExtentBytes + 1,
                                                          300 * kExtentBytes + 77),
                                          testing::Values(crc::CrcKind::kCrc64Ecma, crc::CrcKind::kCrc32c)));

TEST(ExtentLedger, TellsAnotherCrcOfAKnownExtent) {
  ExtentLedger ledger(ledger_layout(10));
  EXPECT_EQ(ledger.add(ExtentId(3), 33), ExtentLedger::Add::kNew);
  EXPECT_EQ(ledger.add(ExtentId(3), 33), ExtentLedger::Add::kSame);
  EXPECT_EQ(ledger.add(ExtentId(3), 34), ExtentLedger::Add::kDiffers);
  EXPECT_EQ(ledger.extent_crc(ExtentId(3)), 33U);
  EXPECT_FALSE(ledger.extent_crc(ExtentId(4)).has_value());
}

TEST(ExtentLedger, AFullBlockIsEightBytesAndItsBitmap) {
  ExtentLedger ledger(ledger_layout(64));
  for (ExtentId extent; extent < ExtentId(64); ++extent) ledger.add(extent, extent.value());
  const std::vector<Block> blocks = ledger.take_changed();
  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0].bytes.size(), 16U);
  EXPECT_TRUE(ledger.block_digest(BlockId(0)).has_value());
}

TEST(ExtentLedger, RefusesRowsThatCannotBeIts) {
  const Layout layout = ledger_layout(70);
  ExtentLedger good(layout);
  good.add(ExtentId(65), 1);
  good.add(ExtentId(66), 2);
  const Block block = good.take_changed().front();
  const std::vector<Block> wrong = {
      {BlockId(2), block.bytes},  // There is no such block.
      {BlockId(1), ""},
      {BlockId(1), block.bytes.substr(0, 16)},        // A CRC is missing.
      {BlockId(1), block.bytes + std::string(8, 0)},  // It has one too many.
      {BlockId(1), "\xff" + block.bytes.substr(1)}};  // There are no such extents.
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
