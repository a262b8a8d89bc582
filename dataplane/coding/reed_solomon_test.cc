// SPDX-License-Identifier: Apache-2.0
#include "dataplane/coding/reed_solomon.h"

#include <gtest/gtest.h>
#include <isa-l/erasure_code.h>

#include <bit>

#include "dataplane/base/documented_for_test.h"
#include "dataplane/coding/block_for_test.h"

namespace sluice::coding {
namespace {

std::vector<uint32_t> ones_of(uint32_t bits) {
  std::vector<uint32_t> ones;
  for (; bits != 0; bits &= bits - 1) ones.push_back(static_cast<uint32_t>(std::countr_zero(bits)));
  return ones;
}

// The reference: one product in the field at a time, straight from WIRE.md.
uint8_t coefficient(uint32_t k, uint32_t id, uint32_t symbol) {
  return gf_inv(static_cast<uint8_t>((k + id) ^ symbol));
}

SymbolsForTest reference_repair(const SymbolsForTest& source, uint32_t k, uint32_t count) {
  SymbolsForTest repair(count, static_cast<uint32_t>(source.bytes.front().size()));
  for (uint32_t id = 0; id < count; ++id) {
    for (uint32_t j = 0; j < source.bytes.size(); ++j) {
      for (size_t i = 0; i < source.bytes[j].size(); ++i)
        repair.bytes[id][i] ^= gf_mul(coefficient(k, id, j), source.bytes[j][i]);
    }
  }
  return repair;
}

// WIRE.md: these bytes were worked out apart from this program and from ISA-L.
TEST(ReedSolomon, MakesTheBytesOfTheDocument) {
  SymbolsForTest source(3, 64);
  for (uint32_t j = 0; j < 3; ++j) {
    for (uint32_t i = 0; i < 64; ++i) source.bytes[j][i] = static_cast<uint8_t>(j * 64 + i * 7 + 1);
  }
  const SymbolsForTest repair = repair_of(ReedSolomon(3), source, 0, 3);
  std::string first_bytes;
  for (const auto& symbol : repair.bytes) first_bytes.append(symbol.begin(), symbol.begin() + 16);
  EXPECT_EQ(first_bytes, base::documented_bytes("reed-solomon, repair symbols"));
}

TEST(ReedSolomon, BringsBackEveryPatternOfASmallBlock) {
  std::mt19937_64 random(1);
  constexpr uint32_t kRepair = 5;
  for (uint32_t k = 1; k <= 6; ++k) {
    const ReedSolomon code(k);
    const SymbolsForTest source = random_symbols(random, k, 64);
    const SymbolsForTest repair = repair_of(code, source, 0, kRepair);
    ASSERT_EQ(repair.bytes, reference_repair(source, k, kRepair).bytes) << "K " << k;
    for (uint32_t lost = 0; lost < 1U << k; ++lost) {
      for (uint32_t used = 0; used < 1U << kRepair; ++used) {
        if (std::popcount(lost) != std::popcount(used)) continue;
        SymbolsForTest damaged(source);
        ASSERT_EQ(decode_for_test(code, &damaged, ones_of(lost), repair, ones_of(used)), Coded::kYes);
        ASSERT_EQ(damaged.bytes, source.bytes) << "K " << k << ", lost " << lost << ", used " << used;
      }
    }
  }
}

TEST(ReedSolomon, BringsBackRandomPatternsOfLargeBlocks) {
  std::mt19937_64 random(2);
  for (const uint32_t k : {32U, 63U, 64U, 128U, 200U, 254U}) {
    const ReedSolomon code(k);
    const uint32_t most = std::min(k, code.repair_symbols_max());
    for (const uint32_t symbol_bytes : {64U, 100U, 575U, 576U, 1400U, 8192U}) {
      const SymbolsForTest source = random_symbols(random, k, symbol_bytes);
      const SymbolsForTest repair = repair_of(code, source, 0, code.repair_symbols_max());
      ASSERT_EQ(repair.bytes.size(), code.repair_symbols_max());
      for (const uint32_t lost : {1U, 2U, 7U, most}) {
        if (lost > most) continue;
        SymbolsForTest damaged(source);
        ASSERT_EQ(decode_for_test(code, &damaged, random_choice(random, k, lost), repair,
                                  random_choice(random, code.repair_symbols_max(), lost)),
                  Coded::kYes);
        ASSERT_EQ(damaged.bytes, source.bytes) << "K " << k << ", T " << symbol_bytes << ", lost " << lost;
      }
    }
  }
}

// The plan of a decoder in closed form is what ISA-L's inversion of the whole K x K gives.
TEST(ReedSolomon, AgreesWithTheInverseOfTheWholeMatrix) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    const uint32_t k = 2 + random() % 30;
    const uint32_t lost = 1 + random() % k;
    const auto missing = random_choice(random, k, lost);
    const auto used = random_choice(random, ReedSolomon(k).repair_symbols_max(), lost);
    const SymbolsForTest source = random_symbols(random, k, 64);
    const SymbolsForTest repair = reference_repair(source, k, used.back() + 1);
    std::vector<uint8_t> matrix(size_t{k} * k);
    std::vector<uint8_t> inverse(matrix.size());
    std::vector<const uint8_t*> here;
    for (uint32_t j = 0; j < k; ++j) {
      if (std::find(missing.begin(), missing.end(), j) != missing.end()) continue;
      matrix[here.size() * k + j] = 1;
      here.push_back(source.places[j]);
    }
    for (const uint32_t id : used) {
      for (uint32_t j = 0; j < k; ++j) matrix[here.size() * k + j] = coefficient(k, id, j);
      here.push_back(repair.places[id]);
    }
    ASSERT_EQ(gf_invert_matrix(matrix.data(), inverse.data(), static_cast<int>(k)), 0);
    SymbolsForTest damaged(source);
    ASSERT_EQ(decode_for_test(ReedSolomon(k), &damaged, missing, repair, used), Coded::kYes);
    for (const uint32_t j : missing) {
      uint8_t byte = 0;
      for (uint32_t c = 0; c < k; ++c) byte ^= gf_mul(inverse[j * k + c], here[c][17]);
      ASSERT_EQ(damaged.bytes[j][17], byte) << "K " << k << ", lost " << lost;
    }
  }
}

TEST(ReedSolomon, TakesPlacesThatNoChunkFillsForZeros) {
  std::mt19937_64 random(4);
  const ReedSolomon code(64);
  for (const uint32_t chunks : {1U, 2U, 40U, 63U}) {
    const SymbolsForTest few = random_symbols(random, chunks, 256);
    SymbolsForTest whole(64, 256);
    std::copy(few.bytes.begin(), few.bytes.end(), whole.bytes.begin());
    for (size_t i = 0; i < whole.bytes.size(); ++i) whole.places[i] = whole.bytes[i].data();
    const SymbolsForTest repair = repair_of(code, few, 0, 10);
    EXPECT_EQ(repair.bytes, repair_of(code, whole, 0, 10).bytes);
    const uint32_t lost = std::min(chunks, 10U);
    SymbolsForTest damaged(few);
    EXPECT_EQ(decode_for_test(code, &damaged, random_choice(random, chunks, lost), repair,
                              random_choice(random, 10, lost)),
              Coded::kYes);
    EXPECT_EQ(damaged.bytes, few.bytes);
  }
}

TEST(ReedSolomon, MakesTheSameSymbolWhereverItBegins) {
  std::mt19937_64 random(5);
  const ReedSolomon code(60);
  const SymbolsForTest source = random_symbols(random, 60, 1400);
  const auto all = repair_of(code, source, 0, 195).bytes;
  for (const uint32_t first : {0U, 1U, 100U, 190U}) {
    const auto some = repair_of(code, source, first, 5).bytes;
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + first)) << first;
  }
}

TEST(ReedSolomon, RefusesWhatIsNoPartOfABlock) {
  std::mt19937_64 random(6);
  const ReedSolomon code(8);
  const uint32_t most = code.repair_symbols_max();
  SymbolsForTest source = random_symbols(random, 8, 128);
  const SymbolsForTest repair = repair_of(code, source, 0, 8);
  EXPECT_TRUE(repair_of(code, source, most - 7, 8).bytes.empty());
  EXPECT_TRUE(repair_of(code, source, UINT32_MAX, 8).bytes.empty());
  EXPECT_TRUE(repair_of(code, random_symbols(random, 9, 128), 0, 1).bytes.empty());
  EXPECT_TRUE(repair_of(code, random_symbols(random, 8, 63), 0, 1).bytes.empty());

  const auto decode = [&](std::vector<uint32_t> missing, std::vector<RepairSymbol> here, size_t less = 0) {
    AlignedBytes arena(code.arena_bytes(128, static_cast<uint32_t>(here.size())) - less);
    return code.decode({.source = source.places, .symbol_bytes = 128, .missing = missing, .repair = here},
                       arena.span());
  };
  const auto symbol = [&](uint32_t id) { return RepairSymbol{.id = id, .bytes = repair.places[id % 8]}; };
  EXPECT_EQ(decode({0, 3}, {symbol(0)}), Coded::kNeedsMore);
  EXPECT_EQ(decode({3, 0}, {symbol(0), symbol(1)}), Coded::kRefused);
  EXPECT_EQ(decode({3, 3}, {symbol(0), symbol(1)}), Coded::kRefused);
  EXPECT_EQ(decode({8}, {symbol(0)}), Coded::kRefused);
  EXPECT_EQ(decode({0, 1}, {symbol(2), symbol(2)}), Coded::kRefused);
  EXPECT_EQ(decode({0}, {symbol(most)}), Coded::kRefused);
  EXPECT_EQ(decode({0, 1}, {symbol(0), symbol(1)}, 1), Coded::kRefused);
  EXPECT_EQ(decode({}, {}), Coded::kYes);
}

TEST(BlockCode, ThereIsOneForEachShapeThatItsSchemeAllows) {
  EXPECT_EQ(make_code(Scheme::kReedSolomon, 0), nullptr);
  EXPECT_EQ(make_code(Scheme::kReedSolomon, 255), nullptr);
  EXPECT_NE(make_code(Scheme::kReedSolomon, 254), nullptr);
  EXPECT_TRUE(is_built_in(Scheme::kReedSolomon));
  EXPECT_EQ(make_code(Scheme::kRaptorQ, 64) != nullptr, is_built_in(Scheme::kRaptorQ));
}

}  // namespace
}  // namespace sluice::coding
