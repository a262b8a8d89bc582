// Whatever a program understands is in its page, and man reads each of them.
// SPDX-License-Identifier: Apache-2.0
#include "tools/package/manuals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "dataplane/base/config/schema.h"
#include "dataplane/base/error.h"
#include "tools/cli/app.h"
#include "tools/cli/help.h"

namespace sluice::package {
namespace {

std::map<std::string, std::string> by_file() {
  std::map<std::string, std::string> pages;
  for (const Page& page : manuals()) pages[page.file] = page.text;
  return pages;
}

void expect_all_of(const CLI::App& app, const std::string& name, const std::string& text) {
  EXPECT_NE(text.find(roff(app.get_description())), std::string::npos) << name;
  for (const CLI::Option* option : app.get_options()) {
    if (option->check_lname("help")) continue;  // of every command, in sluice(1)
    EXPECT_NE(text.find(roff(option->get_description())), std::string::npos)
        << name << ": " << option->get_name();
    for (const std::string& one : option->get_lnames()) {
      EXPECT_NE(text.find("\\fB" + roff("--" + one) + "\\fR"), std::string::npos) << name << ": --" << one;
    }
    for (const std::string& one : option->get_snames()) {
      EXPECT_NE(text.find("\\fB" + roff("-" + one) + "\\fR"), std::string::npos) << name << ": -" << one;
    }
  }
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string full = name + " " + below->get_name();
    EXPECT_NE(text.find("\n.SS " + roff(full) + "\n"), std::string::npos) << full;
    expect_all_of(*below, full, text);
  }
}

TEST(Manuals, EveryCommandAndOptionIsThere) {
  const auto pages = by_file();
  cli::Environment environment{std::cout, std::cerr};
  cli::Context context{environment};
  CLI::App app("", "sluice");
  cli::add_everything(app, context);
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  EXPECT_GE(commands.size(), 15U);
  EXPECT_EQ(pages.size(), commands.size() + 5);  // sluice.1, three daemons, node.toml
  for (const CLI::App* command : commands) {
    const std::string file = "sluice-" + command->get_name() + ".1";
    ASSERT_TRUE(pages.contains(file)) << file;
    expect_all_of(*command, "sluice " + command->get_name(), pages.at(file));
    EXPECT_NE(pages.at("sluice.1").find("\\fB" + roff(command->get_name()) + "\\fR"), std::string::npos);
  }
  for (const char* option : {"--node", "--json", "--version", "--help"}) {
    for (const char* file : {"sluice.1", "sluice-control.8"}) {
      if (std::string(file) == "sluice-control.8" && std::string(option) == "--json") continue;
      EXPECT_NE(pages.at(file).find(roff(option)), std::string::npos) << file << option;
    }
  }
}

TEST(Manuals, EveryKeyAndExitCodeIsThere) {
  const auto pages = by_file();
  for (const config::Key& key : config::schema()) {
    const std::string text = pages.at("node.toml.5");
    EXPECT_NE(text.find("\\fB" + roff(key.name) + "\\fR"), std::string::npos) << key.name;
  }
  for (int code = 0; code <= static_cast<int>(kErrorCodeLast); ++code) {
    const std::string name(error_code_name(static_cast<ErrorCode>(code)));
    for (const char* file : {"sluice.1", "sluice-dataplane.8"})
      EXPECT_NE(pages.at(file).find(".B " + std::to_string(code) + "\n" + roff(name) + "\n.br\n" +
                                    roff(cli::exit_meaning(static_cast<ErrorCode>(code))) + "\n"),
                std::string::npos)
          << name;
  }
}

TEST(Manuals, TheSynopsisHasTheOperandsAndEachPageExamples) {
  const auto pages = by_file();
  EXPECT_NE(pages.at("sluice-send.1").find("\\fIoptions\\fR] \\fISRC... NODE:PATH\\fR\n"), std::string::npos);
  EXPECT_NE(pages.at("sluice-mv.1").find("\\fINODE:OLD NODE:NEW\\fR\n"), std::string::npos);
  EXPECT_NE(pages.at("sluice-send.1").find("Allowed: \\-100 to 100."), std::string::npos);
  for (const auto& [file, text] : pages) {
    EXPECT_EQ(text.find("INT in ["), std::string::npos) << file;
    if (!file.starts_with("sluice-") || !file.ends_with(".1")) continue;
    EXPECT_TRUE(text.find(".SH EXAMPLES\n") != std::string::npos ||
                text.find("\nFor example:\n") != std::string::npos)
        << file;
  }
}

TEST(Manuals, NoTextIsTakenForAnOrder) {
  EXPECT_EQ(roff(".so /etc/passwd\n'x\nplain"), "\\&.so /etc/passwd\n\\&\\(aqx\nplain");
  EXPECT_EQ(roff("a\\b --c"), "a\\eb \\-\\-c");
  CLI::App app(".sh it", "x");
  app.add_option("--odd", ".so in a description");
  const Page page = command_page(app, "x");
  EXPECT_EQ(page.text.find("\n.so"), std::string::npos);
  EXPECT_EQ(page.text.find("\n.sh"), std::string::npos);
}

TEST(Manuals, ManReadsThemWithoutAWarning) {
  if (::access("/usr/bin/groff", X_OK) != 0) GTEST_SKIP() << "no groff here";
  const auto file = std::filesystem::temp_directory_path() / ("sluice-manual-" + std::to_string(::getpid()));
  for (const Page& page : manuals()) {
    std::ofstream(file) << page.text;
    FILE* const pipe = ::popen(("groff -man -ww -z " + file.string() + " 2>&1").c_str(), "r");
    std::array<char, 4096> said{};
    const size_t got = std::fread(said.data(), 1, said.size() - 1, pipe);
    ::pclose(pipe);
    EXPECT_EQ(got, 0U) << page.file << ": " << said.data();
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace sluice::package
