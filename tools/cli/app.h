// The `sluice` command: parses the command line, runs one command, reports its outcome in one place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "control/client/json.h"
#include "control/client/way.h"
#include "dataplane/base/error.h"

namespace CLI {
class App;
}  // namespace CLI

namespace sluice::cli {

// What the command line stands in; a test makes its own.
struct Environment {
  std::ostream& out;                                         // results
  std::ostream& err;                                         // progress and errors
  std::function<bool()> reader_left = [] { return false; };  // whoever reads `out`, by his own wish
  bool err_is_terminal = false;
  bool out_is_terminal = false;
  std::function<size_t()> err_columns = [] { return size_t{80}; };
  // Of somebody who can be asked: the next line that he types; empty at the end. None: nobody is there.
  std::function<std::string()> answer = {};
  std::filesystem::path working_directory;
  std::filesystem::path default_node = api::kUsualNode;
  std::istream& in = std::cin;
  // That opens files outside the exports (local_files.h); empty: there is none.
  std::filesystem::path file_opener = {};
  std::filesystem::path console = {};  // sluice-console; empty: there is none; so are these
  std::filesystem::path enroller = {};
  std::filesystem::path control = {};
  std::filesystem::path dataplane = {};
};

// Of the name of a file: the standard input, or output. "./-" is a file of that name.
inline bool is_standard(std::string_view name) { return name == "-"; }

// Shared by the commands. A command's parser stores its work in `action`; its result is the exit status.
struct Context {
  Environment& environment;
  bool json = false;
  bool version = false;
  std::string node_option;
  std::function<Result<int>()> action = {};

  std::filesystem::path node_directory() const;
  // Fails, with the remedy, unless that is a node's directory.
  Result<std::filesystem::path> existing_node_directory() const;
  // "sluice", with --node where it would mean another node.
  std::string command_for(const std::filesystem::path& directory) const;
  // Prints the object or the text, by --json.
  void print(const api::Json& object, const std::string& text) const;
  // What goes to the standard output in place of a file has it alone: kUsage with --json. `what` names it.
  Status check_stdout_is_free(std::string_view what) const;
};

// Of a node's directory into which this user may not look.
Error not_to_be_seen(const std::filesystem::path& directory);

void add_authority_commands(CLI::App& app, Context& context);
void add_bench_command(CLI::App& app, Context& context);
void add_console_command(CLI::App& app, Context& context);
void add_completion_command(CLI::App& app, Context& context);
void add_doctor_command(CLI::App& app, Context& context);
void add_node_log_level(CLI::App& node, Context& context);  // node log-level
void add_node_topology(CLI::App& node, Context& context);   // node topology
void add_node_enrol(CLI::App& node, Context& context);      // node enrol
void add_node_run(CLI::App& node, Context& context);        // node run
void add_node_commands(CLI::App& app, Context& context);
void add_trust_commands(CLI::App& node, Context& context);  // node trust, distrust, allow, rotate
void add_setup(CLI::App& node, Context& context);           // node setup
void add_transfer_commands(CLI::App& app, Context& context);
void add_run_command(CLI::App& app, Context& context);
void add_folder_command(CLI::App& app, Context& context);     // watch
void add_session_views(CLI::App& session, Context& context);  // session events, session watch
void add_move_commands(CLI::App& session, Context& context);  // session export, session import
void add_log_commands(CLI::App& session, Context& context);   // session log, session log-level
void add_session_commands(CLI::App& app, Context& context);
void add_names_commands(CLI::App& app, Context& context);
void add_fleet_commands(CLI::App& app, Context& context);
void add_verify_command(CLI::App& app, Context& context);
void add_receipt_command(CLI::App& app, Context& context);
void add_probe_command(CLI::App& app, Context& context);

// The tree of all commands, for the command line and for what is made of it; `context` has to live as long.
void add_everything(CLI::App& app, Context& context);

// `arguments` without the program's name. Returns the exit status (docs/RUNBOOK.md, "Exit codes").
int run(const std::vector<std::string>& arguments, Environment& environment);

}  // namespace sluice::cli
