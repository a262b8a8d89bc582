// Left out together with RaptorQ itself (dataplane/CMakeLists.txt).
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/coding/raptorq.h"

#include <gtest/gtest.h>

#include <numeric>

#include "dataplane/base/documented_for_test.h"
#include "dataplane/coding/block_for_test.h"
#include "dataplane/crc/crc.h"

namespace sluice::coding {
namespace {

std::vector<uint32_t> numbers(uint32_t first, uint32_t count) {
  std::vector<uint32_t> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

uint64_t digest_of(const std::vector<std::vector<uint8_t>>& symbols) {
  uint64_t crc = 0;
  for (const auto& symbol : symbols)
    crc = crc::compute(wire::CrcKind::kCrc64Ecma, crc, symbol.data(), symbol.size());
  return crc;
}

// Once with as many repair symbols as are missing, and then with one more at a time until it suffices.
uint32_t extra_symbols(const BlockCode& code, SymbolsForTest* damaged, const std::vector<uint32_t>& missing,
                       const SymbolsForTest& repair) {
  const auto lost = static_cast<uint32_t>(missing.size());
  for (uint32_t extra = 0; lost + extra <= repair.bytes.size(); ++extra) {
    if (decode_for_test(code, damaged, missing, repair, numbers(0, lost + extra)) == Coded::kYes)
      return extra;
  }
  return UINT32_MAX;
}

TEST(RaptorQ, BringsBackRandomPatterns) {
  std::mt19937_64 random(1);
  uint32_t blocks = 0;
  uint32_t extra = 0;
  for (const uint32_t k : {1U, 2U, 10U, 63U, 64U, 128U, 250U, 256U}) {
    const auto code = RaptorQ::make(k);
    ASSERT_NE(code, nullptr);
    for (const uint32_t symbol_bytes : {64U, 1400U}) {
      const SymbolsForTest source = random_symbols(random, k, symbol_bytes);
      const SymbolsForTest repair = repair_of(*code, source, 0, k + 8);
      ASSERT_EQ(repair.bytes.size(), k + 8);
      for (const uint32_t lost : {1U, k / 10 + 1, k}) {
        const auto missing = random_choice(random, k, lost);
        SymbolsForTest damaged(source);
        const uint32_t more = extra_symbols(*code, &damaged, missing, repair);
        ASSERT_NE(more, UINT32_MAX) << "K " << k << ", T " << symbol_bytes << ", lost " << lost;
        ASSERT_EQ(damaged.bytes, source.bytes) << "K " << k << ", T " << symbol_bytes << ", lost " << lost;
        ++blocks;
        extra += more;
      }
    }
  }
  EXPECT_LT(extra, blocks / 4);  // RFC 6330: 1 in 100 blocks needs one more
}

TEST(RaptorQ, TakesPlacesThatNoChunkFillsForZeros) {
  std::mt19937_64 random(2);
  const auto code = RaptorQ::make(64);
  for (const uint32_t chunks : {1U, 40U, 63U}) {
    const SymbolsForTest few = random_symbols(random, chunks, 256);
    SymbolsForTest whole(64, 256);
    for (uint32_t i = 0; i < chunks; ++i)
      std::copy(few.bytes[i].begin(), few.bytes[i].end(), whole.places[i]);
    const SymbolsForTest repair = repair_of(*code, few, 0, chunks + 8);
    EXPECT_EQ(repair.bytes, repair_of(*code, whole, 0, chunks + 8).bytes);
    SymbolsForTest damaged(few);
    EXPECT_NE(extra_symbols(*code, &damaged, numbers(0, chunks), repair), UINT32_MAX);
    EXPECT_EQ(damaged.bytes, few.bytes);
  }
}

TEST(RaptorQ, MakesTheSameSymbolWhereverItBegins) {
  std::mt19937_64 random(3);
  const auto code = RaptorQ::make(60);
  const SymbolsForTest source = random_symbols(random, 60, 128);
  const auto all = repair_of(*code, source, 0, 100).bytes;
  for (const uint32_t first : {1U, 50U, 95U}) {
    const auto some = repair_of(*code, source, first, 5).bytes;
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + first)) << first;
  }
  EXPECT_EQ(repair_of(*code, source, RaptorQ::kRepairSymbolsMax - 1, 1).bytes.size(), 1U);
}

TEST(RaptorQ, RefusesWhatIsNoPartOfABlock) {
  std::mt19937_64 random(4);
  const auto code = RaptorQ::make(8);
  SymbolsForTest source = random_symbols(random, 8, 128);
  const SymbolsForTest repair = repair_of(*code, source, 0, 8);
  EXPECT_TRUE(repair_of(*code, source, RaptorQ::kRepairSymbolsMax, 1).bytes.empty());
  EXPECT_TRUE(repair_of(*code, source, UINT32_MAX, 1).bytes.empty());
  EXPECT_TRUE(repair_of(*code, random_symbols(random, 9, 128), 0, 1).bytes.empty());
  const auto decode = [&](std::vector<uint32_t> missing, std::vector<RepairSymbol> here) {
    AlignedBytes arena(code->arena_bytes(128, static_cast<uint32_t>(here.size())));
    return code->decode({.source = source.places, .symbol_bytes = 128, .missing = missing, .repair = here},
                        arena.span());
  };
  const auto symbol = [&](uint32_t id) { return RepairSymbol{.id = id, .bytes = repair.places[id % 8]}; };
  EXPECT_EQ(decode({0, 3}, {symbol(0)}), Coded::kNeedsMore);
  EXPECT_EQ(decode({0, 1}, {symbol(2), symbol(2)}), Coded::kNeedsMore);
  EXPECT_EQ(decode({3, 0}, {symbol(0), symbol(1)}), Coded::kRefused);
  EXPECT_EQ(decode({8}, {symbol(0)}), Coded::kRefused);
  EXPECT_EQ(decode({0}, {symbol(RaptorQ::kRepairSymbolsMax)}), Coded::kRefused);
  EXPECT_EQ(code->decode(
                {.source = source.places, .symbol_bytes = 128, .missing = numbers(0, 1), .repair = {}}, {}),
            Coded::kNeedsMore);
  EXPECT_EQ(RaptorQ::make(0), nullptr);
  EXPECT_EQ(RaptorQ::make(RaptorQ::kSourceSymbolsMax + 1), nullptr);
}

// As many as the crate makes at once are the same symbols as few at a time.
TEST(RaptorQ, MakesFewSymbolsAsTheCrateMakesMany) {
  std::mt19937_64 random(7);
  for (const uint32_t k : {1U, 2U, 10U, 64U, 205U, 256U}) {
    const auto code = RaptorQ::make(k);
    for (const uint32_t chunks : {k, (k + 1) / 2}) {
      const SymbolsForTest source = random_symbols(random, chunks, 1160);
      const auto many = repair_of(*code, source, 0, 270).bytes;
      for (uint32_t first = 0; first < many.size();) {
        const uint32_t count =
            std::min(1 + first % RaptorQ::kFewMax, static_cast<uint32_t>(many.size()) - first);
        const auto few = repair_of(*code, source, first, count).bytes;
        ASSERT_TRUE(std::equal(few.begin(), few.end(), many.begin() + first))
            << "K " << k << ", " << chunks << " chunks, from " << first;
        first += count;
      }
    }
  }
}

// The symbols of a second attempt have high numbers.
TEST(RaptorQ, BringsBackFewByWhateverNumbers) {
  std::mt19937_64 random(8);
  const auto code = RaptorQ::make(64);
  const SymbolsForTest source = random_symbols(random, 64, 1400);
  const SymbolsForTest repair = repair_of(*code, source, 250, 12);
  const std::vector<uint32_t> missing{0, 17, 63};
  for (const std::vector<uint32_t>& used :
       {std::vector<uint32_t>{0, 1, 2, 3}, {4, 6, 5, 3}, {8, 9, 10, 11}}) {
    SymbolsForTest damaged(source);
    for (const uint32_t i : missing) std::fill(damaged.bytes[i].begin(), damaged.bytes[i].end(), 0xEE);
    std::vector<RepairSymbol> here;
    for (const uint32_t i : used) here.push_back({.id = 250 + i, .bytes = repair.places[i]});
    AlignedBytes arena(code->arena_bytes(1400, static_cast<uint32_t>(here.size())));
    EXPECT_EQ(
        code->decode({.source = damaged.places, .symbol_bytes = 1400, .missing = missing, .repair = here},
                     arena.span()),
        Coded::kYes);
    EXPECT_EQ(damaged.bytes, source.bytes);
  }
}

// Some repair symbols say no more than others about what is missing. Then one more is needed, and helps.
TEST(RaptorQ, SaysSoWhereFewDoNotSuffice) {
  std::mt19937_64 random(9);
  const auto code = RaptorQ::make(10);
  const SymbolsForTest source = random_symbols(random, 10, 64);
  const SymbolsForTest repair = repair_of(*code, source, 0, 200);
  uint32_t seen = 0;
  for (uint32_t first = 0; first + 3 <= 200; ++first) {
    for (uint32_t other = 1; other < 10; ++other) {
      const std::vector<uint32_t> missing{0, other};
      SymbolsForTest damaged(source);
      if (decode_for_test(*code, &damaged, missing, repair, numbers(first, 2)) == Coded::kYes) {
        ASSERT_EQ(damaged.bytes, source.bytes);
        continue;
      }
      ++seen;
      if (decode_for_test(*code, &damaged, missing, repair, numbers(first, 3)) == Coded::kYes)
        ASSERT_EQ(damaged.bytes, source.bytes);
    }
  }
  EXPECT_GT(seen, 0U);
  EXPECT_LT(seen, 200U * 9 / 10);
}

// All that a call of the crate allocates lies in its arena, and the arena is not much larger than that.
TEST(RaptorQ, NeedsNoMemoryBesideItsArena) {
  std::mt19937_64 random(5);
  for (const uint32_t k : {63U, 64U, 128U, 250U, 256U}) {
    const auto code = RaptorQ::make(k);
    for (const uint32_t symbol_bytes : {256U, 1400U, 8192U}) {
      const SymbolsForTest source = random_symbols(random, k, symbol_bytes);
      const SymbolsForTest repair = repair_of(*code, source, 0, k + 8);
      EXPECT_EQ(RaptorQ::last_use().missed, 0U) << "K " << k << ", T " << symbol_bytes;
      for (const uint32_t lost : {RaptorQ::kFewMax + 1, k / 2, k}) {
        SymbolsForTest damaged(source);
        const Coded coded =
            decode_for_test(*code, &damaged, random_choice(random, k, lost), repair, numbers(0, lost + 4));
        EXPECT_EQ(coded, Coded::kYes);
        const RaptorQ::ArenaUse use = RaptorQ::last_use();
        EXPECT_EQ(use.missed, 0U) << "K " << k << ", T " << symbol_bytes << ", lost " << lost;
        EXPECT_GT(4 * use.used_max, code->arena_bytes(symbol_bytes, lost + 4));
      }
    }
  }
}

// A block that would not fit is coded all the same.
TEST(RaptorQ, GoesOnWhenItsArenaIsFull) {
  std::mt19937_64 random(6);
  const auto code = RaptorQ::make(32);
  const SymbolsForTest source = random_symbols(random, 32, 512);
  const SymbolsForTest repair = repair_of(*code, source, 0, 8);
  SymbolsForTest damaged(source);
  std::fill(damaged.bytes[5].begin(), damaged.bytes[5].end(), 0);
  const std::vector<RepairSymbol> here{{.id = 0, .bytes = repair.places[0]},
                                       {.id = 1, .bytes = repair.places[1]}};
  AlignedBytes arena(512);
  const std::vector<uint32_t> missing{5};
  EXPECT_EQ(code->decode({.source = damaged.places, .symbol_bytes = 512, .missing = missing, .repair = here},
                         arena.span()),
            Coded::kYes);
  EXPECT_EQ(damaged.bytes, source.bytes);
  EXPECT_GT(RaptorQ::last_use().missed, 0U);
}

// Another version of the crate may number symbols in another way. Nothing but these bytes would tell.
TEST(RaptorQ, MakesTheBytesOfTheDocument) {
  const auto repair_of_pattern = [](uint32_t k) {
    SymbolsForTest source(k, 64);
    for (uint32_t j = 0; j < k; ++j) {
      for (uint32_t i = 0; i < 64; ++i) source.bytes[j][i] = static_cast<uint8_t>(j * 64 + i * 7 + 1);
    }
    return repair_of(*RaptorQ::make(k), source, 0, 4).bytes;
  };
  std::string first_bytes;
  for (uint32_t id = 0; id < 2; ++id) {
    const auto symbol = repair_of_pattern(10)[id];
    first_bytes.append(symbol.begin(), symbol.begin() + 16);
  }
  EXPECT_EQ(first_bytes, base::documented_bytes("raptorq, repair symbols"));
  EXPECT_EQ(digest_of(repair_of_pattern(10)), 0xe2b17bf57bb4aa39);
  EXPECT_EQ(digest_of(repair_of_pattern(63)), 0x1449c16f55eae01b);
  EXPECT_EQ(digest_of(repair_of_pattern(250)), 0x7e8aaea5fcd7bc08);
}

}  // namespace
}  // namespace sluice::coding
