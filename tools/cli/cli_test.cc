// Whole commands: the command line, the real client, gRPC over a unix socket, the real server, and behind it
// a SessionManager that answers as told.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <sstream>

#include "control/api/fake_sessions_for_test.h"
#include "dataplane/base/config/config.h"
#include "tools/cli/app.h"
#include "tools/cli/cli_fixture_for_test.h"

namespace sluice::cli {
namespace {

TEST_F(CliTest, SendPassesEveryOptionAndPrintsTheSummary) {
  sessions_are(api::Session::SUCCEEDED);
  const Outcome outcome = sluice(
      {"send",   "a",      "/x/b",         "dtn-2:in/",   "--lanes",       "4",  "--rate",        "2.5G",
       "--crc",  "crc32c", "--protection", "aes-256-gcm", "--overwrite",   "-6", "--chunk-bytes", "8192",
       "--mode", "cubic",  "--min-rate",   "10M",         "--expect-loss", "2.5"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("2 files, 100 bytes"), 0U) << outcome.out;
  control_.on_io([&] {
    const api::SendRequest& request = *control_.sessions.last_send;
    EXPECT_EQ(request.peer(), "dtn-2");
    EXPECT_EQ(request.destination(), "in/");
    EXPECT_EQ(request.sources(0), "/w/a");
    EXPECT_EQ(request.options().lanes(), 4U);
    EXPECT_EQ(request.options().rate_bps(), 2'500'000'000U);
    EXPECT_EQ(request.options().crc() + " " + request.options().protection(), "crc32c aes-256-gcm");
    EXPECT_TRUE(request.options().overwrite());
    EXPECT_EQ(request.options().ip(), "6");
    EXPECT_EQ(request.options().chunk_bytes(), 8192U);
    EXPECT_EQ(request.options().mode(), "cubic");
    EXPECT_EQ(request.options().min_rate_bps(), 10'000'000U);
    EXPECT_DOUBLE_EQ(request.options().expected_loss(), 0.025);
  });
}

TEST_F(CliTest, OptionsLeftOutLeaveTheChoiceToTheNode) {
  sessions_are(api::Session::SUCCEEDED);
  EXPECT_EQ(sluice({"send", "a", "b:in/a"}).exit_code, 0);
  control_.on_io([&] { EXPECT_EQ(control_.sessions.last_send->options().ByteSizeLong(), 0U); });
}

TEST_F(CliTest, GetIntoADirectoryThatExistsMarksItAsOne) {
  sessions_are(api::Session::SUCCEEDED);
  EXPECT_EQ(run_in(control_.directory, {"get", "b:data/x", "run"}).exit_code, 0);
  control_.on_io([&] {
    EXPECT_EQ(control_.sessions.last_get->destination(), (control_.directory / "run/").string());
    EXPECT_EQ(control_.sessions.last_get->sources(0), "data/x");
  });
}

TEST_F(CliTest, JsonIsExactlyOneObjectOfTheSession) {
  sessions_are(api::Session::SUCCEEDED);
  const Outcome outcome = sluice({"send", "a", "b:x", "--json"});
  EXPECT_EQ(outcome.out.find('\n'), outcome.out.size() - 1);
  EXPECT_EQ(outcome.json()["schema"], "sluice.session.v1");
  EXPECT_EQ(outcome.json()["state"], "succeeded");
}

TEST_F(CliTest, AFailedSessionGivesItsCodeAndItsReason) {
  sessions_are(api::Session::FAILED, ErrorCode::kNoSpace, "no space for /in/x; free 1 GiB");
  const Outcome outcome = sluice({"send", "a", "b:x", "--quiet"});
  expect_one_line_error(outcome, ErrorCode::kNoSpace);
  EXPECT_EQ(outcome.out, "");
  const Outcome json = sluice({"send", "a", "b:x", "--quiet", "--json"});
  expect_one_line_error(json, ErrorCode::kNoSpace);
  EXPECT_EQ(json.json()["error_code"], 10);
}

TEST_F(CliTest, ARefusalGivesItsCodeAndAnErrorObject) {
  control_.on_io([&] {
    control_.sessions.refusal = Error{ErrorCode::kPeerUntrusted, "no peer b; trust it"};
  });
  const Outcome outcome = sluice({"--json", "send", "a", "b:x"});
  expect_one_line_error(outcome, ErrorCode::kPeerUntrusted);
  EXPECT_EQ(outcome.json()["schema"], "sluice.error.v1");
  EXPECT_EQ(outcome.json()["code"], 5);
  EXPECT_EQ(outcome.json()["name"], "peer_untrusted");
}

TEST_F(CliTest, DetachPrintsTheIdAndLeavesTheSessionRunning) {
  sessions_are(api::Session::TRANSFERRING);
  const Outcome outcome = sluice({"send", "a", "b:x", "--detach"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "s1\n");
  EXPECT_EQ(sluice({"send", "a", "b:x", "--detach", "--json"}).json()["state"], "transferring");
}

TEST_F(CliTest, SessionsAreListedShownAndCancelled) {
  sessions_are(api::Session::TRANSFERRING);
  sluice({"send", "a", "b:x", "--detach"});
  EXPECT_NE(sluice({"session", "list"}).out.find("\ns1  Jan  1  1970  "), std::string::npos);
  EXPECT_EQ(sluice({"session", "list", "--json"}).json()["sessions"][0]["id"], "s1");
  EXPECT_NE(sluice({"session", "show", "s1"}).out.find("transferring"), std::string::npos);
  EXPECT_EQ(sluice({"session", "cancel", "s1"}).exit_code, 0);
  EXPECT_EQ(sluice({"session", "wait", "s1", "-q"}).exit_code, static_cast<int>(ErrorCode::kCancelled));
  expect_one_line_error(sluice({"session", "show", "s9"}), ErrorCode::kUsage);
}

TEST_F(CliTest, ASessionIsPausedAndContinued) {
  sessions_are(api::Session::TRANSFERRING);
  sluice({"send", "a", "b:x", "--detach"});
  EXPECT_EQ(sluice({"session", "pause", "s1"}).out, "session s1 paused\n");
  EXPECT_EQ(sluice({"session", "continue", "s1", "--json"}).json()["state"], "transferring");
  expect_one_line_error(sluice({"session", "pause", "s9"}), ErrorCode::kUsage);
}

TEST_F(CliTest, TheRateOfASessionIsLimited) {
  sessions_are(api::Session::TRANSFERRING);
  sluice({"send", "a", "b:x", "--detach"});
  EXPECT_EQ(sluice({"session", "limit", "s1", "--rate", "2G"}).out, "session s1 sends at most 2.00 Gbit/s\n");
  expect_one_line_error(sluice({"session", "limit", "s1", "--rate", "0"}), ErrorCode::kUsage);
  expect_one_line_error(sluice({"session", "limit", "s9", "--rate", "1G"}), ErrorCode::kUsage);
}

TEST_F(CliTest, APriorityIsGivenAndChanged) {
  sessions_are(api::Session::QUEUED);
  sluice({"send", "a", "b:x", "--detach", "--priority", "-7"});
  control_.on_io([&] { EXPECT_EQ(control_.sessions.last_send->options().priority(), -7); });
  sluice({"get", "b:x", "y", "--detach", "--priority", "100"});
  control_.on_io([&] { EXPECT_EQ(control_.sessions.last_get->options().priority(), 100); });
  EXPECT_EQ(sluice({"session", "priority", "s1", "-3"}).out, "session s1 has priority -3\n");
  EXPECT_EQ(sluice({"session", "show", "s1", "--json"}).json()["priority"], -3);
  EXPECT_NE(sluice({"session", "show", "s1"}).out.find("priority      -3\n"), std::string::npos);
  for (const char* wrong : {"101", "-101", "high"}) {
    expect_one_line_error(sluice({"session", "priority", "s1", wrong}), ErrorCode::kUsage);
    expect_one_line_error(sluice({"send", "a", "b:x", "--priority", wrong}), ErrorCode::kUsage);
  }
  expect_one_line_error(sluice({"session", "priority", "s9", "1"}), ErrorCode::kUsage);
}

TEST_F(CliTest, ASessionHeldByAnErrorEndsTheCommandThatFollowsIt) {
  sessions_are(api::Session::PAUSED);
  control_.on_io([&] {
    control_.sessions.prototype.set_error_code(static_cast<uint32_t>(ErrorCode::kNoSpace));
    control_.sessions.prototype.set_error("full; 'sluice session continue s1'");
  });
  expect_one_line_error(sluice({"send", "a", "b:x", "-q"}), ErrorCode::kNoSpace);
}

TEST_F(CliTest, VerifyTellsOfEachFileAndFailsWhenOneIsBad) {
  sessions_are(api::Session::SUCCEEDED);
  sluice({"send", "a", "b:x", "--detach"});
  const auto verdict = [](const char* file, bool good) {
    api::VerifyProgress progress;
    progress.set_file(file);
    progress.set_done(true);
    progress.set_good(good);
    if (!good) progress.set_problem("differs");
    return progress;
  };
  control_.on_io([&] { control_.sessions.verdicts = {verdict("/one", true)}; });
  const Outcome good = sluice({"verify", "s1"});
  EXPECT_EQ(good.exit_code, 0);
  EXPECT_NE(good.out.find("/one: good"), std::string::npos) << good.out;
  control_.on_io([&] { control_.sessions.verdicts.push_back(verdict("/two", false)); });
  const Outcome bad = sluice({"verify", "s1"});
  EXPECT_EQ(bad.exit_code, static_cast<int>(ErrorCode::kIntegrity));
  EXPECT_NE(bad.out.find("/two: BAD: differs"), std::string::npos) << bad.out;
  EXPECT_EQ(sluice({"verify", "s1", "--json"}).json()["files"][1]["good"], false);
  control_.on_io([&] {
    control_.sessions.verdicts = {verdict("/one", true)};
    control_.sessions.verdicts.back().set_names_unchecked(7);
  });
  const Outcome in_part = sluice({"verify", "s1"});
  EXPECT_EQ(in_part.exit_code, 0);
  EXPECT_NE(in_part.out.find("not checked: 7 names"), std::string::npos) << in_part.out;
  EXPECT_EQ(sluice({"verify", "s1", "--json"}).json()["names_unchecked"], 7);
}

TEST_F(CliTest, WaitThatTimesOutSaysSoAndUsesTheChosenStatus) {
  sessions_are(api::Session::TRANSFERRING);
  sluice({"send", "a", "b:x", "--detach"});
  const Outcome outcome = sluice({"session", "wait", "s1", "--timeout", "0.3", "--json", "-q"});
  EXPECT_EQ(outcome.exit_code, 124);
  EXPECT_EQ(outcome.json()["state"], "transferring");
  EXPECT_NE(outcome.err.find("has not ended within 0.3 s"), std::string::npos) << outcome.err;
  EXPECT_EQ(sluice({"session", "wait", "s1", "--timeout", "0", "--timeout-exit-code", "7"}).exit_code, 7);
}

TEST_F(CliTest, ADaemonThatGoesAwayEndsTheCommandWithItsCode) {
  sessions_are(api::Session::TRANSFERRING);
  sluice({"send", "a", "b:x", "--detach"});
  std::thread stopper([this] {
    while (control_.on_io([&] { return control_.sessions.shows; }) < 3) std::this_thread::yield();
    control_.server->stop();
  });
  const Outcome outcome = sluice({"session", "wait", "s1", "-q"});
  stopper.join();
  expect_one_line_error(outcome, ErrorCode::kDaemonNotRunning);
}

TEST_F(CliTest, WithoutADaemonTheRemedyIsNamed) {
  control_.server.reset();
  const Outcome outcome = sluice({"session", "list"});
  expect_one_line_error(outcome, ErrorCode::kDaemonNotRunning);
  EXPECT_NE(outcome.err.find("sluice-control --node " + control_.directory.string()), std::string::npos);
}

TEST_F(CliTest, WrongUsageIsOneLineWithStatusTwo) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"bogus"},
                                             {"send"},
                                             {"send", "a"},
                                             {"send", "a", "/tmp/b"},
                                             {"send", "a", "b:x", "--lanes", "many"},
                                             {"send", "a", "b:x", "--lanes", "0"},
                                             {"send", "a", "b:x", "--rate", "fast"},
                                             {"send", "a", "b:x", "--crc", "md5"},
                                             {"send", "a", "b:x", "-4", "-6"},
                                             {"send", "a", "b:x", "--chunk-bytes", "1M"},
                                             {"get", "b:x", "c:y", "z"},
                                             {"session"},
                                             {"session", "show"},
                                             {"node", "trust", "b"},
                                             {"session", "list", "--frobnicate"}}) {
    const Outcome outcome = sluice(arguments);
    expect_one_line_error(outcome, ErrorCode::kUsage);
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(sluice({"send", "a", "--json"}).json()["code"], 2);
}

TEST_F(CliTest, HelpAndVersionGoToStdout) {
  EXPECT_EQ(sluice({"--help"}).exit_code, 0);
  EXPECT_NE(sluice({"send", "--help"}).out.find("--overwrite"), std::string::npos);
  EXPECT_EQ(sluice({"--version"}).out.find("sluice "), 0U);
}

TEST_F(CliTest, CountersCarryUnitAndHelp) {
  control_.on_io([&] {
    auto* counter = control_.sessions.counters_reply.add_counters();
    counter->set_name("rx_frames");
    counter->set_unit("frames");
    counter->set_value(7);
  });
  EXPECT_NE(sluice({"counters"}).out.find("rx_frames"), std::string::npos);
  EXPECT_EQ(sluice({"counters", "--json"}).json()["counters"][0]["value"], 7);
}

// The next that is opened would get its number, and be written to: the connection to the node.
TEST_F(CliTest, AClosedStandardOutputIsAnErrorAndNothingElse) {
  sessions_are(api::Session::SUCCEEDED);
  ASSERT_EQ(sluice({"send", "/a", "b:x"}).exit_code, 0);
  const std::string command = std::string(SLUICE_COMMAND_PATH) + " --node " + control_.directory.string();
  const int status = std::system((command + " session list >&- 2>&-").c_str());
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ErrorCode::kStorage));
}

TEST_F(CliTest, WhereOutputCannotBeWrittenTheWorkIsDoneAllTheSame) {
  const auto run_on_a_full_disk = [&](const std::vector<std::string>& arguments) {
    std::ofstream out("/dev/full");
    std::ostringstream err;
    Environment environment{out, err};
    environment.working_directory = "/w";
    environment.default_node = control_.directory;
    const int exit_code = run(arguments, environment);
    return Outcome{exit_code, "", err.str()};
  };
  sessions_are(api::Session::SUCCEEDED);
  const Outcome sent = run_on_a_full_disk({"send", "-q", "/a", "b:x"});
  EXPECT_EQ(sent.exit_code, static_cast<int>(ErrorCode::kStorage)) << "no defect of Sluice";
  EXPECT_NE(sent.err.find("has done its work"), std::string::npos) << sent.err;
  sessions_are(api::Session::FAILED, ErrorCode::kNoSpace, "b: no space");
  const Outcome failed = run_on_a_full_disk({"send", "-q", "--json", "/a", "b:x"});
  EXPECT_EQ(failed.exit_code, static_cast<int>(ErrorCode::kNoSpace)) << failed.err;
}

TEST_F(CliTest, CtrlCCancelsTheSessionAndSaysSo) {
  sessions_are(api::Session::TRANSFERRING);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDERR_FILENO);
  const std::string node = control_.directory.string();
  std::array<const char*, 7> arguments{SLUICE_COMMAND_PATH, "send", "/a", "b:x", "--node",
                                       node.c_str(),        nullptr};
  pid_t pid = 0;
  ASSERT_EQ(::posix_spawn(&pid, SLUICE_COMMAND_PATH, &actions, nullptr, const_cast<char**>(arguments.data()),
                          environ),
            0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  std::string err;
  const auto read_some = [&] {
    std::array<char, 256> part{};
    const ssize_t got = ::read(pipe[0], part.data(), part.size());
    if (got > 0) err.append(part.data(), static_cast<size_t>(got));
    return got > 0;
  };
  while (err.find("transferring") == std::string::npos && read_some()) {
  }
  ::kill(pid, SIGINT);
  while (read_some()) {
  }
  ::close(pipe[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ErrorCode::kCancelled));
  EXPECT_NE(err.find("sluice: cancelling session s1"), std::string::npos) << err;
  EXPECT_NE(err.find("sluice: cancelled by the operator"), std::string::npos) << err;
}

}  // namespace
}  // namespace sluice::cli
