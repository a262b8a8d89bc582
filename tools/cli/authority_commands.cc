// sluice authority: for whoever holds the key of a site's authority. Tokens by which nodes are enrolled, the
// server that enrols them (sluice-enrol, which this process becomes), and what is taken back.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>

#include "control/identity/hex.h"
#include "control/identity/node_files.h"
#include "control/site/site.h"
#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/counted.h"
#include "dataplane/base/utc.h"
#include "tools/cli/app.h"
#include "tools/cli/format.h"
#include "tools/cli/target.h"
#include "tools/cli/when.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDaySeconds = 86'400;
constexpr int64_t kSecondNs = 1'000'000'000;

struct InitFlags {
  std::string directory;
  std::string domain;
  std::string name = "Sluice";
  int64_t days = 3650;
  std::string certificate;
  std::string key;
};

struct TokenFlags {
  std::string directory;
  std::string pattern = "*";
  std::string valid = "1h";
  std::string certificate_for = "365d";
  int64_t uses = 1;
  bool replace = false;
  std::string at;
};

std::string text_of(int64_t unix_s) { return base::utc_text(unix_s * kSecondNs); }

Result<site::Site> open_site(const Context& context, const std::string& directory) {
  return site::Site::open(context.environment.working_directory / directory);
}

Result<int64_t> span_of(const std::string& option, const std::string& text) {
  const auto seconds = parse_span(text);
  if (!seconds) return usage(option + ": " + seconds.error().message);
  return seconds;
}

// ---- init ----------------------------------------------------------------------------------------

Result<int> init(const Context& context, const InitFlags& flags) {
  const fs::path& here = context.environment.working_directory;
  const fs::path given = here / flags.directory;
  const fs::path directory = given.has_filename() ? given : given.parent_path();
  if (flags.certificate.empty() != flags.key.empty())
    return usage("--certificate and --key belong together: of an authority that is there already");
  site::SiteOptions options{
      .domain = flags.domain, .name = flags.name + " authority", .lifetime_s = flags.days * kDaySeconds};
  if (!flags.certificate.empty()) {
    const auto certificate = identity::read_small_file(here / flags.certificate);
    if (!certificate) return certificate.error();
    const auto key = identity::read_small_file(here / flags.key);
    if (!key) return key.error();
    options.ca_pem = *certificate;
    options.key_pem = *key;
  }
  if (Status status = site::Site::create(directory, options); !status) return status.error();
  const auto site = site::Site::open(directory);
  if (!site) return site.error();
  context.print(
      {{"schema", "sluice.authority_init.v1"},
       {"directory", directory.string()},
       {"fingerprint", site->fingerprint()},
       {"domain", site->domain()},
       {"ca_file", (directory / "ca.pem").string()}},
      fmt::format("authority {} in {}\nfingerprint {}\nKeep {} secret, and a copy of the directory "
                  "elsewhere.\nNext:\n  sluice authority serve {}\n  sluice authority token {} --at "
                  "HOST:{}\n",
                  printable(site->subject()), directory.string(), site->fingerprint(),
                  (directory / "key.pem").string(), directory.string(), directory.string(),
                  site::kEnrolPort));
  return 0;
}

// ---- tokens --------------------------------------------------------------------------------------

Result<int> make_token(const Context& context, const TokenFlags& flags) {
  if (!site::valid_pattern(flags.pattern))
    return usage("--name: '" + printable(flags.pattern) +
                 "' is neither the name of a node nor the beginning of one with a * behind it");
  if (flags.replace && flags.pattern == "*")
    return usage("--replace: say with --name whose place may be taken; for every name it would be too much");
  if (!flags.at.empty()) {
    const auto address = config::parse_host_port(flags.at);
    if (!address) return usage("--at: " + address.error().message);
  }
  const auto valid_s = span_of("--valid", flags.valid);
  if (!valid_s) return valid_s.error();
  const auto certificate_s = span_of("--certificate-for", flags.certificate_for);
  if (!certificate_s) return certificate_s.error();
  auto site = open_site(context, flags.directory);
  if (!site) return site.error();
  const bool one_name = !flags.pattern.ends_with('*');
  const auto token = site::make_token(site->fingerprint(), flags.at, one_name ? flags.pattern : "");
  if (!token) return token.error();
  const int64_t now_s = unix_now_ns() / kSecondNs;
  const site::TokenRules rules{.public_key = {},
                               .pattern = flags.pattern,
                               .made_unix_s = now_s,
                               .until_unix_s = now_s + *valid_s,
                               .uses_max = flags.uses,
                               .lifetime_s = *certificate_s,
                               .replaces = flags.replace};
  const auto id = site->add_token(*token, rules);
  if (!id) return id.error();
  // The token alone on the standard output: it goes into a file, or over a pipe.
  if (!context.json)
    context.environment.err << fmt::format("token {}, for {}, {}, until {}\n", *id,
                                           one_name ? flags.pattern : "names like " + flags.pattern,
                                           flags.uses == 1 ? "once" : base::counted(flags.uses, "use"),
                                           text_of(rules.until_unix_s))
                            << std::flush;
  const std::string text = site::to_text(*token);
  context.print({{"schema", "sluice.authority_token.v1"},
                 {"token", text},
                 {"id", *id},
                 {"name", flags.pattern},
                 {"uses", flags.uses},
                 {"until", text_of(rules.until_unix_s)}},
                text + "\n");
  return 0;
}

Result<int> list_tokens(const Context& context, const std::string& directory) {
  const auto site = open_site(context, directory);
  if (!site) return site.error();
  const auto all = site->tokens();
  if (!all) return all.error();
  const int64_t now_s = unix_now_ns() / kSecondNs;
  api::Json list = api::Json::array();
  std::string text = fmt::format("{:<16}  {:<8}  {:>9}  {:<20}  {:<20}  {}\n", "TOKEN", "STATE", "USES",
                                 "UNTIL", "NAME", "USED BY");
  for (const site::TokenState& one : *all) {
    api::Json uses = api::Json::array();
    std::string names;
    for (const site::TokenUse& use : one.uses) {
      uses.push_back(
          api::Json{{"name", use.name}, {"fingerprint", use.fingerprint}, {"time", text_of(use.unix_s)}});
      names += (names.empty() ? "" : ", ") + printable(use.name);
    }
    text += fmt::format("{:<16}  {:<8}  {:>9}  {:<20}  {:<20}  {}\n", one.id, one.word(now_s),
                        fmt::format("{}/{}", one.uses.size(), one.rules.uses_max),
                        text_of(one.rules.until_unix_s), one.rules.pattern, names.empty() ? "-" : names);
    list.push_back(api::Json{{"id", one.id},
                             {"state", one.word(now_s)},
                             {"name", one.rules.pattern},
                             {"made", text_of(one.rules.made_unix_s)},
                             {"until", text_of(one.rules.until_unix_s)},
                             {"uses_max", one.rules.uses_max},
                             {"replaces", one.rules.replaces},
                             {"uses", std::move(uses)}});
  }
  context.print({{"schema", "sluice.authority_tokens.v1"}, {"tokens", std::move(list)}}, text);
  return 0;
}

// A token by its id, a key by its fingerprint, else a node by its name.
Result<int> revoke(const Context& context, const std::string& directory, const std::string& what) {
  auto site = open_site(context, directory);
  if (!site) return site.error();
  Status done = site::valid_token_id(what) ? site->revoke_token(what) : Status(usage(""));
  const bool token = static_cast<bool>(done);
  if (!done && done.error().code != ErrorCode::kUsage) return done.error();
  const bool key = identity::is_fingerprint(what);
  if (!token) done = key ? site->revoke_key(what) : site->revoke_node(what);
  if (!done && site::valid_token_id(what) && done.error().code == ErrorCode::kUsage)
    return usage("there is neither a token nor a node " + what + "; 'sluice authority tokens' lists tokens");
  if (!done) return done.error();
  const std::string list = (site->directory() / "crl.pem").string();
  context.print(
      {{"schema", "sluice.authority_revoke.v1"},
       {"what", what},
       {"kind", token ? "token"
                : key ? "key"
                      : "node"}},
      token ? fmt::format("token {} enrols nobody any more\n", what)
            : fmt::format("the certificates of {} are on the list {}: copy it to where [control] crl_file "
                          "of each node names it\n",
                          what, list));
  return 0;
}

// ---- serve ---------------------------------------------------------------------------------------

// Returns only when it could not.
Result<int> serve(const Context& context, const std::string& directory, const std::string& listen) {
  const auto address = config::parse_host_port(listen);
  if (!address) return usage("--listen: " + address.error().message);
  const auto site = open_site(context, directory);
  if (!site) return site.error();
  const fs::path& program = context.environment.enroller;
  if (program.empty())
    return Error{ErrorCode::kConfiguration,
                 "sluice-enrol is not installed beside this command; install the package, or build it with "
                 "./dev build"};
  std::vector<std::string> words = {program.string(), "serve", site->directory().string(), "--listen",
                                    listen};
  if (context.json) words.emplace_back("--json");
  std::vector<char*> given;
  for (std::string& word : words) given.push_back(word.data());
  given.push_back(nullptr);
  context.environment.out.flush();
  context.environment.err.flush();
  ::execv(program.c_str(), given.data());
  return Error{ErrorCode::kConfiguration, "cannot run " + program.string() + ": " + std::strerror(errno)};
}

// ---- the commands --------------------------------------------------------------------------------

CLI::App* add(CLI::App& authority, const char* name, const char* about, std::string& directory) {
  CLI::App* const command = authority.add_subcommand(name, about);
  command->add_option("directory", directory, "The directory of the authority")->required()->type_name("DIR");
  return command;
}

void add_init(CLI::App& authority, Context& context) {
  constexpr int64_t kDaysMax = 36'500;
  const auto flags = std::make_shared<InitFlags>();
  CLI::App* const command =
      add(authority, "init", "Make an authority, or take one that is there", flags->directory);
  command->add_option("--domain", flags->domain, "DNS domain of its nodes' names (default: none)")
      ->type_name("DOMAIN");
  command->add_option("--name", flags->name, "What its certificate calls it, for people")->type_name("TEXT");
  command->add_option("--days", flags->days, "Until its certificate ends (default 3650)")
      ->transform(arguments::whole(1, kDaysMax))
      ->type_name("N");
  command
      ->add_option(
          "--certificate", flags->certificate,
          "Of an authority that is there already: its certificate, with those up to the root behind it")
      ->type_name("CA.pem");
  command->add_option("--key", flags->key, "The key of that certificate")->type_name("KEY.pem");
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return init(context, *flags); }; });
}

void add_token(CLI::App& authority, Context& context) {
  const auto flags = std::make_shared<TokenFlags>();
  CLI::App* const command =
      add(authority, "token", "Make a token: whoever has it may enrol one node", flags->directory);
  command->add_option("--name", flags->pattern, "Name that the node must have; job-* for all that begin so")
      ->type_name("NAME");
  command->add_option("--valid", flags->valid, "How long it may be used, such as 2h30m (default 1h)")
      ->type_name("SPAN");
  command->add_option("--uses", flags->uses, "How many nodes may use it, each once (default 1)")
      ->transform(arguments::whole(1, site::Site::kUsesMax))
      ->type_name("N");
  command
      ->add_option("--certificate-for", flags->certificate_for,
                   "How long the certificates last, such as 12h (default 365d)")
      ->type_name("SPAN");
  command->add_flag("--replace", flags->replace,
                    "A node may take a name for which another key has a certificate; with --name");
  command->add_option("--at", flags->at, "Where 'sluice authority serve' listens: goes into the token")
      ->type_name("HOST:PORT");
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return make_token(context, *flags); }; });
}

void add_others(CLI::App& authority, Context& context) {
  struct Flags {
    std::string directory;
    std::string what;
    std::string listen = "0.0.0.0:" + std::to_string(site::kEnrolPort);
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = add(authority, "tokens", "List the tokens, and who used them", flags->directory);
  command->callback([&context, flags] {
    context.action = [&context, flags] { return list_tokens(context, flags->directory); };
  });
  command = add(authority, "revoke", "Take back a token, or the certificates of a node", flags->directory);
  command
      ->add_option("what", flags->what,
                   "Token, as 'sluice authority tokens' lists it, name of a node, or fingerprint of its key")
      ->required()
      ->type_name("TOKEN|NAME|FINGERPRINT");
  command->callback([&context, flags] {
    context.action = [&context, flags] { return revoke(context, flags->directory, flags->what); };
  });
  command = add(authority, "serve", "Enrol nodes that come with a token, until a signal", flags->directory);
  command->add_option("--listen", flags->listen, "Where to serve (default 0.0.0.0:7401)")
      ->type_name("HOST:PORT");
  command->callback([&context, flags] {
    context.action = [&context, flags] { return serve(context, flags->directory, flags->listen); };
  });
}

}  // namespace

void add_authority_commands(CLI::App& app, Context& context) {
  CLI::App* const authority =
      app.add_subcommand("authority", "The authority of a site: init, token, tokens, revoke, serve");
  authority->require_subcommand(1);
  add_init(*authority, context);
  add_token(*authority, context);
  add_others(*authority, context);
}

}  // namespace sluice::cli
