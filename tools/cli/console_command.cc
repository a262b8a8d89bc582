// sluice console: links to the console in the browser. The program behind it is sluice-console
// (tools/console), which this process becomes.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tools/cli/app.h"

namespace sluice::cli {
namespace {

struct ConsoleFlags {
  std::string role;
  std::string id;
  std::string user;
};

// Returns only when it could not.
Error become_console(const Context& context, const std::filesystem::path& node,
                     const std::vector<std::string>& words) {
  const std::filesystem::path& program = context.environment.console;
  if (program.empty())
    return {ErrorCode::kConfiguration,
            "sluice-console is not installed beside this command; install the package, or build it with "
            "./dev build"};
  std::vector<std::string> all = {program.string(), "--node", node.string()};
  if (context.json) all.emplace_back("--json");
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> given;
  for (std::string& word : all) given.push_back(word.data());
  given.push_back(nullptr);
  context.environment.out.flush();
  context.environment.err.flush();
  ::execv(program.c_str(), given.data());
  return {ErrorCode::kConfiguration, "cannot run " + program.string() + ": " + std::strerror(errno)};
}

}  // namespace

void add_console_command(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<ConsoleFlags>();
  CLI::App* command = app.add_subcommand("console", "Use the console in the browser");
  command->require_subcommand(1);
  const auto add = [&context, command](const char* name, const char* meaning, auto words) {
    CLI::App* one = command->add_subcommand(name, meaning);
    one->callback([&context, words] {
      context.action = [&context, words]() -> Result<int> {
        const auto node = context.existing_node_directory();
        if (!node) return node.error();
        return become_console(context, *node, words());
      };
    });
    return one;
  };
  const auto with = [](std::vector<std::string> words, const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
    return words;
  };
  add("open", "Print a link that signs you in, once, within a minute",
      [flags, with] { return with({"open"}, "--role", flags->role); })
      ->add_option("--role", flags->role, "Come in as less than you may: viewer, user or operator")
      ->check(CLI::IsMember({"viewer", "user", "operator"}))
      ->type_name("ROLE");
  add("sign-ins", "Show who has signed in: you; of an operator all",
      [] { return std::vector<std::string>{"sign-ins"}; });
  add("revoke", "End a sign-in",
      [flags] {
        return std::vector<std::string>{"revoke", flags->id};
      })
      ->add_option("id", flags->id, "Sign-in, as 'sluice console sign-ins' shows it, or all")
      ->required()
      ->type_name("ID|all");
  add("setup", "Make the console's key, and tell sluice-control of it",
      [flags, with] { return with({"setup"}, "--user", flags->user); })
      ->add_option("--user", flags->user, "As whom sluice-console runs (you)")
      ->type_name("USER");
}

}  // namespace sluice::cli
