// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/completion.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/cli/app.h"
#include "tools/cli/cli_fixture_for_test.h"

namespace sluice::cli {
namespace {

std::string script_of(const std::string& shell) {
  std::ostringstream out, err;
  Environment environment{out, err};
  EXPECT_EQ(run({"completion", shell}, environment), 0) << err.str();
  return out.str();
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* const pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> part{};
  for (size_t got = 0; (got = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    text.append(part.data(), got);
  ::pclose(pipe);
  return text;
}

// What a real bash offers behind these words, the last of which is not finished.
std::string bash_offers(const std::vector<std::string>& words) {
  const std::string file = "/tmp/sluice-completion-test-" + std::to_string(::getpid());
  std::ofstream(file) << script_of("bash");
  std::string line = "bash --norc -c '. " + file + "; COMP_WORDS=(sluice";
  for (const std::string& word : words) line += " \"" + word + "\"";
  line += "); COMP_CWORD=" + std::to_string(words.size()) + "; _sluice; echo \"${COMPREPLY[*]}\"'";
  std::string offered = output_of(line);
  std::filesystem::remove(file);
  if (offered.ends_with('\n')) offered.pop_back();
  return offered;
}

TEST(Completion, BashOffersCommandsOptionsAndChoices) {
  EXPECT_EQ(bash_offers({"se"}), "send session");
  EXPECT_EQ(bash_offers({"node", "in"}), "init");
  EXPECT_EQ(bash_offers({"--node", "/srv/send", "node", "dis"}), "distrust");
  EXPECT_EQ(bash_offers({"send", "--deadline-p"}), "--deadline-policy");
  EXPECT_EQ(bash_offers({"send", "--mode", ""}), "adaptive fixed cubic");
  EXPECT_EQ(bash_offers({"send", "--mode", "f"}), "fixed");
  EXPECT_EQ(bash_offers({"send", "--js"}), "--json") << "of every command";
  EXPECT_EQ(bash_offers({"send", ""}), "") << "a file: bash's own";
  EXPECT_EQ(bash_offers({"send", "--files-from", ""}), "");
}

TEST(Completion, EachCommandAndOptionIsInEachScript) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const std::string script = script_of(shell);
    for (const char* path : {"send", "get", "run", "node init", "session watch", "completion"})
      EXPECT_NE(script.find(path), std::string::npos) << shell << ": " << path;
    for (const char* option : {"deadline-policy", "udp-port-base", "files-from", "service", "node", "json"}) {
      EXPECT_NE(script.find((shell == "fish" ? "-l " : "--") + std::string(option)), std::string::npos)
          << shell << ": " << option;
    }
  }
}

// What stands in a description breaks no script.
TEST(Completion, TheShellsThatAreHereReadTheirScripts) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    if (output_of("command -v " + shell).empty()) continue;
    const std::string file = "/tmp/sluice-completion-test-" + std::to_string(::getpid());
    std::ofstream(file) << script_of(shell);
    EXPECT_EQ(output_of(shell + " -n " + file + " 2>&1"), "") << shell;
    std::filesystem::remove(file);
  }
  CLI::App app("It's a test: of 'quotes' and \\", "sluice");
  app.add_option("--it", "Don't: \\' \"$(false)\"");
  app.add_subcommand("x", "A 'quoted' one");
  EXPECT_NE(completion_script(app, "zsh")->find(R"('x:A '\''quoted'\'' one')"), std::string::npos);
  EXPECT_NE(completion_script(app, "fish")->find(R"(-d 'A \'quoted\' one')"), std::string::npos);
}

TEST(Completion, AnotherShellIsRefused) {
  std::ostringstream out, err;
  Environment environment{out, err};
  EXPECT_EQ(run({"completion", "csh"}, environment), static_cast<int>(ErrorCode::kUsage));
  EXPECT_NE(err.str().find("bash, zsh and fish"), std::string::npos);
}

}  // namespace
}  // namespace sluice::cli
