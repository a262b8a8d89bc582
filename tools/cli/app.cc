// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/version.h"
#include "tools/cli/format.h"
#include "tools/cli/help.h"
#include "tools/cli/operands.h"
#include "tools/cli/shell.h"
#include "tools/doctor/gather.h"

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
  if (json) environment.out << api::to_line(api::error_json(error)) << std::flush;
  environment.err << "sluice: " << printable(error.message) << "\n" << std::flush;
  return static_cast<int>(error.code);
}

// The results are worth nothing when they cannot be written, unless the reader went away by its own wish.
int check_output(int exit_code, Environment& environment) {
  environment.out.flush();
  if (environment.out.good() || environment.reader_left()) return exit_code;
  const int code = report(
      {ErrorCode::kStorage, exit_code == 0 ? "cannot write to the standard output; is its disk full? The "
                                             "command has done its work, and only its output is missing"
                                           : "cannot write to the standard output; is its disk full?"},
      false, environment);
  return exit_code == 0 ? code : exit_code;
}

}  // namespace

std::filesystem::path Context::node_directory() const {
  const std::filesystem::path chosen =
      node_option.empty() ? environment.default_node : std::filesystem::path(node_option);
  const std::filesystem::path absolute = environment.working_directory / chosen;
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

Error not_to_be_seen(const std::filesystem::path& directory) {
  const doctor::LookerFacts looker = doctor::gather_looker(directory);
  return {ErrorCode::kConfiguration, "you may not see " + directory.string() + " as " + looker.user +
                                         ": run it as " +
                                         (looker.owner.empty() ? "its owner" : looker.owner) +
                                         ", or name your node with --node or SLUICE_NODE"};
}

Result<std::filesystem::path> Context::existing_node_directory() const {
  const std::filesystem::path directory = node_directory();
  std::error_code problem;
  if (std::filesystem::exists(directory / "node.toml", problem)) return directory;
  if (problem == std::errc::permission_denied) return not_to_be_seen(directory);
  return Error{ErrorCode::kConfiguration,
               "no node in " + directory.string() + " (no node.toml); make one with 'sluice node init " +
                   directory.string() + "', or name yours with --node or SLUICE_NODE"};
}

std::string Context::command_for(const std::filesystem::path& directory) const {
  const std::filesystem::path usual = environment.working_directory / environment.default_node;
  const std::filesystem::path meant = environment.working_directory / directory;
  if (usual.lexically_normal() == meant.lexically_normal()) return "sluice";
  return "sluice --node " + shell_word(meant.string());
}

void Context::print(const api::Json& object, const std::string& text) const {
  environment.out << (json ? api::to_line(object) : text);
}

Status Context::check_stdout_is_free(std::string_view what) const {
  if (!json) return {};
  return Error{
      ErrorCode::kUsage,
      std::string(what) + ": the standard output cannot have it and the object of --json; name a file"};
}

void add_everything(CLI::App& app, Context& context) {
  use_help(app);
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
  add_folder_command(app, context);
  add_session_commands(app, context);
  add_receipt_command(app, context);
  add_bench_command(app, context);
  add_probe_command(app, context);
  add_names_commands(app, context);
  add_fleet_commands(app, context);
  add_node_commands(app, context);
  add_authority_commands(app, context);
  add_console_command(app, context);
  add_doctor_command(app, context);
  add_completion_command(app, context);
  app.footer("'sluice help COMMAND' tells of one command.");
}

// The first that is no option of `sluice` itself, nor the value of one.
std::vector<std::string>::iterator command_word(std::vector<std::string>& words) {
  auto word = words.begin();
  while (word != words.end() && word->starts_with('-'))
    word += *word == "--node" && word + 1 != words.end() ? 2 : 1;
  return word;
}

int run(const std::vector<std::string>& given, Environment& environment) {
  Context context{environment};
  CLI::App app("", "sluice");
  add_everything(app, context);

  if (given.size() >= 3 && given[0] == kOperandsCommand) {
    if (given.size() > 3) context.node_option = given[3];
    print_operands(app, context, {.command = given[1], .word = given[2]});
    return check_output(0, environment);
  }
  std::vector<std::string> words = given;
  if (const auto word = command_word(words); word != words.end() && *word == "help") *word = "--help";
  const auto parsed = arguments::parse(app, words, environment.out);
  if (!parsed) {
    const auto options_end = std::find(words.begin(), words.end(), "--");
    const bool json = std::find(words.begin(), options_end, "--json") != options_end;
    return report(parsed.error(), json, environment);
  }
  if (!*parsed) return check_output(0, environment);
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
