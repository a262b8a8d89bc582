// What stands on a command line is taken byte for byte, in every command and in files of `sluice run`.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "tools/cli/app.h"
#include "tools/cli/cli_fixture_for_test.h"
#include "tools/cli/run_file.h"

namespace sluice::cli {
namespace {

const std::vector<std::string> kOddNames = {"[a]",    "[a,b]", "[]",    "a,b", "{}",   "%%",   "++", "\"a\"",
                                            "'a'",    "a=b",   "$HOME", "a b", "send", "list", "-a", "--a",
                                            "--json", "--",    "-4",    "`a`", "@a",   "!",    "~",  "#"};

TEST_F(CliTest, NamesAreSentAndFetchedByteForByte) {
  sessions_are(api::Session::SUCCEEDED);
  for (const std::string& odd : kOddNames) {
    EXPECT_EQ(sluice({"send", "-q", "--", odd, "b:in/" + odd}).exit_code, 0) << odd;
    control_.on_io([&] {
      EXPECT_EQ(control_.sessions.last_send->sources_size(), 1) << odd;
      EXPECT_EQ(control_.sessions.last_send->sources(0), "/w/" + odd);
      EXPECT_EQ(control_.sessions.last_send->destination(), "in/" + odd);
    });
    EXPECT_EQ(sluice({"get", "-q", "--literal", "--", "b:in/" + odd, odd}).exit_code, 0) << odd;
    control_.on_io([&] {
      EXPECT_EQ(control_.sessions.last_get->sources(0), "in/" + odd);
      EXPECT_EQ(control_.sessions.last_get->destination(), "/w/" + odd);
    });
  }
}

TEST_F(CliTest, PatternsAndOtherCommandsTakeTheirWordsByteForByte) {
  sessions_are(api::Session::SUCCEEDED);
  for (const std::string& odd : kOddNames) {
    ASSERT_EQ(sluice({"send", "-q", "--exclude", odd, "a", "--exclude=" + odd, "b:x"}).exit_code, 0) << odd;
    control_.on_io([&] {
      const api::TransferOptions& options = control_.sessions.last_send->options();
      ASSERT_EQ(options.rules_size(), 2) << odd;
      EXPECT_EQ(options.rules(0).pattern(), odd);
      EXPECT_EQ(options.rules(1).pattern(), odd);
    });
    // It is looked for under that name, and no other.
    for (const std::string verb : {"show", "cancel", "pause", "continue"}) {
      const Outcome outcome = sluice({"session", verb, "--", odd});
      EXPECT_EQ(outcome.exit_code, static_cast<int>(ErrorCode::kUsage)) << verb << odd;
      EXPECT_NE(outcome.err.find(odd), std::string::npos) << outcome.err;
    }
  }
}

TEST(RunFile, TakesEachNameByteForByteAndPrintsACommandThatSaysTheSame) {
  for (const std::string& odd : kOddNames) {
    const std::string name = api::Json(odd).dump();  // quoted as TOML has it, too
    const std::string text =
        "[[send]]\nsources = [" + name + ", 'b']\nto = 'b:c'\nexclude = [" + name + "]\n";
    const auto file = parse_run_file(text, "f.toml");
    ASSERT_TRUE(file) << file.error().message;
    const TransferFlags& flags = file->transfers[0].flags;
    EXPECT_EQ(flags.paths, (std::vector<std::string>{odd, "b", "b:c"}));
    ASSERT_EQ(flags.rules.size(), 1U);
    EXPECT_EQ(flags.rules[0].pattern, odd);
    const std::string& command = file->transfers[0].command;
    EXPECT_EQ(command.find(" -- ") != std::string::npos, odd.starts_with('-')) << command;
  }
}

// Otherwise an empty variable of a script makes an option vanish, and with it what it was to forbid.
TEST_F(CliTest, AnEmptyWordIsAnErrorEverywhere) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"send", "a", "b:x", "--files-from", ""},
                                             {"send", "a", "b:x", "--files-from="},
                                             {"send", "a", "b:x", "--deadline", ""},
                                             {"send", "a", "b:x", "--lanes", ""},
                                             {"send", "a", "b:x", "--rate", ""},
                                             {"send", "a", "", "b:x"},
                                             {"session", "cancel", ""},
                                             {"--node", "", "session", "list"},
                                             {"node", "log-level", ""},
                                             {"doctor", ""}}) {
    const Outcome outcome = sluice(words);
    expect_one_line_error(outcome, ErrorCode::kUsage);
    EXPECT_NE(outcome.err.find("empty"), std::string::npos) << outcome.err;
  }
  control_.on_io([&] { EXPECT_FALSE(control_.sessions.last_send); });
}

void expect_single_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;
    EXPECT_EQ(option->get_type_size_max(), 1) << app.get_name() << " " << option->get_name();
    EXPECT_GE(option->get_items_expected_min(), 1) << app.get_name() << " " << option->get_name();
  }
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; }))
    expect_single_values(*below);
}

// What dataplane/base/arguments builds upon.
TEST(Literal, EachOptionTakesOneValueAtATime) {
  std::ostringstream out, err;
  Environment environment{out, err};
  Context context{environment};
  CLI::App app("", "sluice");
  add_everything(app, context);
  expect_single_values(app);
}

TEST_F(CliTest, ACommandThatIsNearIsNamed) {
  EXPECT_NE(sluice({"snd", "x"}).err.find("did you mean 'send'?"), std::string::npos);
  EXPECT_NE(sluice({"session", "lst"}).err.find("did you mean 'list'?"), std::string::npos);
  EXPECT_NE(sluice({"send", "a", "b:x", "--overwite"}).err.find("did you mean '--overwrite'?"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::cli
