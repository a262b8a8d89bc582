// Every flag of `sluice send` and `sluice get`, every key of [transfer], and every row of the reference comes
// from dataplane/base/options/options.def.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/options/options.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <sstream>

#include "dataplane/base/config/schema.h"
#include "tools/cli/app.h"
#include "tools/cli/cli_fixture_for_test.h"
#include "tools/cli/run_file.h"

namespace sluice::cli {
namespace {

std::set<std::string> flags_of(const CLI::App& command) {
  std::set<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional() && option != command.get_help_ptr())
      flags.insert("--" + option->get_lnames().front());
  }
  return flags;
}

TEST(TransferOptions, SendAndGetHaveEachOptionOfTheTableAndNoOther) {
  std::ostringstream out, err;
  Environment environment{out, err};
  Context context{environment};
  CLI::App app("", "sluice");
  add_everything(app, context);
  std::set<std::string> table;
  for (const options::Option& option : options::all()) {
    if (!option.flag.empty()) table.insert(std::string(option.long_flag()));
  }
  EXPECT_EQ(flags_of(*app.get_subcommand("send")), table);
  table.insert("--from");  // of `get`: names nodes, as NODE: does
  EXPECT_EQ(flags_of(*app.get_subcommand("get")), table);
}

TEST(TransferOptions, AFileOfRunHasAKeyForEachAndSomeThatAreNoOptions) {
  std::set<std::string> keys = {"together", "sources",    "to",     "from",
                                "retry",    "not_before", "window", "every"};
  for (const options::Option& option : options::all()) {
    if (option.flag.empty() || !option.in_files) continue;
    std::string key(option.long_flag().substr(2));
    std::replace(key.begin(), key.end(), '-', '_');
    keys.insert(key);
  }
  std::istringstream table(run_file_reference());
  for (std::string line; std::getline(table, line);) {
    if (!line.starts_with("| `")) continue;
    const std::string key = line.substr(3, line.find('`', 3) - 3);
    EXPECT_EQ(keys.erase(key), 1U) << key << " is not of the table";
  }
  EXPECT_TRUE(keys.empty()) << *keys.begin() << " is no key of `sluice run`";
}

TEST(TransferOptions, NodeTomlHasAKeyForEachThatIsConfiguredAndOneThatIsNoOption) {
  std::set<std::string_view> keys = {"partition_bytes"};
  for (const options::Option& option : options::all()) {
    if (option.configured) keys.insert(option.config_key());
  }
  for (const config::Key& key : config::schema()) {
    if (key.section == "transfer") EXPECT_EQ(keys.erase(key.name), 1U) << key.name << " is not of the table";
  }
  EXPECT_TRUE(keys.empty()) << *keys.begin() << " is no key of [transfer]";
}

TEST_F(CliTest, TheReferenceOfOptionsIsPrinted) {
  const Outcome outcome = sluice({"node", "reference", "--options"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, options::reference_markdown());
}

TEST_F(CliTest, EachSwitchOfATransferReachesTheNode) {
  sessions_are(api::Session::SUCCEEDED);
  for (const options::Option& option : options::all()) {
    if (option.of == options::Of::kCommand || option.kind != options::Kind::kSwitch || option.flag.empty())
      continue;
    SCOPED_TRACE(option.name);
    ASSERT_EQ(sluice({"send", "-q", "a", "b:x", std::string(option.long_flag())}).exit_code, 0);
    control_.on_io([&] {
      const api::TransferOptions& sent = control_.sessions.last_send->options();
      const auto* const field = sent.GetDescriptor()->FindFieldByName(std::string(option.name));
      EXPECT_TRUE(sent.GetReflection()->GetBool(sent, field));
    });
  }
}

TEST_F(CliTest, EachWordOfAnEnumerationReachesTheNodeAndNoOtherDoes) {
  sessions_are(api::Session::SUCCEEDED);
  for (const options::Option& option : options::all()) {
    if (option.kind != options::Kind::kChoice || option.flag.empty()) continue;
    SCOPED_TRACE(option.name);
    const std::string flag(option.long_flag());
    for (const std::string_view word : option.choices) {
      ASSERT_EQ(sluice({"send", "-q", "a", "b:x", flag, std::string(word), "--deadline", "1h"}).exit_code, 0);
      control_.on_io([&] {
        const api::TransferOptions& sent = control_.sessions.last_send->options();
        const auto* const field = sent.GetDescriptor()->FindFieldByName(std::string(option.name));
        EXPECT_EQ(sent.GetReflection()->GetString(sent, field), word);
      });
    }
    const Outcome wrong = sluice({"send", "-q", "a", "b:x", flag, "nonsense"});
    expect_one_line_error(wrong, ErrorCode::kUsage);
    EXPECT_NE(wrong.err.find(flag), std::string::npos) << wrong.err;
  }
}

}  // namespace
}  // namespace sluice::cli
