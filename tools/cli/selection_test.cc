// What of the sources is wanted, and what it would be: --include, --exclude, --files-from, --dry-run.
// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <iterator>

#include "tools/cli/cli_fixture_for_test.h"

namespace sluice::cli {
namespace {

class SelectionTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    sessions_are(api::Session::SUCCEEDED);
  }
  api::TransferOptions sent() {
    return control_.on_io([&] { return control_.sessions.last_send->options(); });
  }
  std::string rules() {
    std::string text;
    const api::TransferOptions options = sent();
    for (const api::Rule& rule : options.rules()) text += (rule.include() ? "+" : "-") + rule.pattern() + " ";
    return text;
  }
  std::vector<std::string> names() {
    const api::TransferOptions options = sent();
    return {options.names().begin(), options.names().end()};
  }
  void write_list(const std::string& text) const { std::ofstream(control_.directory / "list") << text; }
  Outcome send(const std::vector<std::string>& options) const {
    std::vector<std::string> arguments{"send", "d", "b:in/"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_in(control_.directory, arguments);
  }
  void preview_is(const std::vector<api::PreviewEntry>& entries) {
    control_.on_io([&] {
      for (const api::PreviewEntry& entry : entries) *control_.sessions.preview_reply.add_entries() = entry;
    });
  }
  static api::PreviewEntry entry(const std::string& path, api::NameEntry::Type type, uint64_t size = 0,
                                 const std::string& missing = "", bool left_out = false) {
    api::PreviewEntry made;
    made.set_path(path);
    made.set_type(type);
    made.set_size(size);
    made.set_missing(missing);
    made.set_left_out(left_out);
    return made;
  }
};

TEST_F(SelectionTest, RulesGoInTheOrderInWhichTheyAreGiven) {
  EXPECT_EQ(send({"--exclude", "a", "--include", "b", "--filter", "- c", "--exclude=-d", "--filter", "+  e"})
                .exit_code,
            0);
  EXPECT_EQ(rules(), "-a +b -c --d + e ");
}

TEST_F(SelectionTest, WhatIsNoRuleIsRefused) {
  for (const char* rule : {"a", "+", "- ", "!", "+a", "R x"}) {
    const Outcome outcome = send({"--filter", rule});
    expect_one_line_error(outcome, ErrorCode::kUsage);
    EXPECT_NE(outcome.err.find("+ PATTERN"), std::string::npos) << outcome.err;
  }
}

TEST_F(SelectionTest, AListIsReadAndCarriedClean) {
  write_list("./a\n# no\n/b//c/\n");
  EXPECT_EQ(send({"--files-from", "list"}).exit_code, 0);
  EXPECT_EQ(names(), (std::vector<std::string>{"a", "b/c/"}));
  std::ofstream(control_.directory / "list") << std::string("a\nb\0#c\0", 7);
  EXPECT_EQ(send({"--files-from", "list", "-0"}).exit_code, 0);
  EXPECT_EQ(names(), (std::vector<std::string>{"a\nb", "#c"}));
}

TEST_F(SelectionTest, AListThatCannotBeIsNamed) {
  write_list("a\n../b\n");
  Outcome outcome = send({"--files-from", "list"});
  expect_one_line_error(outcome, ErrorCode::kUsage);
  EXPECT_NE(outcome.err.find("--files-from list: name 2: ../b: leads out"), std::string::npos) << outcome.err;
  for (const char* file : {"none", "."}) {
    outcome = send({"--files-from", file});
    expect_one_line_error(outcome, ErrorCode::kUsage);
    EXPECT_NE(outcome.err.find("cannot be read"), std::string::npos) << outcome.err;
  }
  write_list(std::string(17U << 20, '#'));
  outcome = send({"--files-from", "list"});
  expect_one_line_error(outcome, ErrorCode::kUsage);
  EXPECT_NE(outcome.err.find("longer than 16 MiB"), std::string::npos) << outcome.err;
  EXPECT_EQ(send({"--from0"}).exit_code, static_cast<int>(ErrorCode::kUsage)) << "of what list?";
}

TEST_F(SelectionTest, AFileOfTransfersHasNoStdin) {
  std::ofstream(control_.directory / "f.toml")
      << "[[send]]\nsources = \"d\"\nto = \"b:c\"\nfiles_from = \"-\"\n";
  const Outcome outcome = run_in(control_.directory, {"run", "f.toml"});
  expect_one_line_error(outcome, ErrorCode::kConfiguration);
  EXPECT_NE(outcome.err.find("stdin is not read here"), std::string::npos) << outcome.err;
}

TEST_F(SelectionTest, APreviewPrintsPathsAndBeginsNothing) {
  preview_is({entry("d", api::NameEntry::DIRECTORY), entry("d/\x1b", api::NameEntry::FILE, 5),
              entry("d/l", api::NameEntry::LINK), entry("d/p", api::NameEntry::FILE, 0, "is a pipe", true)});
  Outcome outcome = send({"-n"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "d/\nd/\\x1b\nd/l\n");
  EXPECT_EQ(outcome.err,
            "sluice: would be missing: d/p: is a pipe\n"
            "sluice: 3 names of 5 B would be sent, 0 would fail, 1 would be left out\n");
  outcome = send({"-n", "--json"});
  EXPECT_EQ(outcome.json()["schema"], "sluice.preview.v1");
  EXPECT_EQ(outcome.json()["entries"].size(), 3U);
  EXPECT_EQ(outcome.json()["entries"][1]["size_bytes"], 5);
  EXPECT_EQ(outcome.json()["bytes"], 5);
  EXPECT_EQ(outcome.json()["missing"][0]["reason"], "is a pipe");
  control_.on_io([&] { EXPECT_TRUE(control_.sessions.sessions.empty()); });
}

TEST_F(SelectionTest, APreviewEndsAsTheTransferWould) {
  preview_is({entry("d/f", api::NameEntry::FILE, 0, "permission denied")});
  EXPECT_EQ(send({"-n"}).exit_code, static_cast<int>(ErrorCode::kPartial));
  std::ofstream(control_.directory / "f.toml") << "[[send]]\nsources = \"d\"\nto = \"b:c\"\ndry_run = true\n";
  const Outcome run = run_in(control_.directory, {"run", "f.toml", "--json"});
  EXPECT_EQ(run.exit_code, static_cast<int>(ErrorCode::kPartial));
  EXPECT_EQ(run.json()["previews"][0]["failed"], 1) << run.out;
  control_.on_io([&] { control_.sessions.refusal = Error{ErrorCode::kPeerUntrusted, "no peer b"}; });
  expect_one_line_error(send({"-n"}), ErrorCode::kPeerUntrusted);
}

}  // namespace
}  // namespace sluice::cli
