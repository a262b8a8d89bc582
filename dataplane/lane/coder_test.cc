// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/coder.h"

#include <gtest/gtest.h>

namespace sluice::lane {
namespace {

constexpr coding::FlowShape kSmallChunks{.extent_bytes = 65536, .chunk_bytes = 512};
constexpr coding::FlowShape kLargeChunks{.extent_bytes = 65536, .chunk_bytes = 8192};

bool prepare(Coder& coder, const coding::FlowShape& shape) {
  return coder.prepare(kCodeReedSolomon, shape.extent_bytes, shape.chunk_bytes);
}

TEST(Coder, HasTheCodesThatWerePreparedFor) {
  Coder coder;
  EXPECT_EQ(coder.find(coding::Scheme::kReedSolomon, kSmallChunks), nullptr);
  ASSERT_TRUE(prepare(coder, kSmallChunks));
  const coding::BlockCode* const code = coder.find(coding::Scheme::kReedSolomon, kSmallChunks);
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(code->source_symbols(), 64U);
  EXPECT_EQ(coder.find(coding::Scheme::kRaptorQ, kSmallChunks), nullptr);
  EXPECT_EQ(coder.prepare(kCodeRaptorQ, 65536, 512), (codes_built_in() & kCodeRaptorQ) != 0);
}

TEST(Coder, HasMemoryForTheLargestOfWhatWasPreparedFor) {
  Coder coder;
  ASSERT_TRUE(prepare(coder, kSmallChunks));
  ASSERT_TRUE(prepare(coder, kLargeChunks));
  ASSERT_TRUE(prepare(coder, kSmallChunks));
  EXPECT_EQ(coder.encoded(1) - coder.encoded(0), 8192);
  EXPECT_EQ(coder.decoded(1) - coder.decoded(0), 8192);
  for (const coding::FlowShape& shape : {kSmallChunks, kLargeChunks}) {
    const coding::BlockCode* const code = coder.find(coding::Scheme::kReedSolomon, shape);
    EXPECT_GE(coder.arena().size(), code->arena_bytes(shape.chunk_bytes, code->repair_symbols_max()));
  }
}

// What a sender has encoded for one flow must not be sent when another flow's opening has moved the memory.
TEST(Coder, SaysWhenWhatWasEncodedIsGone) {
  Coder coder;
  ASSERT_TRUE(prepare(coder, kSmallChunks));
  const uint32_t before = coder.generation();
  ASSERT_TRUE(prepare(coder, kSmallChunks));
  EXPECT_EQ(coder.generation(), before);
  ASSERT_TRUE(prepare(coder, kLargeChunks));
  EXPECT_NE(coder.generation(), before);
}

TEST(Coder, CodesOneBlockATurn) {
  Coder coder;
  EXPECT_TRUE(coder.take_turn(5));
  EXPECT_FALSE(coder.take_turn(5));
  EXPECT_TRUE(coder.take_turn(6));
}

}  // namespace
}  // namespace sluice::lane
