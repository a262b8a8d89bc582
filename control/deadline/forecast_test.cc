// SPDX-License-Identifier: Apache-2.0
#include "control/deadline/forecast.h"

#include <gtest/gtest.h>

namespace sluice::deadline {
namespace {

using Answer = Forecast::Answer;

constexpr int64_t kNoonNs = 1'795'348'800'000'000'000;  // 2026-11-22T12:00:00Z

Speed measured(double mean_bps, Limit limit = Limit::kPath) {
  return {.mean_bps = mean_bps, .deviation_bps = mean_bps / 20, .samples = 30, .limit = limit};
}

// 800 Mbit within 10 s.
Question question() { return {.bytes_left = 100'000'000, .seconds_left = 10, .cap_bps = 1e9}; }

TEST(Forecast, ACapThatIsTooLowNeedsNoMeasurement) {
  Question asked = question();
  asked.cap_bps = 40e6;
  const Forecast forecast = judge(asked);
  EXPECT_EQ(forecast.answer, Answer::kRefused);
  EXPECT_EQ(forecast.limit, Limit::kCap);
  EXPECT_DOUBLE_EQ(forecast.needed_bps, 80e6);
  EXPECT_DOUBLE_EQ(forecast.have_bps, 40e6);
  EXPECT_DOUBLE_EQ(*forecast.earliest_s, 20);
}

TEST(Forecast, WhatASessionTakesBesidesMovingDataCounts) {
  Question asked = question();
  asked.speed = measured(160e6);
  asked.besides_s = 2;
  EXPECT_EQ(judge(asked).answer, Answer::kKept);
  asked.besides_s = 6;
  Forecast forecast = judge(asked);
  EXPECT_EQ(forecast.answer, Answer::kRefused);
  ASSERT_TRUE(forecast.earliest_s);
  EXPECT_GT(*forecast.earliest_s, 11);
  asked.seconds_left = *forecast.earliest_s;
  EXPECT_EQ(judge(asked).answer, Answer::kKept) << "what was offered is accepted";
  asked = question();
  asked.seconds_left = 1;
  asked.besides_s = 1.5;
  forecast = judge(asked);
  EXPECT_EQ(forecast.answer, Answer::kRefused) << "whatever the speed is";
  const std::string text = refusal(forecast, asked, kNoonNs, kNoonNs - 1'000'000'000).message;
  EXPECT_NE(text.find("took 1.5 s to begin and to end, and 1.0 s are left"), std::string::npos) << text;
}

TEST(Forecast, WithoutAMeasurementNobodyKnows) { EXPECT_EQ(judge(question()).answer, Answer::kUnknown); }

TEST(Forecast, NamesWhatHeldTheSamplesDown) {
  for (const Limit limit : {Limit::kPath, Limit::kSourceDisk, Limit::kDestinationDisk}) {
    Question asked = question();
    asked.speed = measured(60e6, limit);
    const Forecast forecast = judge(asked);
    EXPECT_EQ(forecast.answer, Answer::kRefused);
    EXPECT_EQ(forecast.limit, limit);
    EXPECT_DOUBLE_EQ(forecast.have_bps, 60e6);
    ASSERT_TRUE(forecast.earliest_s);
    EXPECT_GT(*forecast.earliest_s, 800.0 / 60);
    asked.seconds_left = *forecast.earliest_s;
    EXPECT_EQ(judge(asked).answer, Answer::kKept) << "what was offered is accepted";
    asked.speed = measured(100e6, limit);
    EXPECT_EQ(judge(asked).answer, Answer::kKept);
  }
}

TEST(Forecast, OtherSessionsCountOnlyWhereTheyMatter) {
  Question asked = question();
  asked.speed = measured(200e6);
  asked.ahead_s = 5;
  EXPECT_EQ(judge(asked).answer, Answer::kKept);
  asked.ahead_s = 8;
  const Forecast forecast = judge(asked);
  EXPECT_EQ(forecast.answer, Answer::kRefused);
  EXPECT_EQ(forecast.limit, Limit::kQueue);
  EXPECT_GE(*forecast.earliest_s, 12);
  asked.seconds_left = *forecast.earliest_s;
  EXPECT_EQ(judge(asked).answer, Answer::kKept);
  asked.speed = measured(60e6);
  asked.seconds_left = 10;
  EXPECT_EQ(judge(asked).limit, Limit::kPath) << "it would be too slow alone";
}

TEST(Forecast, WhatACapHeldDownProvesNothingAgainstADeadline) {
  Question asked = question();
  asked.speed = measured(60e6);
  asked.speed->at_least = true;
  EXPECT_EQ(judge(asked).answer, Answer::kUnknown);
  asked.speed->mean_bps = 200e6;
  EXPECT_EQ(judge(asked).answer, Answer::kKept);
}

TEST(Forecast, NothingLeftIsInTimeAndAMomentThatHasPassedIsNot) {
  Question asked = question();
  asked.speed = measured(1e9);
  asked.bytes_left = 0;
  EXPECT_EQ(judge(asked).answer, Answer::kKept);
  asked.bytes_left = 1;
  for (const double seconds : {0.0, -5.0}) {
    asked.seconds_left = seconds;
    EXPECT_EQ(judge(asked).answer, Answer::kRefused);
  }
}

TEST(Refusal, NamesTheDeadlineTheReasonAndTheRemedy) {
  Question asked = question();
  asked.cap_bps = 40e6;
  const Error error = refusal(judge(asked), asked, kNoonNs + 10'000'000'000, kNoonNs);
  EXPECT_EQ(error.code, ErrorCode::kDeadline);
  for (const char* word : {"2026-11-22T12:00:10Z", "80.000 Mbit/s", "--rate", "40.000 Mbit/s",
                           "2026-11-22T12:00:21Z could be", "--deadline-policy warn"}) {
    EXPECT_NE(error.message.find(word), std::string::npos) << word << " in: " << error.message;
  }
  asked.cap_bps = 1e9;
  asked.speed = Speed{.mean_bps = 60e6, .deviation_bps = 600e6, .samples = 3};
  EXPECT_NE(refusal(judge(asked), asked, kNoonNs, kNoonNs).message.find("no time can be named"),
            std::string::npos);
  asked.seconds_left = -1;
  EXPECT_NE(refusal(judge(asked), asked, kNoonNs, kNoonNs).message.find("it is over"), std::string::npos);
}

}  // namespace
}  // namespace sluice::deadline
