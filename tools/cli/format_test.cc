// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/format.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice::cli {
namespace {

TEST(Format, BytesHaveThreeDigitsAndBinaryUnits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(460ULL << 20), "460 MiB");
  EXPECT_EQ(format_bytes((1ULL << 30) - 1), "1.00 GiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16.0 EiB");
}

TEST(Format, RatesHaveDecimalUnits) {
  EXPECT_EQ(format_rate(0), "0 bit/s");
  EXPECT_EQ(format_rate(8.214e9), "8.21 Gbit/s");
  EXPECT_EQ(format_rate(999.9e6), "1.00 Gbit/s");
  EXPECT_EQ(format_rate(100e9), "100 Gbit/s");
  EXPECT_EQ(format_rate(NAN), "0 bit/s");
}

TEST(Format, DurationsAndPercents) {
  EXPECT_EQ(format_duration(7.4), "0:07");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(format_duration(1e30), "-");
  EXPECT_EQ(format_percent(0), "0 %");
  EXPECT_EQ(format_percent(0.00001), "<0.01 %");
  EXPECT_EQ(format_percent(0.0123), "1.23 %");
  EXPECT_EQ(format_percent(0.9999), "99 %");
  EXPECT_EQ(format_percent(1), "100 %");
}

TEST(Width, CountsColumnsAndShortensFromTheFront) {
  EXPECT_EQ(display_width("größe"), 5U);
  EXPECT_EQ(display_width("数据"), 4U);
  EXPECT_EQ(shorten("abcdef", 6), "abcdef");
  EXPECT_EQ(shorten("abcdef", 4), "…def");
  EXPECT_LE(display_width(shorten("数据数据", 4)), 4U);
  EXPECT_EQ(shorten("abc", 0), "");
}

TEST(WrapWords, BreaksAtBlanksAndKeepsEveryWord) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrap_words("", 10), Lines{});
  EXPECT_EQ(wrap_words("one two three", 13), (Lines{"one two three"}));
  EXPECT_EQ(wrap_words("one two three", 12), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap_words("up to 3.85 Gbit/s", 12), (Lines{"up to", "3.85 Gbit/s"}));
  EXPECT_EQ(wrap_words("line 7", 5), (Lines{"line", "7"}));
  EXPECT_EQ(wrap_words("/a/path/that/is/long", 8), (Lines{"/a/path/", "that/is/", "long"}));
  EXPECT_EQ(wrap_words("数据 数据", 4), (Lines{"数据", "数据"}));
}

}  // namespace
}  // namespace sluice::cli
