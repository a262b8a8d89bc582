// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/text.h"

#include <gtest/gtest.h>

namespace sluice::base {
namespace {

TEST(Printable, StaysOnItsLineAndSteersNothing) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc"), "a?[2Jb?c");
  EXPECT_EQ(printable("\xc2\x9b"), "?");            // C1: the one-character form of ESC [
  EXPECT_EQ(printable("\xe2\x80\xaegpj"), "?gpj");  // right-to-left override
  EXPECT_EQ(printable("\xff\xc0\xaf"), "???");
  EXPECT_EQ(printable("größe.bin"), "größe.bin");
}

TEST(Printable, WhatIsTooLongIsCutBetweenCharacters) {
  EXPECT_EQ(printable("12345678", 8), "12345678");
  EXPECT_EQ(printable("123456789", 8), "12345…");
  EXPECT_EQ(printable("数据", 6), "数据");
  EXPECT_EQ(printable("数据数", 6), "数…");
  EXPECT_EQ(printable("数据", 5), "…");
  const std::string wide =
      "a数é\n\xff"
      "😀z";
  for (size_t bytes_max = 3; bytes_max < 20; ++bytes_max) {
    const std::string cut = printable(wide, bytes_max);
    EXPECT_LE(cut.size(), bytes_max);
    EXPECT_TRUE(is_utf8(cut)) << cut;
    EXPECT_EQ(printable(cut, bytes_max), cut) << "what is printable stays so";
  }
}

TEST(Utf8, IsTheShortestFormOfACharacterThatThereIs) {
  EXPECT_TRUE(is_utf8("größe 数据"));
  EXPECT_FALSE(is_utf8("\xc0\xaf"));
  EXPECT_FALSE(is_utf8("\xed\xa0\x80"));
  EXPECT_FALSE(is_utf8("\xf4\x90\x80\x80"));
  EXPECT_FALSE(is_utf8("\xe2\x82"));
}

}  // namespace
}  // namespace sluice::base
