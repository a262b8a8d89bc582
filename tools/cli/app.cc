// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

// The innermost command that was named, for usage errors; empty: none was.
std::string command_name(const CLI::App& app) {
  std::string name;
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    name += (name.empty() ? "" : " ") + at->get_name();
  }
  return name;
}

int report(const Error& error, bool json, Environment& environment) {
  if (json) environment.out << to_line(error_json(error)) << std::flush;
  environment.err << "sluice: " << printable(error.message) << "\n" << std::flush;
  return static_cast<int>(error.code);
}

// CLI11 writes some messages over several lines; ours have one.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

// The results are worth nothing when they cannot be written, unless the reader went away by its own wish.
int check_output(int exit_code, Environment& environment) {
  environment.out.flush();
  if (environment.out.good() || environment.reader_left()) return exit_code;
  return report({ErrorCode::kInternal, "cannot write to the standard output; is its disk full?"}, false,
                environment);
}

}  // namespace

std::filesystem::path Context::node_directory() const {
  const std::filesystem::path chosen =
      node_option.empty() ? environment.default_node : std::filesystem::path(node_option);
  const std::filesystem::path absolute = environment.working_directory / chosen;
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

Result<std::filesystem::path> Context::existing_node_directory() const {
  const std::filesystem::path directory = node_directory();
  std::error_code ignored;
  if (std::filesystem::exists(directory / "node.toml", ignored)) return directory;
  return Error{ErrorCode::kConfiguration,
               "no node in " + directory.string() + " (no node.toml); make one with 'sluice node init " +
                   directory.string() + "', or name yours with --node or SLUICE_NODE"};
}

void Context::print(const Json& object, const std::string& text) const {
  environment.out << (json ? to_line(object) : text);
}

void add_everything(CLI::App& app, Context& context) {
  app.description("Sluice moves very large files between data-transfer nodes.");
  app.fallthrough();
  app.require_subcommand(0, 1);
  app.add_option("--node", context.node_option,
                 "Directory of the node (default: $SLUICE_NODE, else /etc/sluice)")
      ->type_name("DIR");
  app.add_flag("--json", context.json, "Print one JSON object on stdout");
  app.add_flag("--version", context.version, "Print the version");
  add_transfer_commands(app, context);
  add_run_command(app, context);
  add_session_commands(app, context);
  add_receipt_command(app, context);
  add_bench_command(app, context);
  add_names_commands(app, context);
  add_node_commands(app, context);
  add_doctor_command(app, context);
  add_completion_command(app, context);
  app.footer("'sluice help COMMAND' tells of one command.");
}

int run(const std::vector<std::string>& arguments, Environment& environment) {
  Context context{environment};
  CLI::App app("", "sluice");
  add_everything(app, context);

  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  if (!reversed.empty() && reversed.back() == "help") {
    reversed.pop_back();
    reversed.insert(reversed.begin(), "--help");
  }
  try {
    app.parse(reversed);
  } catch (const CLI::Success& help) {
    app.exit(help, environment.out, environment.err);
    return check_output(0, environment);
  } catch (const CLI::ParseError& e) {
    const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
    const std::string command = command_name(app);
    const std::string hint = "; see 'sluice " + command + (command.empty() ? "--help'" : " --help'");
    return report({ErrorCode::kUsage, one_line(e.what()) + hint}, json, environment);
  }
  if (context.version) {
    context.print({{"schema", "sluice.version.v1"}, {"version", SLUICE_VERSION}},
                  "sluice " SLUICE_VERSION "\n");
    return check_output(0, environment);
  }
  if (!context.action) {
    return report({ErrorCode::kUsage, "no command; see 'sluice --help'"}, context.json, environment);
  }
  auto outcome = context.action();
  if (!outcome) {
    Error error = outcome.error();
    if (error.code == ErrorCode::kUsage) error.message = command_name(app) + ": " + error.message;
    return report(error, context.json, environment);
  }
  return check_output(*outcome, environment);
}

}  // namespace sluice::cli
