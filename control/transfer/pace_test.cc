// How a session gets on against its deadline, second by second.
// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/pace.h"

#include <gtest/gtest.h>

namespace sluice::transfer {
namespace {

using deadline::Limit;
using deadline::Policy;

constexpr int64_t kStartUnixNs = 1'795'348'800'000'000'000;
constexpr uint64_t kMb = 1'000'000;

// A session with so much to do, that looks at itself every second.
struct Session {
  ThisNode settings;
  Pace pace{settings, "s"};
  Pace::Sight sight;
  uint64_t now_ns = 1000 * kSecondNs;
  const uint64_t start_ns = now_ns;
  Effects out;
  std::optional<Error> error;
  std::vector<std::string> logs;

  Session(uint64_t bytes, double deadline_s, Policy policy = Policy::kRefuse) {
    pace.set_deadline(kStartUnixNs + static_cast<int64_t>(deadline_s * 1e9), policy);
    sight.stage = Pace::Stage::kMoves;
    sight.size_known = true;
    sight.load = {.path = {.peer = "beta"}, .bytes_left = bytes, .cap_bps = 1e10};
    look();
  }
  void look() {
    sight.unix_now_ns = kStartUnixNs + static_cast<int64_t>(now_ns - start_ns);
    if (auto why = pace.look(sight, now_ns, out)) error = why;
    for (const Effect& effect : out.drain()) logs.push_back(std::get<Log>(effect).text);
  }
  void pass(int seconds, double rate_bps, Limit limit = Limit::kPath) {
    for (int i = 0; i < seconds && !error; ++i) {
      now_ns += kSecondNs;
      const auto bytes = static_cast<uint64_t>(rate_bps / 8);
      if (sight.stage == Pace::Stage::kMoves) {
        sight.bytes_arrived += bytes;
        sight.load.bytes_left -= std::min(bytes, sight.load.bytes_left);
      }
      sight.limit = limit;
      look();
    }
  }
  DeadlineView view() const { return *pace.view(sight, now_ns); }
  bool says(const std::string& words) const {
    return std::any_of(logs.begin(), logs.end(),
                       [&](const std::string& log) { return log.find(words) != std::string::npos; });
  }
};

TEST(Pace, WhoMovesWaitsForNobodyWhoWaits) {
  Session run(1000 * kMb, 200);
  deadline::Outlook& outlook = *run.settings.outlook;
  outlook.set("before", {.path = {.peer = "beta"}, .running = true, .bytes_left = kMb});
  for (int i = 0; i < 10; ++i) outlook.sample("before", {.rate_bps = 80e6 + i}, run.now_ns);
  outlook.remove("before");
  run.look();
  const auto alone = run.view().expected_end_unix_ns;
  ASSERT_GT(alone, 0);
  outlook.set("waits",
              {.path = {.peer = "beta"}, .order = -1, .bytes_left = 100 * 1000 * kMb, .cap_bps = 1e10});
  EXPECT_EQ(run.view().expected_end_unix_ns, alone);
}

// Each session was over before its rate could be measured, and late; and the next one was admitted as if
// nothing were known.
TEST(Pace, ASessionIsNotExpectedToBeFasterThanSmallerOnesWere) {
  deadline::Outlook outlook;
  const uint64_t now_ns = 1000 * kSecondNs;
  const deadline::Load load{
      .path = {.peer = "beta"}, .order = INT64_MAX, .bytes_left = 2 * kMb, .cap_bps = 1e10};
  const auto answer = [&](int64_t left_s) {
    return deadline::judge(foresee(outlook, load, left_s * static_cast<int64_t>(kSecondNs), now_ns)).answer;
  };
  EXPECT_EQ(answer(1), deadline::Forecast::Answer::kUnknown);
  outlook.ended(load.path, {.bytes = kMb, .seconds = 2.5}, now_ns - kSecondNs);
  EXPECT_EQ(answer(1), deadline::Forecast::Answer::kRefused);
  EXPECT_EQ(answer(4), deadline::Forecast::Answer::kUnknown);
}

TEST(Pace, ASessionOnAnUnknownPathIsMeasuredAndThenAdmitted) {
  Session run(1000 * kMb, 200);
  EXPECT_EQ(run.view().state, DeadlineState::kMeasuring);
  EXPECT_FALSE(run.view().chance) << "nobody can say";
  run.pass(8, 80e6);
  EXPECT_EQ(run.view().state, DeadlineState::kMeasuring);
  ASSERT_TRUE(run.view().chance) << "said before it is judged";
  run.pass(4, 80e6);
  EXPECT_FALSE(run.error);
  EXPECT_EQ(run.view().state, DeadlineState::kAdmitted);
  EXPECT_TRUE(run.pace.take_judged());
  EXPECT_FALSE(run.pace.take_judged()) << "once";
  EXPECT_GT(*run.view().chance, 0.95);
  EXPECT_NEAR(static_cast<double>(*run.view().expected_end_unix_ns - kStartUnixNs) * 1e-9, 100, 1);
}

TEST(Pace, OnePathThatIsTooSlowEndsItBeforeItWastesHours) {
  for (const auto& [limit, words] : {std::pair(Limit::kPath, "the path was measured to carry"),
                                     std::pair(Limit::kSourceDisk, "the source's disk"),
                                     std::pair(Limit::kDestinationDisk, "the destination's disk")}) {
    Session run(100'000 * kMb, 200);
    run.pass(30, 80e6, limit);
    ASSERT_TRUE(run.error);
    EXPECT_LE(run.now_ns - run.start_ns, 12 * kSecondNs);
    EXPECT_EQ(run.error->code, ErrorCode::kDeadline);
    EXPECT_NE(run.error->message.find(words), std::string::npos) << run.error->message;
    EXPECT_NE(run.error->message.find("80.000 Mbit/s"), std::string::npos) << run.error->message;
  }
}

TEST(Pace, TheBeginningDoesNotCount) {
  Session run(1000 * kMb, 150);
  run.pass(3, 1e6);
  run.pass(10, 80e6);
  EXPECT_FALSE(run.error);
  EXPECT_EQ(run.view().state, DeadlineState::kAdmitted);
}

TEST(Pace, WithWarnItOnlySaysSo) {
  Session run(100'000 * kMb, 200, Policy::kWarn);
  run.pass(30, 80e6);
  EXPECT_FALSE(run.error);
  EXPECT_EQ(run.view().state, DeadlineState::kDoubtful);
  EXPECT_TRUE(run.says("cannot be kept"));
  EXPECT_LT(*run.view().chance, 0.01);
}

TEST(Pace, WhatTheNodeKnowsAlreadyIsJudgedAtOnce) {
  for (const bool slow : {true, false}) {
    ThisNode settings;
    settings.outlook->set("before",
                          {.path = {.peer = "beta"}, .running = true, .bytes_left = 1, .rate_bps = 80e6});
    for (int i = 0; i < 20; ++i) settings.outlook->sample("before", {.rate_bps = 80e6}, 999 * kSecondNs);
    settings.outlook->remove("before");
    Pace pace(settings, "s");
    pace.set_deadline(kStartUnixNs + 100 * static_cast<int64_t>(kSecondNs), Policy::kRefuse);
    Effects out;
    const Pace::Sight sight{
        .stage = Pace::Stage::kWaits,
        .size_known = true,
        .load = {.path = {.peer = "beta"}, .bytes_left = (slow ? 2000 : 500) * kMb, .cap_bps = 1e10},
        .unix_now_ns = kStartUnixNs};
    EXPECT_EQ(pace.look(sight, 1000 * kSecondNs, out).has_value(), slow);
    EXPECT_EQ(pace.admission(), DeadlineAdmission::kAdmitted);
    if (!slow) {
      EXPECT_GT(*pace.view(sight, 1000 * kSecondNs)->chance, 0.9);
    }
  }
}

TEST(Pace, OthersOnThePathAreTheReasonWhereItWouldBeFastEnoughAlone) {
  Session run(1000 * kMb, 120);
  run.settings.outlook->set("other",
                            {.path = {.peer = "beta"}, .running = true, .bytes_left = 1, .rate_bps = 60e6});
  run.pass(30, 40e6);
  ASSERT_TRUE(run.error);
  EXPECT_NE(run.error->message.find("sessions that run or come first take their part of 100.000 Mbit/s"),
            std::string::npos)
      << run.error->message;
}

TEST(Pace, AChanceThatFallsAndRecoversIsSaidOnceEach) {
  Session run(2000 * kMb, 300);
  run.pass(12, 80e6);
  EXPECT_TRUE(run.logs.empty());
  run.pass(60, 20e6);
  EXPECT_TRUE(run.says("has fallen to"));
  run.pass(70, 120e6);
  EXPECT_TRUE(run.says("is again"));
  EXPECT_EQ(run.logs.size(), 2U);
  EXPECT_FALSE(run.error) << "one that was admitted goes on";
}

TEST(Pace, ALateSessionGoesOnAndSaysSo) {
  Session run(1000 * kMb, 100);
  run.pass(12, 90e6);
  EXPECT_EQ(run.pace.due_ns(), run.start_ns + 100 * kSecondNs) << "the deadline is a moment of its own";
  run.pass(100, 20e6);
  EXPECT_FALSE(run.error);
  EXPECT_EQ(run.view().state, DeadlineState::kLate);
  EXPECT_EQ(run.view().late_ns, 12 * kSecondNs);
  EXPECT_EQ(*run.view().chance, 0);
  EXPECT_TRUE(run.view().expected_end_unix_ns);
  EXPECT_EQ(run.pace.due_ns(), UINT64_MAX);
  EXPECT_EQ(run.pace.reserved_bps(), 0);
  EXPECT_TRUE(run.says("is over: the session goes on"));
}

TEST(Pace, WithStopItEndsThen) {
  Session run(1000 * kMb, 100, Policy::kStop);
  run.pass(12, 90e6);
  EXPECT_FALSE(run.error);
  run.sight.stage = Pace::Stage::kAway;  // wherever it is by then
  run.pass(88, 0);
  ASSERT_TRUE(run.error);
  EXPECT_EQ(run.error->code, ErrorCode::kDeadline);
  EXPECT_NE(run.error->message.find("is over"), std::string::npos);
}

TEST(Pace, ReservesWhatItNeeds) {
  Session run(1000 * kMb, 100);
  EXPECT_NEAR(run.pace.reserved_bps(), 88e6, 1e5);
  run.sight.size_known = false;
  run.look();
  EXPECT_EQ(run.pace.reserved_bps(), 0);
}

TEST(Pace, ASessionWithoutADeadlineIsMeasuredForTheOthers) {
  Session run(1000 * kMb, 0);
  run.pace.set_deadline(0, Policy::kRefuse);
  run.pass(20, 80e6);
  EXPECT_FALSE(run.pace.view(run.sight, run.now_ns));
  EXPECT_EQ(run.pace.due_ns(), UINT64_MAX);
  ASSERT_TRUE(run.settings.outlook->speed({.peer = "beta"}, run.now_ns));
  EXPECT_DOUBLE_EQ(run.settings.outlook->speed({.peer = "beta"}, run.now_ns)->mean_bps, 80e6);
  EXPECT_DOUBLE_EQ(run.settings.outlook->others_bps("new", {.peer = "beta"}), 80e6);
  run.pace.leave();
  EXPECT_EQ(run.settings.outlook->others_bps("new", {.peer = "beta"}), 0);
}

TEST(Pace, NothingToDoIsInTime) {
  Session run(0, 100);
  run.pass(2, 0);
  EXPECT_EQ(run.view().state, DeadlineState::kAdmitted);
  EXPECT_EQ(*run.view().chance, 1);
}

TEST(DeadlineOfEnd, IsKeptOrMissed) {
  EXPECT_FALSE(deadline_of_end(0, 5, true));
  EXPECT_EQ(deadline_of_end(5, 5, true)->state, DeadlineState::kKept);
  EXPECT_EQ(deadline_of_end(5, 4, false)->state, DeadlineState::kMissed);
  EXPECT_EQ(deadline_of_end(5, 9, true)->state, DeadlineState::kMissed);
  EXPECT_EQ(deadline_of_end(5, 9, true)->late_ns, 4U);
}

}  // namespace
}  // namespace sluice::transfer
