// sluice doctor.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tools/cli/app.h"
#include "tools/cli/client.h"
#include "tools/cli/format.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/gather.h"

namespace sluice::cli {
namespace {

doctor::DaemonFacts ask_daemon(const std::filesystem::path& directory) {
  doctor::DaemonFacts facts;
  const auto client = Client::connect(directory);
  const auto reply = client ? (*client)->node() : Result<api::NodeReply>(client.error());
  if (!reply) {
    facts.problem = reply.error().message;
    return facts;
  }
  facts.version = reply->version();
  facts.attached = reply->dataplane_attached();
  facts.hugepages = reply->hugepages();
  return facts;
}

std::string text_of(const std::vector<doctor::Finding>& findings) {
  std::string text;
  size_t count[3] = {};
  for (const doctor::Finding& finding : findings) {
    ++count[static_cast<size_t>(finding.level)];
    text += fmt::format("{}  {:<14} {}\n", doctor::level_name(finding.level), finding.check,
                        printable(finding.text));
    if (!finding.remedy.empty()) text += fmt::format("{:>21}{}\n", "-> ", printable(finding.remedy));
  }
  return text + fmt::format("{} pass, {} warn, {} fail\n", count[0], count[1], count[2]);
}

Json json_of(const std::vector<doctor::Finding>& findings) {
  Json checks = Json::array();
  for (const doctor::Finding& finding : findings) {
    checks.push_back({{"check", finding.check},
                      {"level", doctor::level_name(finding.level)},
                      {"text", finding.text},
                      {"remedy", finding.remedy}});
  }
  return {{"schema", "sluice.doctor.v1"},
          {"worst", doctor::level_name(doctor::worst(findings))},
          {"checks", std::move(checks)}};
}

Result<int> examine(const Context& context) {
  const auto directory = context.existing_node_directory();
  if (!directory) return directory.error();
  doctor::Facts facts = doctor::gather(*directory);
  if (facts.node) facts.daemon = ask_daemon(*directory);
  const std::vector<doctor::Finding> findings = doctor::check(facts);
  context.print(json_of(findings), text_of(findings));
  const bool failed = doctor::worst(findings) == doctor::Level::kFail;
  return failed ? static_cast<int>(ErrorCode::kConfiguration) : 0;
}

}  // namespace

void add_doctor_command(CLI::App& app, Context& context) {
  app.add_subcommand("doctor", "Look at this node and its host: what is well, what is not, and what mends it")
      ->callback([&context] { context.action = [&context] { return examine(context); }; });
}

}  // namespace sluice::cli
