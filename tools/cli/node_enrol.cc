// sluice node enrol: a node that is there has its key signed by a site's authority, for the first time or
// anew. Its key stays, and so do the peers that it has pinned and that have pinned it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "control/identity/node_files.h"
#include "control/identity/trust.h"
#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/utc.h"
#include "tools/cli/app.h"
#include "tools/cli/enrol.h"
#include "tools/cli/format.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

// What node.toml is to say.
struct Setting {
  std::string key;
  std::string value;
  std::string present;
};

// In place of the line that shows the default, as `sluice node init` writes it. False: there is none.
bool set_line(std::string& text, const Setting& setting) {
  const std::string shown = "\n# " + setting.key + " = \"\"\n";
  const size_t at = text.find(shown);
  if (at == std::string::npos || text.find(shown, at + 1) != std::string::npos) return false;
  text.replace(at, shown.size(), "\n" + setting.key + " = \"" + setting.value + "\"\n");
  return true;
}

// What the operator has to do with node.toml by hand; empty: nothing.
Result<std::string> adapt(const config::Node& node, const config::TemplateOptions& made) {
  const fs::path file = node.directory / "node.toml";
  auto text = identity::read_small_file(file);
  if (!text) return text.error();
  std::string by_hand;
  bool changed = false;
  for (const Setting& one :
       {Setting{"ca_file", made.ca_file, node.ca_file}, Setting{"crl_file", made.crl_file, node.crl_file},
        Setting{"ca_domain", made.ca_domain, node.ca_domain}}) {
    if (one.value == one.present) continue;
    if (set_line(*text, one)) {
      changed = true;
    } else {
      by_hand += fmt::format("{} = \"{}\"\n", one.key, one.value);
    }
  }
  if (!changed) return by_hand;
  if (const auto good = config::parse(*text, node.directory, file.string()); !good) return good.error();
  const Status written = identity::write_small_file(file, *text, 0644, identity::Replace::kYes);
  if (!written) return written.error();
  return by_hand;
}

Result<int> enrol_node(const Context& context, const EnrolFlags& flags) {
  const auto directory = context.existing_node_directory();
  if (!directory) return directory.error();
  const auto node = config::load(*directory);
  if (!node) return node.error();
  const auto token = token_of(context, flags);
  if (!token) return token.error();
  if (!token->name.empty() && token->name != node->name)
    return usage(
        fmt::format("this token is for {}, and this node is {}; ask the authority's holder for another",
                    token->name, node->name));
  config::TemplateOptions made;
  made.name = node->name;
  if (Status status = enrol(context, *directory, *token, flags, made); !status) return status.error();
  const auto by_hand = adapt(*node, made);
  if (!by_hand) return by_hand.error();
  const auto self = identity::load_of(*directory, node->name, made.ca_domain);
  if (!self) return self.error();
  constexpr int64_t kSecondNs = 1'000'000'000;
  const std::string until = base::utc_text(self->expires_unix_s * kSecondNs);
  const bool known =
      node->ca_file == made.ca_file && node->crl_file == made.crl_file && node->ca_domain == made.ca_domain;
  std::string text = fmt::format("node {} has a certificate of the authority until {}\n", node->name, until);
  if (!by_hand->empty()) text += "Set in [control] of node.toml:\n" + *by_hand;
  if (!known) text += "Restart sluice-control: from then on it knows the peers of the authority.\n";
  context.print({{"schema", "sluice.node_enrol.v1"},
                 {"name", node->name},
                 {"fingerprint", self->fingerprint},
                 {"until", until},
                 {"restart", !known},
                 {"set_by_hand", *by_hand}},
                text);
  return 0;
}

}  // namespace

void add_node_enrol(CLI::App& node, Context& context) {
  const auto flags = std::make_shared<EnrolFlags>();
  CLI::App* const command =
      node.add_subcommand("enrol", "Have the key of this node signed by a site's authority, or signed anew");
  command
      ->add_option("token", flags->token,
                   "Of the authority's holder: itself, @FILE, or - for the standard input")
      ->required()
      ->type_name("TOKEN");
  command->add_option("--at", flags->at, "Where the authority's holder serves, if the token does not say so")
      ->type_name("HOST:PORT");
  command->add_option("--timeout", flags->timeout_s, "Seconds for it (default 60)")
      ->transform(arguments::whole(1, 3600))
      ->type_name("S");
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return enrol_node(context, *flags); }; });
}

}  // namespace sluice::cli
