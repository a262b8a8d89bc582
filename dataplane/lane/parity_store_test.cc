// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/parity_store.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace sluice::lane {
namespace {

using Kept = ParityStore::Kept;

constexpr uint32_t kExtents = 3;
constexpr uint32_t kSymbolBytes = 512;

wire::Header symbol(uint8_t block, uint16_t id, uint64_t digest = 7) {
  return {.type = wire::Type::kParity,
          .length = kSymbolBytes,
          .block = block,
          .repair_id = id,
          .block_digest = digest};
}

struct Store : ParityStore {
  explicit Store(uint32_t symbols, uint32_t blocks = 4) : ParityStore(kExtents) {
    make_room(size_t{symbols} * kSymbolBytes, {.symbol_bytes = kSymbolBytes, .blocks = blocks});
  }
  Kept take(uint32_t extent, const wire::Header& header) {
    const Kept kept = look(extent, header);
    if (kept == Kept::kYes) std::fill_n(keep(extent, header), kSymbolBytes, uint8_t(header.repair_id));
    return kept;
  }
  std::vector<uint16_t> ids(uint32_t extent, uint32_t block) {
    std::array<coding::RepairSymbol, 64> out;
    const Block found = find(extent, block, out);
    std::vector<uint16_t> ids;
    for (uint32_t i = 0; i < found.symbols; ++i) {
      EXPECT_EQ(out[i].bytes[kSymbolBytes - 1], uint8_t(out[i].id));
      ids.push_back(static_cast<uint16_t>(out[i].id));
    }
    std::sort(ids.begin(), ids.end());
    return ids;
  }
};

using Ids = std::vector<uint16_t>;

TEST(ParityStore, KeepsTheSymbolsOfEachBlockByThemselves) {
  Store store(16);
  for (const uint16_t id : {5, 2, 9}) EXPECT_EQ(store.take(1, symbol(3, id)), Kept::kYes);
  EXPECT_EQ(store.take(1, symbol(0, 5, 8)), Kept::kYes);
  EXPECT_EQ(store.take(2, symbol(3, 5, 9)), Kept::kYes);
  EXPECT_EQ(store.ids(1, 3), (Ids{2, 5, 9}));
  EXPECT_EQ(store.ids(1, 0), Ids{5});
  EXPECT_EQ(store.find(1, 0).digest, 8U);
  EXPECT_EQ(store.ids(1, 1), Ids{});
  EXPECT_EQ(store.ids(0, 3), Ids{});
  EXPECT_FALSE(store.has_any(0));

  store.drop(1, 3);
  EXPECT_EQ(store.ids(1, 3), Ids{});
  EXPECT_EQ(store.ids(1, 0), Ids{5});
  EXPECT_EQ(store.ids(2, 3), Ids{5});
  store.drop(1);
  EXPECT_FALSE(store.has_any(1));
  EXPECT_TRUE(store.has_any(2));
}

TEST(ParityStore, TakesNoSymbolTwiceAndNoneThatContradicts) {
  Store store(16);
  EXPECT_EQ(store.take(0, symbol(1, 4)), Kept::kYes);
  EXPECT_EQ(store.take(0, symbol(1, 4)), Kept::kHadIt);
  EXPECT_EQ(store.take(0, symbol(1, 5, 70)), Kept::kContradiction);
  wire::Header other_code = symbol(1, 5);
  other_code.flags = wire::kFlagRaptorQ;
  EXPECT_EQ(store.take(0, other_code), Kept::kContradiction);
  store.drop(0, 1);  // what a block was believed to be ends with it
  EXPECT_EQ(store.take(0, symbol(1, 4, 70)), Kept::kYes);
}

TEST(ParityStore, HasNoRoomBeyondItsPlacesAndItsBlocks) {
  Store store(2);
  EXPECT_EQ(store.take(0, symbol(0, 1)), Kept::kYes);
  EXPECT_EQ(store.take(0, symbol(1, 1)), Kept::kYes);
  EXPECT_EQ(store.take(0, symbol(2, 1)), Kept::kNoRoom);
  store.drop(0, 1);
  EXPECT_EQ(store.take(0, symbol(2, 1)), Kept::kYes);
  store.drop(0);
  EXPECT_EQ(store.take(0, symbol(4, 1)), Kept::kNoRoom);
  EXPECT_EQ(store.ids(0, 4), Ids{});
  store.drop(0, 4);
}

// A flow with shorter chunks opens beside one whose symbols are kept.
TEST(ParityStore, KeepsWhatItHasWhenExtentsHaveMoreBlocks) {
  Store store(16);
  EXPECT_EQ(store.take(1, symbol(3, 5)), Kept::kYes);
  EXPECT_EQ(store.take(2, symbol(0, 6)), Kept::kYes);
  store.make_room(16 * kSymbolBytes, {.symbol_bytes = kSymbolBytes / 2, .blocks = 9});
  EXPECT_EQ(store.ids(1, 3), Ids{5});
  EXPECT_EQ(store.ids(2, 0), Ids{6});
  EXPECT_EQ(store.take(1, symbol(8, 1)), Kept::kYes);
  EXPECT_EQ(store.ids(1, 8), Ids{1});
  store.drop(1);
  store.drop(2);
  // Nothing is kept now: places become as long as these.
  store.make_room(16 * kSymbolBytes, {.symbol_bytes = kSymbolBytes / 2, .blocks = 2});
  EXPECT_EQ(store.symbol_bytes(), kSymbolBytes / 2);
  EXPECT_EQ(store.take(1, symbol(8, 1)), Kept::kNoRoom);  // too long
}

}  // namespace
}  // namespace sluice::lane
