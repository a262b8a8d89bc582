// SPDX-License-Identifier: Apache-2.0
#include "dataplane/crc/adler32.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace sluice::adler32 {
namespace {

// Straight from RFC 1950.
uint32_t by_definition(const std::vector<uint8_t>& bytes) {
  uint32_t a = 1;
  uint32_t b = 0;
  for (const uint8_t byte : bytes) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

TEST(Adler32, KnownValues) {
  const std::string text = "Wikipedia";
  EXPECT_EQ(compute(kOfNothing, text.data(), text.size()), 0x11E60398U);
  EXPECT_EQ(compute(kOfNothing, nullptr, 0), 1U);
  EXPECT_EQ(of_zeros(0), 1U);
}

TEST(Adler32, AnyCutGivesTheSame) {
  std::mt19937 random(7);
  for (const size_t size : {1U, 2U, 31U, 65521U, 200'003U}) {
    for (const bool all_ones : {false, true}) {
      std::vector<uint8_t> bytes(size, 0xFF);
      if (!all_ones) {
        for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
      }
      const uint32_t whole = by_definition(bytes);
      EXPECT_EQ(compute(kOfNothing, bytes.data(), size), whole) << size;
      for (const size_t cut : {size_t{0}, size_t{1}, size / 2, size - 1, size}) {
        const uint32_t first = compute(kOfNothing, bytes.data(), cut);
        const uint32_t second = compute(kOfNothing, bytes.data() + cut, size - cut);
        EXPECT_EQ(compute(first, bytes.data() + cut, size - cut), whole) << size << " at " << cut;
        EXPECT_EQ(combine(first, second, size - cut), whole) << size << " at " << cut;
      }
    }
  }
}

TEST(Adler32, ZerosOfAnyLength) {
  for (const size_t size : {1U, 4096U, 65520U, 65521U, 65522U, 300'000U})
    EXPECT_EQ(of_zeros(size), by_definition(std::vector<uint8_t>(size))) << size;
  const uint64_t half = 1ULL << 62;
  EXPECT_EQ(combine(of_zeros(half), of_zeros(half), half), of_zeros(2 * half));
}

}  // namespace
}  // namespace sluice::adler32
