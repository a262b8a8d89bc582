// `session events --exec` and `--notify`: what the programs get, and what becomes of those that fail.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

#include "tools/cli/cli_fixture_for_test.h"
#include "tools/cli/state_file.h"
#include "tools/cli/teller.h"

namespace sluice::cli {
namespace {

class ExecTest : public CliTest {
 protected:
  // It says what it was told, and ends with this status.
  std::string program(const std::string& name, int status) const {
    const std::filesystem::path path = control_.directory / name;
    std::ofstream(path) << "#!/bin/sh\nenv | grep ^SLUICE_ | sort >> " << told().string() << "\ncat >> "
                        << told().string() << "\nexit " << status << "\n";
    ::chmod(path.c_str(), 0755);
    return path;
  }
  std::filesystem::path told() const { return control_.directory / "told"; }
  std::string told_text() const {
    std::ifstream in(told());
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
};

size_t count_of(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST_F(ExecTest, ItGetsTheEventAndTheFactsOfASessionThatHasEnded) {
  sessions_are(api::Session::FAILED, ErrorCode::kNoSpace, "the disk of b is full");
  ASSERT_EQ(sluice({"send", "-q", "a", "b:x"}).exit_code, 10);
  const Outcome outcome = sluice({"session", "events", "s1", "--exec", program("p", 0)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string text = told_text();
  for (const char* fact :
       {"SLUICE_EVENT=state\n", "SLUICE_SESSION=s1\n", "SLUICE_STATE=failed\n", "SLUICE_PEER=b\n",
        "SLUICE_ERROR_CODE=10\n", "SLUICE_ERROR=the disk of b is full\n", "SLUICE_DIRECTION=send\n",
        "SLUICE_BYTES_TOTAL=100\n", "SLUICE_TRY=1\n"})
    EXPECT_EQ(count_of(text, fact), 1U) << fact << "\n" << text;
  EXPECT_EQ(count_of(text, "SLUICE_NODE=" + control_.directory.string() + "\n"), 1U);
  const api::Json event = api::Json::parse(text.substr(text.find('{')), nullptr, false);
  EXPECT_EQ(event.value("schema", ""), "sluice.event.v1");
  EXPECT_EQ(event.value("error_code", 0), 10);
}

TEST_F(ExecTest, WhatFailsIsTriedAgainAndTheCommandSaysSo) {
  sessions_are(api::Session::SUCCEEDED);
  ASSERT_EQ(sluice({"send", "-q", "a", "b:x"}).exit_code, 0);
  const Outcome outcome =
      sluice({"session", "events", "s1", "--exec", program("p", 3), "--tries", "2", "--retry-wait", "1"});
  EXPECT_EQ(outcome.exit_code, static_cast<int>(ErrorCode::kInternal));
  EXPECT_EQ(count_of(told_text(), "SLUICE_SESSION=s1\n"), 2U);
  EXPECT_EQ(count_of(told_text(), "SLUICE_TRY=2\n"), 1U);
  EXPECT_NE(outcome.err.find("ended with status 3; it is told again later"), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("given up"), std::string::npos) << outcome.err;
}

TEST_F(ExecTest, AProgramThatTakesTooLongIsEnded) {
  sessions_are(api::Session::SUCCEEDED);
  ASSERT_EQ(sluice({"send", "-q", "a", "b:x"}).exit_code, 0);
  const std::filesystem::path path = control_.directory / "slow";
  std::ofstream(path) << "#!/bin/sh\nsleep 1000\n";
  ::chmod(path.c_str(), 0755);
  const Outcome outcome =
      sluice({"session", "events", "s1", "--exec", path, "--time-limit", "1", "--tries", "1"});
  EXPECT_EQ(outcome.exit_code, static_cast<int>(ErrorCode::kInternal));
  EXPECT_NE(outcome.err.find("took longer than 1 s"), std::string::npos) << outcome.err;
}

TEST_F(ExecTest, AnErrorThatHoldsASessionIsToldOnlyWhereThatIsWanted) {
  sessions_are(api::Session::PAUSED, ErrorCode::kNoSpace, "full");
  ASSERT_EQ(sluice({"send", "-q", "a", "b:x"}).exit_code, 10);
  std::thread ends([this] {
    while (told_text().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    control_.on_io([this] {
      control_.sessions.sessions["s1"].set_state(api::Session::SUCCEEDED);
      control_.sessions.sessions["s1"].set_error_code(0);
    });
  });
  const Outcome outcome = sluice({"session", "events", "s1", "--exec", program("p", 0), "--on", "stop"});
  ends.join();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(count_of(told_text(), "SLUICE_STATE=paused\n"), 1U) << told_text();
  EXPECT_EQ(count_of(told_text(), "SLUICE_STATE=succeeded\n"), 1U) << told_text();
}

TEST_F(ExecTest, ATransferTellsOfItsOwnEndAndKeepsItsExitCode) {
  sessions_are(api::Session::SUCCEEDED);
  const Outcome well = sluice({"send", "-q", "a", "b:x", "--notify", program("p", 0)});
  EXPECT_EQ(well.exit_code, 0) << well.err;
  EXPECT_EQ(count_of(told_text(), "SLUICE_STATE=succeeded\n"), 1U);
  const Outcome failing = sluice({"get", "-q", "b:x", "a", "--notify", program("q", 7)});
  EXPECT_EQ(failing.exit_code, 0) << "that of the session";
  EXPECT_EQ(count_of(told_text(), "SLUICE_SESSION=s2\n"), 3U) << told_text();
  EXPECT_NE(failing.err.find("given up"), std::string::npos) << failing.err;
}

TEST_F(ExecTest, WhatCannotBeIsRefusedBeforeAnythingBegins) {
  sessions_are(api::Session::SUCCEEDED);
  const std::string there = program("p", 0);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"send", "a", "b:x", "--notify", "/no/such"},
                                             {"send", "a", "b:x", "--notify", "/tmp"},
                                             {"send", "a", "b:x", "--notify", there, "--detach"},
                                             {"send", "a", "b:x", "--notify", there, "--dry-run"},
                                             {"session", "events", "--exec", "no-such-program-anywhere"},
                                             {"session", "events", "--on", "end"},
                                             {"session", "events", "--exec", there, "--on", "never"},
                                             {"session", "events", "s1", "--exec", there, "--state", "x"},
                                             {"session", "events", "s9", "--exec", there}}) {
    expect_one_line_error(sluice(words), ErrorCode::kUsage);
  }
  control_.on_io([this] { EXPECT_TRUE(control_.sessions.sessions.empty()); });
}

TEST_F(ExecTest, AStateFileIsHeldByOneAndLosesOnlyWhatWasCutOff) {
  const std::filesystem::path path = control_.directory / "deep" / "er" / "state";
  const auto all = [] { return std::string("all\n"); };
  const StateFile::IsFirst any = [](std::string_view) { return true; };
  {
    Result<StateFile> state = StateFile::open(path, any);
    ASSERT_TRUE(state) << state.error().message;
    EXPECT_TRUE(state->fresh());
    EXPECT_TRUE(state->append("one\n", true, all));
    EXPECT_TRUE(state->append("two", false, all));
    const Result<StateFile> second = StateFile::open(path, any);
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find("another process"), std::string::npos);
  }
  Result<StateFile> again = StateFile::open(path, any);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->text(), "one\n");
  EXPECT_TRUE(again->append(std::string(2U << 20, 'x') + "\n", true, all))
      << "more than it keeps of the past";
  EXPECT_TRUE(again->append("three\n", true, all));
  again = StateFile::open(control_.directory / "other", any);
  EXPECT_EQ(StateFile::open(path, any)->text(), "all\nthree\n");
}

TEST_F(ExecTest, AStateThatIsRemovedIsWrittenAnewAndAnotherInItsPlaceEndsTheCommand) {
  const std::filesystem::path path = control_.directory / "state";
  const auto all = [] { return std::string("all\n"); };
  const StateFile::IsFirst any = [](std::string_view) { return true; };
  const auto text = [&path] {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  Result<StateFile> state = StateFile::open(path, any);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_TRUE(state->append("one\n", true, all));
  for (const char* lines : {"", "two\n"}) {
    std::filesystem::remove(path);
    std::filesystem::remove(path.string() + ".lock");
    EXPECT_TRUE(state->append(lines, true, all));
    EXPECT_EQ(text(), "all\n") << "which has those lines as well";
    EXPECT_FALSE(StateFile::open(path, any)) << "it is held as before";
  }
  EXPECT_TRUE(state->append("three\n", true, all));
  EXPECT_EQ(text(), "all\nthree\n");
  std::filesystem::remove(path);
  std::ofstream(path) << "another\n";
  for (const char* lines : {"", "four\n"}) {
    const Status status = state->append(lines, true, all);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kConfiguration);
    EXPECT_EQ(text(), "another\n");
  }
}

TEST_F(ExecTest, AFileThatIsNoStateIsRefusedAndNobodyIsTold) {
  sessions_are(api::Session::SUCCEEDED);
  ASSERT_EQ(sluice({"send", "-q", "a", "b:x"}).exit_code, 0);
  const std::filesystem::path path = control_.directory / "notes.txt";
  for (const std::string text :
       {"my notes\n1\n2\n", "no end of a line", "told him so\n", "begun too early\n"}) {
    std::ofstream(path) << text;
    const Outcome outcome = sluice({"session", "events", "--exec", program("p", 0), "--state", path});
    expect_one_line_error(outcome, ErrorCode::kConfiguration);
    EXPECT_NE(outcome.err.find("notes.txt: no state of this command"), std::string::npos) << outcome.err;
    std::ifstream in(path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), text) << "it stays as it is";
    EXPECT_FALSE(std::filesystem::exists(path.string() + ".lock"));
  }
  EXPECT_EQ(told_text(), "");
}

}  // namespace
}  // namespace sluice::cli
