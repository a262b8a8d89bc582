// SPDX-License-Identifier: Apache-2.0
#include "control/digests/named.h"

#include <gtest/gtest.h>

namespace sluice::digests {
namespace {

Value md5(char digit) { return {.kind = Kind::kMd5, .hex = std::string(32, digit)}; }

TEST(Named, ADifferenceNamesTheKindAndBothValues) {
  const Value crc{.kind = Kind::kCrc32c, .hex = "00c0ffee"};
  EXPECT_EQ(difference({}, {md5('a')}), "");
  EXPECT_EQ(difference({md5('a')}, {crc, md5('a')}), "");
  const std::string told = difference({crc, md5('a')}, {crc, md5('b')});
  EXPECT_NE(told.find("md5 is " + std::string(32, 'b')), std::string::npos) << told;
  EXPECT_NE(told.find(std::string(32, 'a')), std::string::npos) << told;
  EXPECT_NE(difference({md5('a')}, {crc}), "") << "what was not computed is not as it should be";
}

TEST(Named, AListIsLookedUpByWholePaths) {
  const auto list = std::make_shared<const Expected>(Expected{{"a/b", {md5('a')}}, {"c", {md5('b')}}});
  EXPECT_EQ(expected_of(list, "a/b"), Values{md5('a')});
  EXPECT_TRUE(expected_of(list, "b").empty());
  EXPECT_TRUE(expected_of(nullptr, "c").empty());
  EXPECT_EQ(mask_of(*list), bit_of(Kind::kMd5));
  EXPECT_EQ(bytes_of(*list), 4U + 64U);
}

TEST(Named, OnlyDigitsOfTheKindsLengthAreGood) {
  EXPECT_TRUE(good(md5('a')));
  EXPECT_FALSE(good(md5('A')));
  EXPECT_FALSE(good({.kind = Kind::kMd5, .hex = "00"}));
}

TEST(Kinds, AMaskAndAListAreTheSame) {
  EXPECT_EQ(kinds_of(mask_of(std::vector{Kind::kSha256, Kind::kMd5})),
            (std::vector{Kind::kMd5, Kind::kSha256}));
  EXPECT_EQ(kinds_of(kAllKinds).size(), kKinds.size());
  EXPECT_TRUE(kinds_of(~kAllKinds).empty()) << "of a later version";
  EXPECT_EQ(names_of(bit_of(Kind::kSha256) | bit_of(Kind::kBlake3)), "blake3, sha256");
}

}  // namespace
}  // namespace sluice::digests
