// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/when.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace sluice::cli {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kNoon = 1'795'348'800 * kSecond;  // 2026-11-22T12:00:00Z, 13:00 in Berlin

class WhenTest : public ::testing::Test {
 protected:
  void SetUp() override { zone("CET-1CEST,M3.5.0,M10.5.0/3"); }
  void TearDown() override {
    ::unsetenv("TZ");
    ::tzset();
  }
  static void zone(const char* name) {
    ::setenv("TZ", name, 1);
    ::tzset();
  }
  // Seconds from noon.
  static int64_t at(const std::string& text) {
    const Result<int64_t> when = parse_when(text, kNoon);
    EXPECT_TRUE(when) << (when ? "" : when.error().message);
    return when ? (*when - kNoon) / kSecond : -1;
  }
  static void refused(const std::string& text, const std::string& why) {
    const Result<int64_t> when = parse_when(text, kNoon);
    ASSERT_FALSE(when) << text;
    EXPECT_EQ(when.error().code, ErrorCode::kUsage);
    EXPECT_NE(when.error().message.find("'" + text + "'"), std::string::npos) << when.error().message;
    EXPECT_NE(when.error().message.find(why), std::string::npos) << when.error().message;
    EXPECT_NE(when.error().message.find("2h30m"), std::string::npos) << "names no remedy";
  }
};

TEST_F(WhenTest, ASpanCountsFromNow) {
  EXPECT_EQ(at("90s"), 90);
  EXPECT_EQ(at("2h30m"), 9000);
  EXPECT_EQ(at("+45m"), 2700);
  EXPECT_EQ(at("1d1h1m1s"), 90061);
}

TEST_F(WhenTest, HowLongSomethingLastsIsASpanAlone) {
  EXPECT_EQ(*parse_span("365d"), 365 * 86'400);
  EXPECT_EQ(*parse_span("2h30m"), 9000);
  for (const char* const text : {"1x", "", "18:00", "2026-11-22", "0s", "99999d", "12"}) {
    const Result<int64_t> wrong = parse_span(text);
    ASSERT_FALSE(wrong) << text;
    EXPECT_EQ(
        wrong.error().message,
        "'" + std::string(text) + "' is no span between a second and ten years: write 90s, 2h30m or 365d");
  }
}

TEST_F(WhenTest, ATimeOfDayIsTheNextOneHere) {
  EXPECT_EQ(at("18:00"), 5 * 3600);
  EXPECT_EQ(at("13:00:01"), 1);
  EXPECT_EQ(at("13:00"), 86400) << "now is over";
  EXPECT_EQ(at("9:30"), 20 * 3600 + 1800);
  zone("UTC0");
  EXPECT_EQ(at("18:00"), 6 * 3600);
}

TEST_F(WhenTest, ADateHasAZoneOrIsLocal) {
  EXPECT_EQ(at("2026-11-22T18:00:00Z"), 6 * 3600);
  EXPECT_EQ(at("2026-11-22T18:00:00+01:00"), 5 * 3600);
  EXPECT_EQ(at("2026-11-22T18:00-0530"), 11 * 3600 + 1800);
  EXPECT_EQ(at("2026-11-22T18:00"), 5 * 3600);
  EXPECT_EQ(at("2026-11-23 13:00"), 86400);
}

TEST_F(WhenTest, WhatIsWrongIsNamed) {
  refused("", "no span");
  refused("+", "no span");
  refused("0s", "no span");
  refused("99999d", "no span");
  refused("5", "is no time");
  refused("30m2h", "is no time");
  refused("1.5h", "is no time");
  refused("-5m", "is no time");
  refused("tomorrow", "is no time");
  refused("25:00", "no time of day");
  refused("12:60", "no time of day");
  refused("2026-02-30T10:00Z", "no date");
  refused("2026-13-01T10:00Z", "no date");
  refused("2026-11-22T10:00+25:00", "no such time zone");
  refused("2026-11-22T12:00:00Z", "has passed");
  refused("1969-01-01T00:00:00Z", "no date");
  refused("2999-01-01T00:00:00Z", "ten years");
  refused(std::string(5000, '1'), "is no time");
}

TEST_F(WhenTest, IsShownInLocalTimeWithTheDateOfAnotherDay) {
  EXPECT_EQ(format_when(kNoon + 3600 * kSecond, kNoon), "14:00:00");
  EXPECT_EQ(format_when(kNoon + 86400 * kSecond, kNoon), "2026-11-23 13:00:00");
}

TEST_F(WhenTest, SinceCountsBackwards) {
  const auto ago = [](const std::string& text) {
    const Result<int64_t> when = parse_since(text, kNoon);
    EXPECT_TRUE(when) << text;
    return when ? (kNoon - *when) / kSecond : -1;
  };
  EXPECT_EQ(ago("2h30m"), 9000);
  EXPECT_EQ(ago("7d"), 7 * 86400);
  EXPECT_EQ(ago("12:00"), 3600);
  EXPECT_EQ(ago("18:00"), 19 * 3600) << "yesterday's";
  EXPECT_EQ(ago("13:00"), 0);
  EXPECT_EQ(ago("2026-11-21"), 86400 + 13 * 3600) << "from the beginning of the day";
  EXPECT_EQ(ago("2026-11-22T11:00:00Z"), 3600);
  EXPECT_FALSE(parse_since("2026-11-23", kNoon));
  EXPECT_FALSE(parse_since("2999-01-01", kNoon));
  EXPECT_FALSE(parse_since("yesterday", kNoon));
  EXPECT_FALSE(parse_when("2026-11-23", kNoon)) << "its beginning, or its end?";
}

TEST_F(WhenTest, ADateOfAListIsTwelveColumnsWide) {
  EXPECT_EQ(format_date(kNoon, kNoon), "Nov 22 13:00");
  EXPECT_EQ(format_date(kNoon - 20LL * 86400 * kSecond, kNoon), "Nov  2 13:00");
  EXPECT_EQ(format_date(kNoon - 300LL * 86400 * kSecond, kNoon), "Jan 26  2026");
}

}  // namespace
}  // namespace sluice::cli
