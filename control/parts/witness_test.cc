// Who is asked for which digests, so that one source says the whole.
// SPDX-License-Identifier: Apache-2.0
#include "control/parts/witness.h"

#include <gtest/gtest.h>

namespace sluice::parts {
namespace {

constexpr LegId kFirst(0);
constexpr LegId kSecond(1);
constexpr uint64_t kWitnessExtent = 65536;

ExtentRun witnessed(uint64_t first, uint64_t end) { return {.first = ExtentId(first), .end = ExtentId(end)}; }

Witness witness_of(uint64_t extents) {
  return {ObjectId(0),
          {.size_bytes = extents * kWitnessExtent,
           .extent_bytes = kWitnessExtent,
           .crc_kind = crc::CrcKind::kCrc64Ecma},
          {}};
}

Range bytes(uint64_t first, uint64_t end) {
  return {.offset = first * kWitnessExtent, .length = (end - first) * kWitnessExtent};
}

TEST(Witness, IsNotNeededWhileOneSourceSends) {
  Witness one = witness_of(4);
  one.asked(kFirst, witnessed(0, 4));
  EXPECT_FALSE(one.needed());
  one.asked(kSecond, witnessed(3, 4));
  EXPECT_TRUE(one.needed());
}

TEST(Witness, IsAskedForWhatOthersSendAndNoMoreThanMayWait) {
  Witness one = witness_of(6);
  one.asked(kFirst, witnessed(0, 2));
  one.choose(kFirst);
  one.asked(kSecond, witnessed(2, 6));
  const std::optional<Portion> question = one.take_question(3);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->leg, kFirst);
  EXPECT_EQ(question->ranges, std::vector<Range>{bytes(2, 5)});
  EXPECT_EQ(one.unanswered(kFirst), 3U);
  one.said(kFirst, ExtentId(0), std::vector<uint64_t>{1, 2, 3});
  EXPECT_EQ(one.answers(), 1U) << "two of them are of what it sends";
  EXPECT_EQ(one.unanswered(kFirst), 2U);
}

TEST(Witness, IsAskedForWhatItDoesNotSendAfterAll) {
  Witness one = witness_of(4);
  one.asked(kFirst, witnessed(0, 2));
  one.asked(kSecond, witnessed(2, 4));
  one.choose(kFirst);
  ASSERT_TRUE(one.take_question(16));
  one.said(kFirst, ExtentId(2), std::vector<uint64_t>{3, 4});
  EXPECT_EQ(one.answers(), 2U);
  one.all_sent();
  one.asked(kFirst, witnessed(0, 2));  // again, on a new stream, though another has brought it meanwhile
  EXPECT_TRUE(one.idle());
  EXPECT_FALSE(one.digest());
  one.all_sent();
  const std::optional<Portion> question = one.take_question(16);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->ranges, std::vector<Range>{bytes(0, 2)});
  one.said(kFirst, ExtentId(0), std::vector<uint64_t>{1, 2});
  EXPECT_TRUE(one.digest());
}

TEST(Witness, ASilentOneStillOwesWhatItWasAsked) {
  Witness one = witness_of(4);
  one.asked(kFirst, witnessed(0, 1));
  one.asked(kSecond, witnessed(1, 4));
  one.choose(kFirst);
  ASSERT_TRUE(one.take_question(2));
  one.dismiss(kFirst);
  EXPECT_FALSE(one.witness());
  EXPECT_EQ(one.unanswered(kFirst), 2U);
  one.choose(kFirst);
  const std::optional<Portion> question = one.take_question(16);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->ranges, std::vector<Range>{bytes(3, 4)}) << "and is not asked twice";
  one.leave(kFirst);
  EXPECT_EQ(one.unanswered(kFirst), 0U);
  one.choose(kFirst);
  EXPECT_EQ(one.take_question(16)->ranges, std::vector<Range>{bytes(1, 4)}) << "it has another stream";
}

}  // namespace
}  // namespace sluice::parts
