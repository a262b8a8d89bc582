// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/run_file.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tools/cli/cli_fixture_for_test.h"
#include "tools/cli/node_files.h"
#include "tools/cli/state_file.h"

namespace sluice::cli {
namespace {

std::string problem_of(const std::string& text) {
  const auto file = parse_run_file(text, "f.toml");
  if (file) return "nothing";
  EXPECT_EQ(file.error().code, ErrorCode::kConfiguration);
  return file.error().message;
}

TEST(RunFile, MakesEachTableTheCommandThatItStandsFor) {
  const auto file = parse_run_file(R"(
together = false
[options]
mode = "fixed"
overwrite = true
[[get]]
sources = "beta:data/x"
to = "in/"
overwrite = false
[[send]]
sources = ["a", "it's"]
to = "beta:data/"
rate = "5G"
lanes = 2
expect_loss = 2.5
)",
                                   "f.toml");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_FALSE(file->together);
  ASSERT_EQ(file->transfers.size(), 2U);
  EXPECT_EQ(file->transfers[0].direction, Direction::kGet);
  EXPECT_EQ(file->transfers[0].command, "sluice get --mode fixed beta:data/x in/");
  EXPECT_EQ(file->transfers[0].place, "f.toml:6");
  EXPECT_EQ(
      file->transfers[1].command,
      "sluice send --mode fixed --overwrite --rate 5G --lanes 2 --expect-loss 2.5 a 'it'\\''s' beta:data/");
  EXPECT_EQ(file->transfers[1].flags.paths, (std::vector<std::string>{"a", "it's", "beta:data/"}));
  EXPECT_EQ(file->transfers[1].flags.values.at("lanes"), "2");
  EXPECT_TRUE(file->transfers[1].flags.switches.at("overwrite"));
}

TEST(RunFile, AGetMayBeFromSeveralNodes) {
  const std::string rest = "sources = \"data/x\"\nto = \"in/\"\n";
  const auto file = parse_run_file("[[get]]\nfrom = [\"beta\", \"gamma\"]\nlanes = 2\n" + rest, "f.toml");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->transfers[0].command, "sluice get --from beta,gamma --lanes 2 data/x in/");
  EXPECT_EQ(file->transfers[0].flags.from, (std::vector<std::string>{"beta", "gamma"}));
  EXPECT_EQ(problem_of("[[send]]\nfrom = \"beta\"\n" + rest).find("f.toml:2: from: no such key"), 0U);
  EXPECT_EQ(problem_of("[[get]]\nfrom = 3\n" + rest).find("f.toml:2: from: write"), 0U);
  const auto twice = parse_run_file("[[get]]\nfrom = [\"beta\",\n\"beta\"]\n" + rest, "f.toml");
  ASSERT_TRUE(twice);
  const auto request = transfer_request(Direction::kGet, twice->transfers[0].flags, "/w", nullptr);
  ASSERT_FALSE(request);
  EXPECT_EQ(place_of(twice->transfers[0], request.error(), "/w"), "f.toml:3");
}

TEST(RunFile, RulesCountInTheOrderOfTheFile) {
  const std::string transfer = "[[send]]\nsources = \"d\"\nto = \"b:c\"\n";
  const auto file = parse_run_file(transfer + "include = [\"a\", \"-b\"]\nexclude = \"*\"\n" + transfer +
                                       "exclude = \"x y\"\nfilter = [\"+ u\", \"- v\"]\ninclude = \"w\"\n",
                                   "f.toml");
  ASSERT_TRUE(file) << file.error().message;
  using Rules = std::vector<selection::Rule>;
  EXPECT_EQ(file->transfers[0].flags.rules, (Rules{{true, "a"}, {true, "-b"}, {false, "*"}}));
  EXPECT_EQ(file->transfers[1].flags.rules, (Rules{{false, "x y"}, {true, "u"}, {false, "v"}, {true, "w"}}));
  EXPECT_EQ(file->transfers[0].command, "sluice send --include a --include -b --exclude '*' d b:c");
  EXPECT_EQ(problem_of(transfer + "exclude = [1.5, true]\n").find("f.toml:4: exclude: write"), 0U);
  EXPECT_EQ(problem_of(transfer + "rate = [\"1G\"]\n").find("f.toml:4: rate: write"), 0U);
  EXPECT_EQ(problem_of(transfer + "filter = \"v\"\n").find("f.toml:4: "), 0U);
}

TEST(RunFile, HasAKeyForEveryOptionOfSendAndGet) {
  TransferFlags flags;
  CLI::App command;
  command.set_help_flag();
  add_flags(command, flags);
  for (const CLI::Option* const option : command.get_options()) {
    std::string key = option->get_lnames().at(0);
    std::replace(key.begin(), key.end(), '-', '_');
    const bool takes_value = option->get_expected_max() != 0;
    const std::string text =
        "[[send]]\nsources = \"a\"\nto = \"b:c\"\n" + key + (takes_value ? " = \"\\u0007\"" : " = true");
    const auto file = parse_run_file(text, "f.toml");
    if (file) {
      EXPECT_NE(file->transfers[0].command.find("--" + option->get_lnames()[0]), std::string::npos) << key;
    } else {  // the value was looked at
      EXPECT_EQ(file.error().message.find("no such key"), std::string::npos) << file.error().message;
      EXPECT_EQ(file.error().message.find("not valid TOML"), std::string::npos) << file.error().message;
    }
    EXPECT_NE(run_file_reference().find("`" + key + "`"), std::string::npos) << key;
  }
}

TEST(RunFile, SaysWhatIsWrongAndWhere) {
  const std::string transfer = "[[send]]\nsources = [\"a\"]\nto = \"b:c\"\n";
  EXPECT_EQ(problem_of(""), "f.toml: no transfer: write [[send]] or [[get]]");
  EXPECT_EQ(problem_of("colour = 1\n" + transfer).find("f.toml:1: colour does not belong here"), 0U);
  EXPECT_EQ(
      problem_of("together = 1\n" + transfer).find("f.toml:1: together: write together = true or false"), 0U);
  EXPECT_EQ(problem_of("[send]\nto = \"b:c\"\n").find("f.toml:1: send: write a section for each"), 0U);
  EXPECT_EQ(problem_of("[[send]]\nto = \"b:c\"\n").find("f.toml:1: a transfer needs sources"), 0U);
  EXPECT_EQ(problem_of("[[send]]\nsources = [\"a\", 1]\nto = \"b:c\"\n").find("f.toml:2: sources: write"),
            0U);
  EXPECT_EQ(problem_of(transfer + "lane = 2\n").find("f.toml:4: lane: no such key"), 0U);
  EXPECT_EQ(problem_of(transfer + "verify = 1\n").find("f.toml:4: verify: write true or false"), 0U);
  EXPECT_EQ(problem_of(transfer + "rate = \"1G\"\nmode = \"swift\"\n").find("f.toml:5: "), 0U);
  EXPECT_EQ(problem_of(transfer + "ipv4 = true\nipv6 = true\n").find("f.toml:5: "), 0U);
  EXPECT_EQ(problem_of(transfer + "lanes = {}\n").find("f.toml:4: "), 0U);
  EXPECT_EQ(problem_of("[options]\nmode = \"fixed\"\nlanes = 0\n" + transfer).find("f.toml:3: "), 0U);
  EXPECT_EQ(problem_of("[options]\nmode = \"swift\"\n\n" + transfer).find("f.toml:2: "), 0U);
  EXPECT_EQ(problem_of("[[send]]\nsources = \"a\"\nto = 5\n").find("f.toml:3: to: write a string"), 0U);
  EXPECT_EQ(problem_of(transfer + "\n# empty\nfiles_from = \"\"\n").find("f.toml:6: "), 0U);
  EXPECT_EQ(problem_of("[[send]\n").find("f.toml:1: not valid TOML"), 0U);
  for (const std::string line : {"sources = 5", "sources = 'a'", "to = 'b:x'", "from = ['b']", "lane = 2"})
    EXPECT_EQ(problem_of("[options]\n" + line + "\n" + transfer).find("f.toml:2: "), 0U) << line;
  EXPECT_EQ(problem_of("[options]\nlanes = []\n" + transfer + "lanes = 2\n").find("f.toml:2: lanes: write"),
            0U)
      << "though the transfer says otherwise";
}

class RunCommandTest : public CliTest {
 protected:
  Outcome run_text(const std::string& text, const std::vector<std::string>& more = {}) const {
    std::ofstream(control_.directory / "f.toml") << text;
    std::vector<std::string> arguments{"run", "f.toml"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_in(control_.directory, arguments);
  }
  const std::string two_ =
      "[[send]]\nsources = \"a\"\nto = \"b:x\"\n[[get]]\nsources = \"b:y\"\nto = \"z\"\n";
};

TEST_F(RunCommandTest, RunsEveryTransferAndReportsEach) {
  sessions_are(api::Session::SUCCEEDED);
  EXPECT_EQ(run_text(two_).exit_code, 0);
  const Outcome json = run_text(two_, {"--json"});
  EXPECT_EQ(json.json()["schema"], "sluice.run.v1");
  EXPECT_EQ(json.json()["sessions"].size(), 2U);
  control_.on_io([&] {
    EXPECT_EQ(control_.sessions.sessions.size(), 4U);
    EXPECT_EQ(control_.sessions.last_get->destination(), (control_.directory / "z").string());
  });
}

TEST_F(RunCommandTest, OnlyChecksIfAskedTo) {
  const Outcome outcome = run_text(two_, {"--check"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "sluice send a b:x\nsluice get b:y z\n");
  control_.on_io([&] { EXPECT_TRUE(control_.sessions.sessions.empty()); });
}

TEST_F(RunCommandTest, ADashIsAFileInTheFileAndTheFileItselfMayBeTheStandardInput) {
  const std::string dashes = "[[send]]\nsources = ['-', '-x']\nto = 'b:y/'\n";
  EXPECT_EQ(run_text(dashes, {"--check"}).out, "sluice send -- ./- -x b:y/\n");
  for (const char* option : {"files_from", "manifest", "write_manifest"}) {
    const Outcome refused =
        run_text("[[send]]\nsources = 'a/'\nto = 'b:y/'\n" + std::string(option) + " = '-'\n");
    expect_one_line_error(refused, ErrorCode::kConfiguration);
    EXPECT_EQ(refused.err.find("sluice: f.toml:4: --"), 0U) << refused.err;
  }
  std::istringstream in(dashes);
  std::ostringstream out, err;
  Environment environment{.out = out, .err = err, .working_directory = control_.directory, .in = in};
  EXPECT_EQ(run({"run", "-", "--check"}, environment), 0) << err.str();
  EXPECT_EQ(out.str(), "sluice send -- ./- -x b:y/\n");
}

TEST_F(RunCommandTest, WhatIsWrongWithOneTransferIsToldBeforeAnyBegins) {
  const Outcome outcome = run_text(two_ + "[[send]]\nsources = \"a\"\nto = \"nowhere\"\n");
  expect_one_line_error(outcome, ErrorCode::kConfiguration);
  EXPECT_NE(outcome.err.find("f.toml:9: "), std::string::npos) << outcome.err;
  control_.on_io([&] { EXPECT_TRUE(control_.sessions.sessions.empty()); });
}

TEST_F(RunCommandTest, TheLineIsThatOfTheKeyThatIsWrong) {
  const auto line_of = [this](const std::string& text) {
    const Outcome outcome = run_text(text, {"--check"});
    expect_one_line_error(outcome, ErrorCode::kConfiguration);
    return outcome.err.substr(0, outcome.err.find(": ", outcome.err.find("f.toml")));
  };
  EXPECT_EQ(line_of("[[send]]\nsources = \"a\"\nto = \"b:c\"\n\nmin_rate = \"fast\"\n"), "sluice: f.toml:5");
  EXPECT_EQ(line_of("[options]\n\nrate = \"fast\"\n[[send]]\nsources = \"a\"\nto = \"b:c\"\n"),
            "sluice: f.toml:3");
  EXPECT_EQ(line_of("[[send]]\nto = \"b:c\"\nsources = [\n  \"a\",\n  \"b:c\",\n]\n"), "sluice: f.toml:5");
  EXPECT_EQ(line_of("[[get]]\nto = \"x\"\nsources = [\n  \"b:a\",\n  \"here\",\n]\n"), "sluice: f.toml:5");
  EXPECT_EQ(line_of("[[get]]\nsources = \"b:a\"\nto = \"b:x\"\n"), "sluice: f.toml:3");
  EXPECT_EQ(line_of("[[send]]\nsources = \"a\"\nto = \"b:c\"\nfiles_from = \"none\"\n"), "sluice: f.toml:4");
}

TEST_F(RunCommandTest, APeerThatNobodyHasNamedIsToldBeforeAnyBegins) {
  config::TemplateOptions options;
  options.name = "here";
  ASSERT_TRUE(create_node(control_.directory / "n", options));
  std::filesystem::copy(control_.directory / "n/node.toml", control_.directory / "node.toml");
  const Outcome outcome = run_text(two_);
  expect_one_line_error(outcome, ErrorCode::kPeerUntrusted);
  EXPECT_NE(outcome.err.find("f.toml:3: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("sluice node trust"), std::string::npos) << outcome.err;
  control_.on_io([&] { EXPECT_TRUE(control_.sessions.sessions.empty()); });
}

TEST_F(RunCommandTest, FailsAsTheFirstThatFailedAndOneAfterTheOtherStopsThere) {
  sessions_are(api::Session::FAILED, ErrorCode::kNoSpace, "full");
  const Outcome together = run_text(two_, {"-q"});
  EXPECT_EQ(together.exit_code, static_cast<int>(ErrorCode::kNoSpace));
  EXPECT_EQ(together.err, "sluice: f.toml:1: full\nsluice: f.toml:4: full\n");
  const Outcome json = run_text(two_, {"-q", "--json"});
  EXPECT_EQ(json.json()["sessions"].size(), 2U);
  const Outcome in_turn = run_text("together = false\n" + two_, {"-q"});
  EXPECT_EQ(in_turn.err, "sluice: f.toml:2: full\n");
}

TEST_F(RunCommandTest, WhatANodeRefusesIsAmongTheResults) {
  control_.on_io([&] { control_.sessions.refusal = Error{ErrorCode::kPeerUntrusted, "no peer b"}; });
  const Outcome outcome = run_text(two_, {"--json"});
  EXPECT_EQ(outcome.exit_code, static_cast<int>(ErrorCode::kPeerUntrusted));
  EXPECT_EQ(outcome.json()["errors"].size(), 2U);
  EXPECT_EQ(outcome.err, "sluice: f.toml:1: no peer b\nsluice: f.toml:4: no peer b\n");
}

TEST_F(RunCommandTest, AFileThatCannotBeReadIsNamed) {
  expect_one_line_error(run_in(control_.directory, {"run", "no.toml"}), ErrorCode::kConfiguration);
  expect_one_line_error(run_in(control_.directory, {"run"}), ErrorCode::kUsage);
  expect_one_line_error(run_in(control_.directory, {"run", "."}), ErrorCode::kConfiguration);
}

TEST_F(RunCommandTest, DoesNotRunWhereItCannotReadWhatItRemembers) {
  const auto state =
      usual_state_file("run", {control_.directory.string(), (control_.directory / "f.toml").string()});
  ASSERT_TRUE(state);
  std::filesystem::create_directories(*state);  // it opens, and reading fails, as on a damaged disk
  const Outcome outcome = run_text(two_);
  expect_one_line_error(outcome, ErrorCode::kConfiguration);
  EXPECT_NE(outcome.err.find("remembers its sessions, cannot be read"), std::string::npos) << outcome.err;
  control_.on_io([&] { EXPECT_TRUE(control_.sessions.sessions.empty()) << "they might be there already"; });
}

TEST(RunFile, SaysWhenItRunsAndHowOften) {
  const std::string one = "[[send]]\nsources = 'a'\nto = 'b:x'\n";
  const auto file = parse_run_file(
      "retry = 3\nnot_before = '22:00'\nwindow = '22:00-06:00'\nevery = '1d'\n" + one, "f.toml");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->times.retry, 3U);
  EXPECT_EQ(file->times.not_before, "22:00");
  ASSERT_TRUE(file->times.window);
  EXPECT_EQ(file->times.window->from_s, 22 * 3600);
  EXPECT_EQ(file->times.every_ns, 86'400 * 1'000'000'000LL);
  EXPECT_TRUE(parse_run_file("not_before = '2020-01-01T00:00'\n" + one, "f.toml"))
      << "it has passed: at once";
  for (const char* wrong : {"retry = -1", "retry = 'often'", "retry = true", "window = '22-6'", "window = 5",
                            "every = '18:00'", "every = ''", "every = 0", "not_before = 'soon'"})
    EXPECT_EQ(problem_of(wrong + ("\n" + one)).find("f.toml:1: "), 0U)
        << wrong << problem_of(wrong + ("\n" + one));
}

TEST_F(CliTest, ARunTriesAgainWhatMayEndOtherwiseLater) {
  const std::filesystem::path path = control_.directory / "f.toml";
  std::ofstream(path) << "retry = 1\n[[send]]\nsources = 'a'\nto = 'b:x'\n";
  sessions_are(api::Session::FAILED, ErrorCode::kNoSpace, "full");
  Outcome outcome = sluice({"run", "-q", path});
  EXPECT_EQ(outcome.exit_code, 10) << outcome.err;
  EXPECT_NE(outcome.err.find("1 transfer failed (no_space); tried again in 5 s (try 2 of 2)"),
            std::string::npos)
      << outcome.err;
  control_.on_io([this] { EXPECT_EQ(control_.sessions.sessions.size(), 2U); });
  sessions_are(api::Session::FAILED, ErrorCode::kDestinationExists, "there");
  outcome = sluice({"run", "-q", path});
  EXPECT_EQ(outcome.exit_code, 9) << outcome.err;
  control_.on_io(
      [this] { EXPECT_EQ(control_.sessions.sessions.size(), 3U) << "it will be there later as well"; });
}

// The node's sessions outlive the command, whatever has become of that.
TEST_F(RunCommandTest, ANextRunFollowsTheSessionThatAnEarlierOneLeft) {
  const std::string text = "[[send]]\nsources = 'a'\nto = 'b:x'\n[[get]]\nsources = 'b:y'\nto = 'z'\n";
  sessions_are(api::Session::PAUSED, ErrorCode::kNoSpace, "full");
  EXPECT_EQ(run_text(text, {"-q"}).exit_code, 10);
  std::thread ends([this] {
    const auto goes_on = [](const auto& one) { return one.second.state() == api::Session::TRANSFERRING; };
    const auto end_them = [&] {
      auto& sessions = control_.sessions.sessions;
      const bool continued = std::ranges::all_of(sessions, goes_on);
      for (auto& [id, session] : sessions) {
        if (!continued) continue;
        session.set_state(api::Session::SUCCEEDED);
        session.set_error_code(0);
      }
      return continued;
    };
    while (!control_.on_io(end_them)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  const Outcome next = run_in(control_.directory, {"run", "./f.toml", "-q", "--json"});
  ends.join();
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_EQ(next.json()["followed"].size(), 2U);
  EXPECT_EQ(next.json()["sessions"].size(), 2U);
  for (const char* line :
       {"f.toml:1: session ", "f.toml:4: session s2, which an earlier run began, was held up by an error"})
    EXPECT_NE(next.err.find(line), std::string::npos) << next.err;
  control_.on_io(
      [this] { EXPECT_EQ(control_.sessions.sessions.size(), 2U) << "none was begun beside them"; });
}

TEST_F(RunCommandTest, ASessionOfSomethingElseIsNotFollowed) {
  sessions_are(api::Session::PAUSED, ErrorCode::kNoSpace, "full");
  const std::string twice = "[[send]]\nsources = 'a'\nto = 'b:null:'\n";
  EXPECT_EQ(run_text(twice, {"-q"}).exit_code, 10);
  sessions_are(api::Session::SUCCEEDED);
  size_t sessions = 1;
  for (const std::string other :
       {"[[send]]\nsources = 'a'\nto = 'b:other'\n", "[[send]]\nsources = 'b'\nto = 'b:null:'\n",
        "[options]\nrate = '1G'\n[[send]]\nsources = 'a'\nto = 'b:null:'\n"}) {
    EXPECT_EQ(run_text(other, {"-q"}).exit_code, 0) << other;
    control_.on_io([&] { EXPECT_EQ(control_.sessions.sessions.size(), ++sessions) << other; });
  }
  std::ofstream(control_.directory / "f.toml") << twice;
  std::filesystem::create_directory(control_.directory / "elsewhere");
  EXPECT_EQ(run_in(control_.directory / "elsewhere", {"run", "-q", "../f.toml"}).exit_code, 0);
  control_.on_io([&] { EXPECT_EQ(control_.sessions.sessions.size(), ++sessions) << "another 'a'"; });
}

// Whichever of them is over first.
TEST_F(RunCommandTest, ItsExitStatusIsThatOfTheFirstInTheFileThatFailed) {
  sessions_are(api::Session::FAILED, ErrorCode::kDestinationExists, "there");
  control_.on_io([this] {
    control_.names.end = Error{ErrorCode::kSourceUnreadable, "nothing fits"};
    control_.names.itself = std::vector<names::Page>();
  });
  const std::string lost = "[[get]]\nsources = 'b:y/*.h5'\nto = '/tmp/'\n";
  const std::string taken = "[[send]]\nsources = 'a'\nto = 'b:x'\n";
  for (const char* retry : {"", "retry = 1\n"}) {
    EXPECT_EQ(run_text(retry + lost + taken).exit_code, 7) << retry;
    EXPECT_EQ(run_text(retry + taken + lost).exit_code, 9) << retry << ", though it ends later";
  }
}

}  // namespace
}  // namespace sluice::cli
