// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/help.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "dataplane/base/arguments/arguments.h"
#include "tools/cli/app.h"

namespace sluice::cli {
namespace {

std::string help_of(const std::vector<std::string>& words) {
  std::ostringstream out, err;
  Environment environment{out, err};
  EXPECT_EQ(run(words, environment), 0) << err.str();
  return out.str();
}

TEST(Help, TheUsageHasTheOperands) {
  EXPECT_NE(help_of({"send", "--help"}).find("sluice send [OPTIONS] SRC... NODE:PATH\n"), std::string::npos)
      << help_of({"send", "--help"});
  EXPECT_NE(help_of({"help", "mv"}).find("mv [OPTIONS] NODE:OLD NODE:NEW\n"), std::string::npos);
  EXPECT_NE(help_of({"--node", "n", "--json", "help", "mv"}).find("mv [OPTIONS] NODE:OLD NODE:NEW\n"),
            std::string::npos);
  EXPECT_NE(help_of({"doctor", "--help"}).find("doctor [OPTIONS] [NODE]\n"), std::string::npos);
}

TEST(Help, RangesAndChoicesAreInWords) {
  const std::string send = help_of({"send", "--help"});
  for (const char* words : {"-100 to 100", "1 to 16", "none, crc32c, crc64 or read", "--lanes N"})
    EXPECT_NE(send.find(words), std::string::npos) << words << "\n" << send;
  for (const char* jargon : {"INT", "FLOAT", "TEXT", "UINT", "{"})
    EXPECT_EQ(send.find(jargon), std::string::npos) << jargon << "\n" << send;
}

TEST(Help, FitsATerminal) {
  std::istringstream lines(help_of({"send", "--help"}) + help_of({"node", "init", "--help"}));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  sluice ")) continue;  // an example, to be copied
    EXPECT_LE(line.size(), 82U) << line;
  }
}

TEST(Help, EachExitCodeHasAMeaning) {
  const std::string help = help_of({"--help"});
  for (int code = 0; code <= static_cast<int>(kErrorCodeLast); ++code) {
    EXPECT_FALSE(exit_meaning(static_cast<ErrorCode>(code)).empty()) << code;
    EXPECT_NE(help.find("\n  " + std::string(code < 10 ? " " : "") + std::to_string(code) + "  "),
              std::string::npos)
        << help;
  }
}

std::vector<std::string> words_of_line(const std::string& line) {
  std::istringstream text(line.substr(0, line.find("  # ")));
  std::vector<std::string> words;
  for (std::string word; text >> word;) {
    if (word.size() > 1 && word.front() == '\'') word = word.substr(1, word.size() - 2);
    words.push_back(word);
  }
  return words;
}

// Each is one that the command takes, and each command that does something has one.
void expect_examples(const CLI::App& app, size_t* count) {
  const auto below = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* command : below) expect_examples(*command, count);
  const auto lines = example_lines(app);
  *count += lines.size();
  if (!below.empty()) {
    EXPECT_TRUE(lines.empty()) << app.get_name();
    return;
  }
  EXPECT_FALSE(lines.empty()) << app.get_name();
  for (const std::string& line : lines) {
    std::ostringstream out, err;
    Environment environment{out, err};
    Context context{environment};
    CLI::App fresh("", "sluice");
    add_everything(fresh, context);
    auto words = words_of_line(line);
    ASSERT_EQ(words.front(), "sluice") << line;
    words.erase(words.begin());
    const auto parsed = arguments::parse(fresh, words, out);
    EXPECT_TRUE(parsed && *parsed && context.action)
        << line << ": " << (parsed ? "" : parsed.error().message);
  }
}

TEST(Help, EachCommandHasExamplesThatItTakes) {
  std::ostringstream out, err;
  Environment environment{out, err};
  Context context{environment};
  CLI::App app("", "sluice");
  add_everything(app, context);
  size_t count = 0;
  expect_examples(app, &count);
  EXPECT_GT(count, 40U);
  EXPECT_NE(help_of({"receipt", "--help"}).find("Examples:\n  sluice receipt 3f2a"), std::string::npos);
}

}  // namespace
}  // namespace sluice::cli
