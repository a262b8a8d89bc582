// SPDX-License-Identifier: Apache-2.0
#include "tools/package/manuals.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/config/schema.h"
#include "dataplane/base/daemon/daemon.h"
#include "dataplane/base/error.h"
#include "dataplane/base/version.h"
#include "tools/cli/app.h"
#include "tools/cli/help.h"

namespace sluice::package {
namespace {

std::string head(const std::string& title, int section, const std::string& about) {
  std::string upper = title;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(
      ".\\\" SPDX-License-Identifier: Apache-2.0\n"
      ".TH {} {} \"\" \"Sluice {}\" \"Sluice\"\n.SH NAME\n{} \\- {}\n",
      roff(upper), section, SLUICE_VERSION, roff(title), roff(about));
}

// Without the stop at its end, as the line NAME has it.
std::string first_sentence(const std::string& text) {
  std::string first = text.substr(0, std::min(text.find(". "), text.find('\n')));
  if (first.ends_with('.')) first.pop_back();
  return first;
}

std::string option_item(const CLI::Option& option) {
  std::string names;
  const auto add = [&names](const std::string& name) {
    names += (names.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  };
  const arguments::ValueWords value = arguments::value_words(option);
  for (const std::string& name : option.get_snames()) add("-" + name);
  for (const std::string& name : option.get_lnames()) add("--" + name);
  if (names.empty())
    names = "\\fI" + roff(value.name) + "\\fR";
  else if (option.get_items_expected_max() > 0)
    names += " \\fI" + roff(value.name) + "\\fR";
  std::string more;
  if (const std::string allowed = value.allowed(); !allowed.empty()) more += "Allowed: " + allowed + ".\n";
  if (!option.get_default_str().empty()) more += "Default: " + option.get_default_str() + ".\n";
  if (!option.get_envname().empty()) more += "Also by the environment: " + option.get_envname() + ".\n";
  std::string about = option.get_description();
  if (!more.empty() && !about.ends_with('.')) about += '.';
  std::string text = ".TP\n" + names + "\n" + roff(about) + "\n" + roff(more);
  return text;
}

// "send [options] FILE... NODE:PATH"
std::string synopsis(const CLI::App& app, const std::string& name) {
  std::string line = "\\fB" + roff(name) + "\\fR";
  const auto options = app.get_options([](const CLI::Option* option) { return option->nonpositional(); });
  if (!options.empty()) line += " [\\fIoptions\\fR]";
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional()) continue;
    const std::string word = "\\fI" + roff(arguments::value_words(*option).name) + "\\fR";
    line += option->get_required() ? " " + word : " [" + word + "]";
  }
  return line + "\n";
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string synopses(const CLI::App& app, const std::string& name) {
  const auto below = commands_of(app);
  if (below.empty()) return synopsis(app, name) + ".br\n";
  std::string text;
  for (const CLI::App* command : below) text += synopses(*command, name + " " + command->get_name());
  return text;
}

std::string items(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    const auto& names = option->get_lnames();
    if (std::find(names.begin(), names.end(), "help") == names.end()) text += option_item(*option);
  }
  return text;
}

// `begins` stands before them, if there are any.
std::string examples(const CLI::App& app, const std::string& begins) {
  std::string text;
  for (const std::string& line : cli::example_lines(app)) text += roff(line) + "\n";
  return text.empty() ? "" : begins + ".PP\n.RS 4\n.nf\n" + text + ".fi\n.RE\n";
}

std::string sections(const CLI::App& app, const std::string& name) {
  std::string text;
  for (const CLI::App* command : commands_of(app)) {
    const std::string full = name + " " + command->get_name();
    text += ".SS " + roff(full) + "\n" + roff(command->get_description()) + "\n" + items(*command) +
            examples(*command, ".PP\nFor example:\n");
    text += sections(*command, full);
  }
  return text;
}

constexpr std::string_view kExitStatus =
    ".SH EXIT STATUS\n"
    "All programs of Sluice share these; RUNBOOK.md tells more of what to do.\n";

std::string exit_codes() {
  std::string text(kExitStatus);
  for (int code = 0; code <= static_cast<int>(kErrorCodeLast); ++code) {
    const std::string_view name = error_code_name(static_cast<ErrorCode>(code));
    text += fmt::format(".TP\n.B {}\n{}\n.br\n{}\n", code, roff(name),
                        roff(cli::exit_meaning(static_cast<ErrorCode>(code))));
  }
  return text;
}

std::string see_also(const std::string& pages) {
  return ".SH SEE ALSO\n" + pages +
         "\n.PP\nThe manual: TUTORIAL.md, REFERENCE.md and RUNBOOK.md in /usr/share/doc/sluice\n";
}

Page main_page(const CLI::App& app) {
  std::string text = head("sluice", 1, first_sentence(app.get_description()));
  text +=
      ".SH SYNOPSIS\n.B sluice\n[\\fB\\-\\-node\\fR \\fIDIR\\fR] [\\fB\\-\\-json\\fR] \\fICOMMAND\\fR ...\n"
      ".SH DESCRIPTION\n" +
      roff(app.get_description()) +
      "\nEach command has a page of its own, "
      "and says with \\fB\\-\\-help\\fR what it takes.\n.SH COMMANDS\n";
  std::string pages;
  for (const CLI::App* command : commands_of(app)) {
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(command->get_name()), roff(command->get_description()));
    pages += fmt::format(".BR sluice\\-{} (1),\n", roff(command->get_name()));
  }
  text += ".SH OPTIONS OF EVERY COMMAND\n" + items(app);
  text += ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nPrint the help of that command and exit\n";
  text +=
      ".SH ENVIRONMENT\n.TP\n.B SLUICE_NODE\nDirectory of the node, where \\-\\-node is not given.\n"
      ".SH FILES\n.TP\n.I /etc/sluice/node.toml\nThe configuration of the node.\n"
      ".TP\n.I /var/lib/sluice\nIts sessions, and the audit log.\n";
  return {.file = "sluice.1",
          .text = text + exit_codes() +
                  see_also(pages + ".BR node.toml (5),\n.BR sluice\\-control (8),\n"
                                   ".BR sluice\\-dataplane (8)")};
}

Page daemon_page(const daemon::Program& program, const std::string& other) {
  CLI::App app(program.about, program.name);
  daemon::Options options;
  daemon::add_options(app, program, options);
  std::string text = head(program.name, 8, first_sentence(program.about));
  text += ".SH SYNOPSIS\n" + synopsis(app, program.name) + ".SH DESCRIPTION\n" + roff(program.about) +
          "\nIt stays in the foreground, and logs to the standard error, or to the journal of systemd. "
          "SIGTERM and SIGINT end it; sessions go on when it is started again.\n.SH OPTIONS\n" +
          items(app) + ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nPrint the help and exit\n" + exit_codes() +
          see_also(".BR sluice (1),\n.BR node.toml (5),\n.BR " + roff(other) + " (8)");
  return {.file = program.name + ".8", .text = text};
}

Page configuration_page() {
  const config::Node defaults;
  std::string text = head("node.toml", 5, "configuration of a node of Sluice");
  text +=
      ".SH DESCRIPTION\nBoth daemons read it when they start. It is TOML; a wrong key or value is an error "
      "that names it.\nSizes are written as 64MiB or 1G (K = 1024), rates in bit/s as 10G or 800M (K = "
      "1000).\n";
  std::string_view section;
  for (const config::Key& key : config::schema()) {
    if (key.section != section) {
      section = key.section;
      text += ".SH " + roff(config::section_header(section)) + "\n";
    }
    std::string about = std::string(key.meaning) + " Allowed: " + config::allowed_values(key) + ".";
    if (key.required)
      about += " Required.";
    else if (!config::is_of_exports(section))
      about += " Default: " + config::toml_value(key, defaults) + ".";
    if (!key.unit.empty()) about += " Unit: " + std::string(key.unit) + ".";
    std::erase(about, '`');
    text += ".TP\n\\fB" + roff(key.name) + "\\fR\n" + roff(about) + "\n";
  }
  text += ".SH FILES\n.TP\n.I /etc/sluice/node.toml\n";
  text += "Made by sluice node setup, or sluice node init.\n";
  return {.file = "node.toml.5",
          .text = text + see_also(".BR sluice\\-node (1),\n.BR sluice\\-control (8),\n"
                                  ".BR sluice\\-dataplane (8)")};
}

}  // namespace

std::string roff(std::string_view text) {
  std::string out;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    begins_line = c == '\n';
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\'')
      out += "\\(aq";
    else if (c == '`')
      out += "\\(ga";
    else if (c == '^')
      out += "\\(ha";
    else if (c == '~')
      out += "\\(ti";
    else if (c == '"')
      out += "\\(dq";
    else
      out += c;
  }
  return out;
}

Page command_page(const CLI::App& app, const std::string& name) {
  std::string title = name;
  std::replace(title.begin(), title.end(), ' ', '-');
  const std::string below = sections(app, name);
  std::string text = head(title, 1, first_sentence(app.get_description())) + ".SH SYNOPSIS\n" +
                     synopses(app, name) + ".SH DESCRIPTION\n" + roff(app.get_description()) + "\n";
  if (const std::string own = items(app); !own.empty()) text += ".SH OPTIONS\n" + own;
  if (!below.empty()) text += ".SH COMMANDS\n" + below;
  text += examples(app, ".SH EXAMPLES\n");
  text += ".PP\nOptions of every command, and the exit statuses, are in\n.BR sluice (1).\n";
  return {.file = title + ".1", .text = text + see_also(".BR sluice (1)")};
}

std::vector<Page> manuals() {
  cli::Environment environment{std::cout, std::cerr};
  cli::Context context{environment};
  CLI::App app("", "sluice");
  cli::add_everything(app, context);
  std::vector<Page> pages{main_page(app)};
  for (const CLI::App* command : commands_of(app))
    pages.push_back(command_page(*command, "sluice " + command->get_name()));
  pages.push_back(daemon_page(daemon::kControl, daemon::kDataplane.name));
  pages.push_back(daemon_page(daemon::kDataplane, daemon::kControl.name));
  pages.push_back(daemon_page(daemon::kUsers, daemon::kControl.name));
  pages.push_back(configuration_page());
  return pages;
}

}  // namespace sluice::package
