// The command line of a deadline, and what of it is shown.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tools/cli/cli_fixture_for_test.h"
#include "tools/cli/progress.h"

namespace sluice::cli {
namespace {

class DeadlineTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    sessions_are(api::Session::SUCCEEDED);
  }
};

TEST_F(DeadlineTest, IsPassedAsAMomentWithItsPolicy) {
  EXPECT_EQ(sluice({"send", "a", "b:x", "--deadline", "2035-01-01T00:00:00Z", "--deadline-policy", "stop"})
                .exit_code,
            0);
  control_.on_io([&] {
    EXPECT_EQ(control_.sessions.last_send->options().deadline_unix_ns(), 2'051'222'400'000'000'000);
    EXPECT_EQ(control_.sessions.last_send->options().deadline_policy(), "stop");
  });
  EXPECT_EQ(sluice({"get", "b:x", "y", "--deadline", "1h"}).exit_code, 0);
  control_.on_io([&] { EXPECT_GT(control_.sessions.last_get->options().deadline_unix_ns(), 0); });
}

TEST_F(DeadlineTest, WhatIsWrongIsAnErrorOfTheCommand) {
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {"--deadline", "soon"}, {"--deadline", "2001-01-01T00:00:00Z"}, {"--deadline-policy", "warn"}}) {
    std::vector<std::string> arguments{"send", "a", "b:x"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    const Outcome outcome = sluice(arguments);
    EXPECT_EQ(outcome.exit_code, static_cast<int>(ErrorCode::kUsage));
    EXPECT_NE(outcome.err.find(": " + wrong[0] + ": "), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(sluice({"send", "a", "b:x", "--deadline", "1h", "--deadline-policy", "x"}).exit_code,
            static_cast<int>(ErrorCode::kUsage));
}

TEST_F(DeadlineTest, ARefusalIsOneLineWithItsOwnExitCode) {
  control_.on_io([&] {
    control_.sessions.refusal = Error{ErrorCode::kDeadline, "the deadline cannot be kept"};
  });
  const Outcome outcome = sluice({"send", "a", "b:x", "--deadline", "1h"});
  EXPECT_EQ(outcome.exit_code, static_cast<int>(ErrorCode::kDeadline));
  EXPECT_EQ(outcome.err, "sluice: the deadline cannot be kept\n");
}

TEST_F(DeadlineTest, EveryErrorOfTheNodeIsTheExitCode) {
  for (int code = 1; code <= static_cast<int>(kErrorCodeLast); ++code) {
    control_.on_io([&] { control_.sessions.refusal = Error{static_cast<ErrorCode>(code), "why"}; });
    EXPECT_EQ(sluice({"send", "a", "b:x"}).exit_code, code);
  }
}

TEST_F(DeadlineTest, ASuccessThatCameTooLateSaysSoAndPrintsItsSummary) {
  control_.on_io([&] {
    api::Session& session = control_.sessions.prototype;
    session.set_bytes_total(100);
    session.set_error_code(static_cast<uint32_t>(ErrorCode::kLate));
    session.set_error("done and verified, but 2 s after the deadline");
  });
  const Outcome outcome = sluice({"send", "a", "b:x", "--quiet"});
  EXPECT_EQ(outcome.exit_code, static_cast<int>(ErrorCode::kLate));
  EXPECT_EQ(outcome.out.find("1 file, 100 bytes"), 0U) << outcome.out;
  EXPECT_EQ(outcome.err, "sluice: done and verified, but 2 s after the deadline\n");
}

TEST_F(DeadlineTest, JsonHasTheChanceOnlyWhenThereIsOne) {
  const auto json = [&] { return api::Json::parse(sluice({"send", "a", "b:x", "--json", "--quiet"}).out); };
  EXPECT_EQ(json()["deadline_unix_ns"], 0);
  EXPECT_TRUE(json()["deadline_chance_percent"].is_null());
  control_.on_io([&] {
    api::Session& session = control_.sessions.prototype;
    session.set_deadline_unix_ns(5);
    session.set_deadline_state("admitted");
    session.set_deadline_chance_percent(25);
    session.set_expected_end_unix_ns(7);
    session.set_late_s(1.5);
  });
  const api::Json shown = json();
  EXPECT_EQ(shown["deadline_unix_ns"], 5);
  EXPECT_EQ(shown["deadline_state"], "admitted");
  EXPECT_EQ(shown["deadline_chance_percent"], 25.0);
  EXPECT_EQ(shown["expected_end_unix_ns"], 7);
  EXPECT_EQ(shown["late_s"], 1.5);
}

TEST(DeadlineText, SaysWhatIsKnown) {
  api::Session session;
  EXPECT_EQ(deadline_text(session), "");
  session.set_started_unix_ns(1'795'348'800'000'000'000);
  session.set_deadline_unix_ns(session.started_unix_ns() + 60'000'000'000);
  session.set_deadline_state("measuring");
  EXPECT_NE(deadline_text(session).find(", measuring"), std::string::npos);
  session.set_deadline_chance_percent(99.9);
  EXPECT_NE(deadline_text(session).find(", chance 99 % (measuring)"), std::string::npos)
      << deadline_text(session);
  session.set_deadline_state("admitted");
  EXPECT_TRUE(deadline_text(session).ends_with(", chance 99 %"));
  session.set_state(api::Session::TRANSFERRING);
  EXPECT_NE(progress_text(session).find("chance 99 %"), std::string::npos);
  session.set_deadline_state("late");
  session.set_late_s(72);
  EXPECT_EQ(deadline_text(session), "late by 1:12");
  session.set_late_s(0);
  session.set_deadline_state("kept");
  EXPECT_TRUE(deadline_text(session).ends_with(" kept"));
}

}  // namespace
}  // namespace sluice::cli
