// SPDX-License-Identifier: Apache-2.0
#include "control/hash/several.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::digests {
namespace {

TEST(Several, SayTheSameInPiecesAndOfZerosThatAreNotThere) {
  const Mask all = available();
  const std::string zeros(200'000, '\0');
  const std::string text = "abc" + zeros + "def";
  Result<Several> several = Several::begin(all);
  ASSERT_TRUE(several);
  several->add("ab", 2);
  several->add("c", 1);
  several->add_zeros(zeros.size());
  several->add("def", 3);
  const Values values = several->values();
  EXPECT_EQ(values.size(), kinds_of(all).size());
  EXPECT_EQ(values, *compute(all, text.data(), text.size()));
  for (const Value& value : values) EXPECT_TRUE(good(value)) << name_of(value.kind);
}

TEST(Several, ChecksumsOfAHoleTakeNoTime) {
  const Mask checksums = bit_of(Kind::kAdler32) | bit_of(Kind::kCrc32c) | bit_of(Kind::kCrc64);
  Result<Several> at_once = Several::begin(checksums);
  at_once->add_zeros(255ULL << 40);
  Result<Several> in_two = Several::begin(checksums);
  in_two->add_zeros(254ULL << 40);
  in_two->add_zeros(1ULL << 40);
  EXPECT_EQ(at_once->values(), in_two->values());
}

TEST(Several, NoKindIsNoValue) {
  EXPECT_TRUE(compute(0, "abc", 3)->empty());
  EXPECT_TRUE(check_kinds(0));
  EXPECT_TRUE(check_kinds(bit_of(Kind::kSha256) | bit_of(Kind::kAdler32)));
}

}  // namespace
}  // namespace sluice::digests
