// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/enrol.h"

#include <CLI/CLI.hpp>
#include <istream>
#include <nlohmann/json.hpp>

#include "control/identity/node_files.h"
#include "tools/cli/app.h"
#include "tools/cli/child.h"
#include "tools/cli/format.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

constexpr std::string_view kProgram = "sluice-enrol: ";

// What the program said, as an error of this command.
Error error_of(const Heard& heard) {
  const bool known = heard.status > 0 && heard.status <= static_cast<int>(kErrorCodeLast);
  std::string text = heard.err.substr(0, heard.err.find('\n'));
  if (text.starts_with(kProgram)) text.erase(0, kProgram.size());
  if (text.empty()) text = "sluice-enrol ended with status " + std::to_string(heard.status);
  return {known ? static_cast<ErrorCode>(heard.status) : ErrorCode::kInternal, text};
}

}  // namespace

void add_enrol_options(CLI::App& command, EnrolFlags& flags) {
  command
      .add_option("--enrol", flags.token,
                  "Have its key signed, by a token of the authority's holder: itself, @FILE, or - for the "
                  "standard input")
      ->type_name("TOKEN");
  command.add_option("--at", flags.at, "Where the authority's holder serves, if the token does not say so")
      ->type_name("HOST:PORT");
}

Result<site::Token> token_of(const Context& context, const EnrolFlags& flags) {
  if (flags.token == "-") {
    std::string line;
    std::getline(context.environment.in, line);
    return site::parse_token(line);
  }
  if (!flags.token.starts_with('@')) return site::parse_token(flags.token);
  const auto text = identity::read_small_file(context.environment.working_directory / flags.token.substr(1));
  if (!text) return usage("--enrol: " + text.error().message);
  return site::parse_token(*text);
}

Status enrol(const Context& context, const std::filesystem::path& directory, const site::Token& token,
             const EnrolFlags& flags, config::TemplateOptions& options) {
  const std::filesystem::path& program = context.environment.enroller;
  if (program.empty())
    return Error{ErrorCode::kConfiguration,
                 "sluice-enrol is not installed beside this command; install the package, or build it with "
                 "./dev build"};
  std::vector<std::string> words = {program.string(),
                                    "call",
                                    directory.string(),
                                    "--name",
                                    options.name,
                                    "--timeout",
                                    std::to_string(flags.timeout_s)};
  if (!flags.at.empty()) words.insert(words.end(), {"--at", flags.at});
  const auto heard = run_program(words, site::to_text(token) + "\n");
  if (!heard) return heard.error();
  if (heard->status != 0) return error_of(*heard);
  const auto told = nlohmann::json::parse(heard->out, nullptr, false);
  if (!told.is_object()) return Error{ErrorCode::kInternal, "sluice-enrol has not said what came of it"};
  options.ca_domain = told.value("domain", "");
  options.ca_file = (directory / "authority" / "ca.pem").string();
  if (told.value("crl", false)) options.crl_file = (directory / "authority" / "crl.pem").string();
  return {};
}

}  // namespace sluice::cli
