// When a sender compresses: never where its core would be slower than the network, and ever more seldom where
// it is of no use.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/coding/compress_choice.h"

#include <gtest/gtest.h>

namespace sluice::coding {
namespace {

using Next = CompressChoice::Next;
constexpr uint32_t kExtent = 1U << 20;
constexpr uint64_t kSlow = 100'000'000;

CompressSpeed speed_of(double fast_bps, double short_bps) {
  CompressSpeed speed;
  for (int i = 0; i < 200; ++i) {
    speed.took(Effort::kFast, kExtent, static_cast<uint64_t>(kExtent * 8e9 / fast_bps));
    speed.took(Effort::kShort, kExtent, static_cast<uint64_t>(kExtent * 8e9 / short_bps));
  }
  return speed;
}

TEST(CompressChoice, CompressesWhereTheCoreIsWellAheadOfTheNetwork) {
  CompressChoice choice(false);
  const CompressSpeed speed = speed_of(4e9, 2e9);
  EXPECT_EQ(choice.next(kExtent, kSlow, false, speed), Next::kCompress);
  EXPECT_EQ(choice.next(kExtent, 1'990'000'000, false, speed), Next::kCompress);
  EXPECT_EQ(choice.next(kExtent, 2'010'000'000, false, speed), Next::kNotNow);
  EXPECT_EQ(choice.next(kExtent, 40'000'000'000, false, speed), Next::kNotNow);
  EXPECT_EQ(CompressChoice::effort(kSlow, speed), Effort::kShort);
  EXPECT_EQ(CompressChoice::effort(600'000'000, speed), Effort::kFast);
}

TEST(CompressChoice, TheRateOfASessionThatBeginsSaysNothingOfTheNetwork) {
  CompressChoice choice(false);
  EXPECT_EQ(choice.next(kExtent, kSlow, true, speed_of(4e9, 2e9)), Next::kNotNow);
  EXPECT_EQ(CompressChoice(true).next(kExtent, kSlow, true, speed_of(4e9, 2e9)), Next::kCompress);
}

TEST(CompressChoice, ASlowCoreIsMeasured) {
  CompressChoice choice(false);
  EXPECT_EQ(choice.next(kExtent, 500'000'000, false, CompressSpeed()), Next::kCompress);
  EXPECT_EQ(choice.next(kExtent, 500'000'000, false, speed_of(0.8e9, 0.4e9)), Next::kNotNow);
}

TEST(CompressChoice, DataThatDoNotGetShorterAreTriedEverMoreSeldom) {
  CompressChoice choice(false);
  const CompressSpeed speed;
  uint32_t tried = 0;
  for (int i = 0; i < 1000; ++i) {
    if (choice.next(kExtent, kSlow, false, speed) != Next::kCompress) continue;
    ++tried;
    choice.did_not();
  }
  EXPECT_LE(tried, 1000 / CompressChoice::kSkippedMax + 8);
  EXPECT_GE(tried, 1000 / (CompressChoice::kSkippedMax + 1) - 1) << "other data may follow";
  EXPECT_DOUBLE_EQ(choice.share(), 1);

  while (choice.next(kExtent, kSlow, false, speed) != Next::kCompress) continue;
  choice.got_shorter(kExtent, kExtent / 4);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(choice.next(kExtent, kSlow, false, speed), Next::kCompress);
    choice.got_shorter(kExtent, kExtent / 4);
  }
  EXPECT_NEAR(choice.share(), 0.25, 0.01);
  choice.did_not();
  EXPECT_EQ(choice.next(kExtent, kSlow, false, speed), Next::kCompress) << "one alone says little";
}

TEST(CompressChoice, WhatIsDemandedIsTriedAlways) {
  CompressChoice choice(true);
  const CompressSpeed speed = speed_of(1e8, 1e8);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(choice.next(kExtent, 100'000'000'000, false, speed), Next::kCompress);
    choice.did_not();
  }
  EXPECT_EQ(choice.next(CompressChoice::kPlainBytesMin - 1, kSlow, false, speed), Next::kPlain)
      << "too short";
  EXPECT_EQ(CompressChoice::effort(100'000'000'000, speed), Effort::kFast);
}

}  // namespace
}  // namespace sluice::coding
