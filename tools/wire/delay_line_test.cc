// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/delay_line.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tools/wire/random.h"

namespace sluice::emulator {
namespace {

using Bytes = std::vector<uint8_t>;

TEST(DelayLine, GivesBackInOrderOfTimeAndEqualTimesAsTheyCame) {
  DelayLine line(1ULL << 30);
  struct Sent {
    uint64_t deliver_ns;
    Bytes bytes;
  };
  std::vector<Sent> sent;
  for (uint64_t i = 0; i < 20'000; ++i) {
    Draws draws(1, i, Stage::kDelay);
    sent.push_back({draws.below(500), Bytes(draws.below(9100))});
    for (size_t at = 0; at + 8 <= sent.back().bytes.size(); at += 512) {
      std::copy_n(reinterpret_cast<const uint8_t*>(&i), 8,
                  sent.back().bytes.begin() + static_cast<ptrdiff_t>(at));
    }
    ASSERT_TRUE(line.add(sent.back().bytes, sent.back().deliver_ns));
  }
  std::ranges::stable_sort(sent, {}, &Sent::deliver_ns);
  for (const Sent& expected : sent) {
    ASSERT_FALSE(line.empty());
    ASSERT_EQ(line.front_ns(), expected.deliver_ns);
    ASSERT_TRUE(std::ranges::equal(line.front(), expected.bytes));
    line.pop();
  }
  EXPECT_TRUE(line.empty());
}

TEST(DelayLine, HoldsNoMoreThanItsBytes) {
  DelayLine line(10 * 256);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(line.add(Bytes(200), 5));
  EXPECT_FALSE(line.add(Bytes(1), 5));
  EXPECT_EQ(line.size(), 10U);
  line.pop();
  EXPECT_FALSE(line.add(Bytes(257), 5));
  EXPECT_TRUE(line.add(Bytes(256), 5));
  EXPECT_EQ(line.bytes_peak(), 2560U);
  EXPECT_FALSE(DelayLine(1ULL << 30).add(Bytes(65537), 0));
}

TEST(DelayLine, KeepsFramesApartWhileBuffersAreUsedAgain) {
  DelayLine line(1ULL << 30);
  for (uint64_t round = 0; round < 2000; ++round) {
    ASSERT_TRUE(line.add(Bytes(300, static_cast<uint8_t>(round)), round));
    if (round >= 5) {
      ASSERT_TRUE(std::ranges::equal(line.front(), Bytes(300, static_cast<uint8_t>(round - 5))));
      line.pop();
    }
  }
}

}  // namespace
}  // namespace sluice::emulator
