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
  EXPECT_EQ(bash_offers({"session", "list", "--state", "p"}), "partial paused");
  EXPECT_EQ(bash_offers({"watch", "--then", ""}), "keep remove");
  EXPECT_EQ(bash_offers({"node", "init", "--memory", ""}), "auto hugepages no-huge");
  EXPECT_EQ(bash_offers({"send", "--js"}), "--json") << "of every command";
  EXPECT_EQ(bash_offers({"send", ""}), "") << "a file: bash's own";
  EXPECT_EQ(bash_offers({"send", "--files-from", ""}), "");
}

// What bash would put in the place of the part behind the last colon; `sluice` says what it is told here.
class BashOperands : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(place_ / "files");
    std::ofstream(place_ / "script") << script_of("bash");
    std::ofstream(place_ / "files/beta-file") << "";
    std::filesystem::create_directory(place_ / "files/be dir");
  }
  void TearDown() override { std::filesystem::remove_all(place_); }

  std::string offers(const std::string& line, const std::string& says) {
    std::ofstream(place_ / "says") << says;
    std::ofstream(place_ / "sluice") << "#!/bin/bash\nprintf '<%s>' \"$@\" > " << (place_ / "asked").string()
                                     << "\ncat " << (place_ / "says").string() << "\n";
    std::filesystem::permissions(place_ / "sluice", std::filesystem::perms::owner_all);
    std::ofstream(place_ / "line") << line;
    // As readline divides a line: at blanks, and at colons, which are words of their own.
    std::ofstream(place_ / "run") << "cd " << (place_ / "files").string() << "; PATH=" << place_.string()
                                  << ":$PATH; . " << (place_ / "script").string() << R"(
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
COMP_LINE=$(<../line); COMP_POINT=${#COMP_LINE}
read -r -a COMP_WORDS <<<"${COMP_LINE//:/ : }"
[[ $COMP_LINE == *[\ :] ]] && COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_sluice
printf '%s|' "${COMPREPLY[@]}"
)";
    return output_of("bash --norc " + (place_ / "run").string() + " 2>&1");
  }
  std::string asked() const {
    std::ostringstream text;
    text << std::ifstream(place_ / "asked").rdbuf();
    return text.str();
  }

  const std::filesystem::path place_ =
      std::filesystem::temp_directory_path() / ("operands-test-" + std::to_string(::getpid()));
};

TEST_F(BashOperands, WhatTheNodeKnowsIsOfferedByteForByte) {
  EXPECT_EQ(offers("sluice session show 3f", "3f2a\ttransferring\n3fff\tpaused\n"), "3f2a|3fff|");
  EXPECT_EQ(asked(), "<__operands><session show><3f>");
  EXPECT_EQ(offers("sluice --node /n ls beta:", "beta:data/\tdirectory\n"), "data/|");
  EXPECT_EQ(asked(), "<__operands><ls><beta:></n>");
  EXPECT_EQ(offers("sluice get beta:data/r", "beta:data/run 1\tx\nbeta:data/r$HOME\tx\nbeta:data/r'\tx\n"),
            "data/run\\ 1|data/r\\$HOME|data/r\\'|");
  EXPECT_EQ(offers("sluice get beta:data/\\\\\\[", "beta:data/\\[a]\tx\n"), "data/\\\\\\[a\\]|");
  EXPECT_EQ(asked(), "<__operands><get><beta:data/\\[>");
}

TEST_F(BashOperands, PeersStandBesideLocalFiles) {
  const std::string both = offers("sluice send be", "beta:\t10.0.0.2:7400\n");
  for (const char* one : {"beta:|", "be\\ dir/|", "beta-file|"})
    EXPECT_NE(both.find(one), std::string::npos) << both;
  EXPECT_EQ(offers("sluice send be", ""), "|") << "bash's own";
  EXPECT_EQ(offers("sluice doctor be", "beta\tx\n"), "beta|");
}

class Operands : public CliTest {
 protected:
  std::string offers(const std::string& command, const std::string& word) const {
    const Outcome outcome = sluice({"__operands", command, word, control_.directory.string()});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.err, "");
    std::istringstream lines(outcome.out);
    std::string all;
    for (std::string line; std::getline(lines, line);) all += line.substr(0, line.find('\t')) + "|";
    return all;
  }
};

TEST_F(Operands, ArePeersNamesAndSessions) {
  sessions_are(api::Session::TRANSFERRING);
  sluice({"send", "a", "b:x", "--detach"});
  control_.on_io([&] {
    for (const char* name : {"beta", "berta", "alpha"})
      control_.sessions.node_reply.add_peers()->set_name(name);
  });
  EXPECT_EQ(offers("session show", ""), "s1|");
  EXPECT_EQ(offers("session show", "x"), "");
  EXPECT_EQ(offers("doctor", "b"), "beta|berta|");
  EXPECT_EQ(offers("send", "be"), "beta:|berta:|");
  EXPECT_EQ(offers("send", "./be"), "") << "a local file";
  EXPECT_EQ(offers("node init", ""), "");
  EXPECT_EQ(offers("nonsense", ""), "");
}

TEST_F(Operands, AreWordsThatACommandKnows) {
  EXPECT_EQ(offers("completion", ""), "bash|zsh|fish|");
  EXPECT_EQ(offers("console revoke", "a"), "all|");
  EXPECT_EQ(offers("node log-level", "in"), "info|");
  EXPECT_EQ(offers("session log-level", "e"), "events|");
}

TEST_F(Operands, ASessionHasTheStateThatTheListTells) {
  sessions_are(api::Session::SUCCEEDED, ErrorCode::kPartial);
  sluice({"send", "a", "b:x", "--detach"});
  const Outcome outcome = sluice({"__operands", "session show", "", control_.directory.string()});
  EXPECT_EQ(outcome.out.substr(0, outcome.out.find(',')), "s1\tpartial");
}

TEST_F(Operands, NamesAreThoseInTheDirectoryThatIsTyped) {
  control_.on_io([&] {
    names::Page page;
    for (const char* name : {"other", "run1", "run[2]"}) {
      names::Entry entry;
      entry.path = name;
      entry.type = names::Type::kFile;
      page.entries.push_back(entry);
    }
    control_.names.pages = {page};
  });
  EXPECT_EQ(offers("stat", "b:data/ru"), "b:data/run1|b:data/run[2]|");
  EXPECT_EQ(offers("get", "b:data/ru"), "b:data/run1|b:data/run\\[2]|") << "a pattern that is no pattern";
  EXPECT_EQ(offers("ls", "b:"), "b:other/|b:run1/|b:run\\[2]/|") << "exports";
}

TEST_F(Operands, WithoutADaemonThereAreNone) {
  control_.server.reset();
  EXPECT_EQ(offers("send", ""), "");
  EXPECT_EQ(sluice({"__operands", "send", "", "/nowhere"}).exit_code, 0);
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
