// SPDX-License-Identifier: Apache-2.0
#include "dataplane/coding/block_layout.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "dataplane/coding/block_digest.h"

namespace sluice::coding {
namespace {

TEST(BlockLayout, HasOneKForAllBlocksOfAFlow) {
  const auto k = [](Scheme scheme, uint32_t chunk_bytes, uint32_t extent_bytes = 1U << 20) {
    return source_symbols(scheme, {.extent_bytes = extent_bytes, .chunk_bytes = chunk_bytes});
  };
  EXPECT_EQ(k(Scheme::kReedSolomon, 1400), 63U);  // MTU 1500: 749 chunks in 12 blocks
  EXPECT_EQ(k(Scheme::kRaptorQ, 1400), 250U);
  EXPECT_EQ(k(Scheme::kReedSolomon, 8192), 64U);  // 128 chunks in two blocks
  EXPECT_EQ(k(Scheme::kRaptorQ, 8192), 64U);
  EXPECT_EQ(k(Scheme::kReedSolomon, 256), 64U);
  EXPECT_EQ(k(Scheme::kReedSolomon, 32768), 32U);
  EXPECT_EQ(k(Scheme::kRaptorQ, 32768), 16U);
  EXPECT_EQ(k(Scheme::kReedSolomon, 1024, 65536 + 1024), 33U);
  EXPECT_EQ(k(Scheme::kReedSolomon, 32768, 1000), 1U);
  EXPECT_EQ(BlockLayout(749, 63).blocks(), 12U);
}

TEST(BlockLayout, GivesEachChunkOnePlace) {
  for (uint32_t chunks = 1; chunks <= 300; ++chunks) {
    for (const uint32_t k : {1U, 2U, 7U, 63U, 64U, 250U}) {
      const BlockLayout layout(chunks, k);
      std::set<uint32_t> seen;
      for (uint32_t block = 0; block < layout.blocks(); ++block) {
        ASSERT_GT(layout.chunks_of(block), 0U);
        ASSERT_LE(layout.chunks_of(block), k);
        for (uint32_t place = 0; place < layout.chunks_of(block); ++place) {
          const uint32_t chunk = layout.chunk_at(block, place);
          ASSERT_LT(chunk, chunks);
          ASSERT_TRUE(seen.insert(chunk).second);
          ASSERT_EQ(layout.block_of(chunk), block);
          ASSERT_EQ(layout.place_of(chunk), place);
        }
      }
      ASSERT_EQ(seen.size(), chunks);
    }
  }
}

// A burst as long as there are blocks takes one chunk of each.
TEST(BlockLayout, SpreadsABurstOverAllBlocks) {
  const BlockLayout layout(749, 63);
  for (uint32_t first = 0; first + layout.blocks() <= 749; ++first) {
    std::set<uint32_t> hit;
    for (uint32_t i = 0; i < layout.blocks(); ++i) hit.insert(layout.block_of(first + i));
    ASSERT_EQ(hit.size(), layout.blocks());
  }
}

// So only the last symbol of a block may be shorter than the others.
TEST(BlockLayout, HasTheLastChunkOfAnExtentAtTheEndOfItsBlock) {
  for (uint32_t chunks = 1; chunks <= 300; ++chunks) {
    const BlockLayout layout(chunks, 63);
    const uint32_t block = layout.block_of(chunks - 1);
    EXPECT_EQ(layout.place_of(chunks - 1) + 1, layout.chunks_of(block));
  }
}

TEST(BlockDigest, IsTheCrcOfTheChunksOneBehindTheOther) {
  std::vector<uint8_t> bytes(1000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 31);
  const std::vector<const uint8_t*> symbols{bytes.data(), bytes.data() + 300, bytes.data() + 600,
                                            bytes.data() + 900};
  EXPECT_EQ(block_digest(symbols, 300, 100), crc::compute(wire::CrcKind::kCrc64Ecma, 0, bytes.data(), 1000));
  EXPECT_EQ(block_digest({symbols.data(), 1}, 300, 300),
            crc::compute(wire::CrcKind::kCrc64Ecma, 0, bytes.data(), 300));
}

}  // namespace
}  // namespace sluice::coding
