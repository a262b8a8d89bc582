// sluice node trust|distrust|allow|rotate: whom this node believes, and the change of its own key.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <fstream>

#include "control/identity/node_files.h"
#include "control/identity/rotation.h"
#include "control/identity/trust.h"
#include "control/proto/session_state.h"
#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/utc.h"
#include "tools/cli/app.h"
#include "tools/cli/connect.h"
#include "tools/cli/format.h"
#include "tools/cli/node_files.h"
#include "tools/cli/progress.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDaySeconds = 86'400;
constexpr int64_t kNsOfSecond = 1'000'000'000;

struct TrustFlags {
  std::string name;
  std::string certificate;
  std::string address;
  bool replace = false;
  bool successor = false;
};

struct RotateFlags {
  bool finish = false;
  bool abandon = false;
  bool now = false;
  bool yes = false;
  uint32_t overlap_days = 7;
  uint32_t lifetime_days = 0;
  std::string certificate;
  std::string key;
};

// ---- trust ---------------------------------------------------------------------------------------

// What the running daemon was offered in place of the pinned key.
Result<std::string> offered_certificate(const fs::path& directory, const std::string& name) {
  auto client = connect_to_node(directory);
  if (!client) return client.error();
  const auto reply = (*client)->node();
  if (!reply) return reply.error();
  for (const api::Peer& peer : reply->peers()) {
    if (peer.name() == name && !peer.offered_certificate().empty()) return peer.offered_certificate();
  }
  return usage(
      "--successor: " + printable(name) +
      " has offered no new key to this node since its sluice-control started; when it next connects it "
      "does, or take it from 'sluice node show --certificate --next' there");
}

std::string former_until(const identity::Peer& peer) {
  return peer.former_fingerprint.empty() ? "" : base::utc_text(peer.former_until_unix_s * kNsOfSecond);
}

Error no_certificate() {
  return usage(
      "CERT.pem is missing: the peer's certificate, or - for the standard input; only a peer that is trusted "
      "already, or that [control] ca_file stands for, needs none, and then --address says where it listens");
}

api::Json peer_json(const identity::Peer& peer) {
  return {{"schema", "sluice.peer.v1"},
          {"name", peer.name},
          {"address", peer.address},
          {"fingerprint", peer.fingerprint},
          {"former_fingerprint", peer.former_fingerprint},
          {"former_until", former_until(peer)}};
}

// A peer that is pinned, or that an authority stands for: only where it listens is to be said.
Result<int> trust_address(const Context& context, const fs::path& directory, const TrustFlags& flags) {
  const auto node = config::load(directory);
  if (!node) return node.error();
  Result<identity::Peer> peer = identity::find_peer(*node, flags.name);
  const bool unknown = !peer && peer.error().code == ErrorCode::kPeerUntrusted;
  if (unknown && node->ca_file.empty()) return no_certificate();
  if (!peer) return peer.error();
  if (Status status = identity::set_address(*node, flags.name, flags.address); !status) return status.error();
  peer->address = flags.address;
  context.print(peer_json(*peer), fmt::format("{} listens at {}\n", flags.name, flags.address));
  return 0;
}

Status check(const TrustFlags& flags) {
  if (!config::valid_node_name(flags.name) || flags.name == "memory" || flags.name == "null") {
    return usage("'" + printable(flags.name) +
                 "' cannot name a node; use a-z, 0-9, _ and -, and neither 'memory' nor 'null'");
  }
  if (flags.successor && (!flags.certificate.empty() || flags.replace))
    return usage("--successor: the peer has offered its certificate; give neither CERT.pem nor --replace");
  if (flags.certificate.empty() && !flags.successor && flags.address.empty()) return no_certificate();
  if (flags.address.empty()) return {};
  const auto address = config::parse_host_port(flags.address);
  return address ? Status() : Status(usage("--address: " + address.error().message));
}

Result<int> trust(const Context& context, const TrustFlags& flags) {
  if (Status status = check(flags); !status) return status.error();
  const auto directory = context.existing_node_directory();
  if (!directory) return directory.error();
  if (const auto node = config::load(*directory); node && node->name == flags.name)
    return usage("'" + flags.name +
                 "' is this node's own name; a peer has another: 'sluice node show' there says which");
  if (flags.certificate.empty() && !flags.successor) return trust_address(context, *directory, flags);
  const std::string file =
      flags.certificate == "-" ? "-" : (context.environment.working_directory / flags.certificate).string();
  const auto certificate =
      flags.successor ? offered_certificate(*directory, flags.name) : read_certificate(file);
  if (!certificate) return certificate.error();
  const auto pinned = identity::trust(*directory, flags.name, flags.address, *certificate, flags.replace);
  if (!pinned) return pinned.error();
  const auto peer = identity::find_peer(*directory, flags.name);  // as it is read from now on
  if (!peer) return peer.error();
  const std::string until = former_until(*peer);
  context.print(peer_json(*peer),
                fmt::format("trusts {} with fingerprint {}{}\n", peer->name, peer->fingerprint,
                            peer->address.empty() ? ", which calls us" : " at " + peer->address) +
                    (until.empty() ? "" : fmt::format("its former key counts until {}\n", until)));
  if (peer->expires_unix_s <= std::time(nullptr)) {
    context.environment.err << fmt::format(
        "sluice: warning: its certificate ended on {}: both nodes refuse each other (5) until it has a new "
        "one "
        "('sluice node rotate' there), or both accept ended ones ([control] expired_pins)\n",
        base::utc_text(peer->expires_unix_s * kNsOfSecond));
  }
  return 0;
}

// ---- distrust, allow -----------------------------------------------------------------------------

// Also while node.toml is wrong, and without an authority as much as with one.
config::Node node_of(const fs::path& directory, bool* may_have_authority) {
  auto node = config::load(directory);
  *may_have_authority = !node || !node->ca_file.empty();
  if (node) return std::move(*node);
  config::Node unknown;
  unknown.directory = directory;
  return unknown;
}

// Takes the pin, and bars what an authority could let in again. Returns the peer's name; empty: not known.
Result<std::string> take_trust(const fs::path& directory, const std::string& what) {
  bool may_have_authority = false;
  const config::Node node = node_of(directory, &may_have_authority);
  if (config::valid_node_name(what)) {
    if (may_have_authority) {
      if (Status status = identity::bar(node, what); !status) return status.error();
    }
    const Status gone = identity::distrust(directory, what);
    if (!gone && !(may_have_authority && gone.error().code == ErrorCode::kPeerUntrusted)) return gone.error();
    return what;
  }
  if (Status status = identity::bar(node, what); !status) return status.error();
  const auto peers = identity::load_usable_peers(directory);
  if (!peers) return peers.error();
  for (const identity::Peer& peer : peers->peers) {
    if (peer.fingerprint != what) continue;
    if (Status status = identity::distrust(directory, peer.name); !status) return status.error();
    return peer.name;
  }
  return std::string();
}

// First nobody is let in any more, then what runs is ended.
Result<int> distrust(const Context& context, const std::string& what) {
  const auto directory = context.existing_node_directory();
  if (!directory) return directory.error();
  const Result<std::string> name = take_trust(*directory, what);
  if (!name) return name.error();
  api::Json cancelled = api::Json::array();
  std::string text = fmt::format("does not trust {} any more\n", what);
  const auto client = connect_to_node(*directory);
  const auto all = client ? (*client)->list() : Result<api::ListSessionsReply>(client.error());
  if (!all && all.error().code != ErrorCode::kDaemonNotRunning) return all.error();
  for (int i = 0; all && i < all->sessions_size(); ++i) {
    const api::Session& session = all->sessions(i);
    if (session.peer() != *name || api::stands_still(session)) continue;
    const auto ended = (*client)->cancel(session.id());
    // It may have ended by itself meanwhile.
    if (!ended && ended.error().code != ErrorCode::kUsage) return ended.error();
    cancelled.push_back(session.id());
    text += fmt::format("cancelled session {}\n", session.id());
  }
  if (name->empty()) text += "no peer is pinned with that key: what runs with it is paused\n";
  context.print({{"schema", "sluice.node_distrust.v1"}, {"name", what}, {"cancelled", cancelled}}, text);
  return 0;
}

Result<int> allow(const Context& context, const std::string& what) {
  const auto directory = context.existing_node_directory();
  if (!directory) return directory.error();
  config::Node node;
  node.directory = *directory;
  const Result<bool> allowed = identity::allow(node, what);
  if (!allowed) return allowed.error();
  if (!*allowed) return usage(printable(what) + " is not barred; what is stands in distrusted/ of the node");
  context.print({{"schema", "sluice.node_allow.v1"}, {"name", what}},
                fmt::format("{} is not barred any more\n", what));
  return 0;
}

// ---- rotate --------------------------------------------------------------------------------------

Status check(const RotateFlags& flags) {
  const int ways = (flags.finish ? 1 : 0) + (flags.abandon ? 1 : 0) + (flags.certificate.empty() ? 0 : 1);
  if (ways > 1) return usage("--finish, --abandon and --certificate exclude each other");
  if (flags.certificate.empty() && !flags.key.empty())
    return usage("--key: give its certificate as well, with --certificate");
  return {};
}

Result<std::string> key_text(const Context& context, const std::string& file) {
  if (file.empty()) return std::string();
  return identity::read_small_file(context.environment.working_directory / file);
}

Result<identity::Identity> rotated(const Context& context, const fs::path& directory,
                                   const RotateFlags& flags) {
  if (flags.finish) return identity::finish_rotation(directory);
  if (!flags.certificate.empty()) {
    const auto certificate =
        identity::read_small_file(context.environment.working_directory / flags.certificate);
    if (!certificate) return certificate.error();
    const auto key = key_text(context, flags.key);
    if (!key) return key.error();
    return identity::install(directory, *certificate, *key);
  }
  const identity::RotationOptions options{.overlap_s = flags.overlap_days * kDaySeconds,
                                          .lifetime_s = flags.lifetime_days * kDaySeconds};
  Result<identity::Identity> begun = identity::begin_rotation(directory, options, std::time(nullptr));
  return begun && flags.now ? identity::finish_rotation(directory) : begun;
}

// This node is not told who has taken the new key. Who has not refuses it from the moment on that it is used.
Status warn_of_refusals(const Environment& environment, const fs::path& directory, const RotateFlags& flags) {
  const auto peers = identity::load_usable_peers(directory);
  if (!peers) return peers.error();
  if (peers->peers.empty()) return {};
  std::string names;
  for (const identity::Peer& peer : peers->peers) names += (names.empty() ? "" : ", ") + peer.name;
  const auto self = identity::load(directory);
  const auto next = self ? identity::fingerprint_of_pem(self->next_certificate_pem) : Result<std::string>("");
  environment.err
      << "sluice: warning: from now on a peer that has not taken the new key refuses this node. Peers: "
      << names << ". At each of them 'sluice node show' prints the key that it trusts"
      << (next && !next->empty() ? "; the new one is " + *next : "") << "\n"
      << std::flush;
  if (flags.yes || !environment.answer) return {};
  environment.err << "sluice: use the new key now? [y/N] " << std::flush;
  const std::string answer = environment.answer();
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return Error{ErrorCode::kCancelled, "nothing was changed; both keys stay as they were"};
}

Result<int> rotate(const Context& context, const RotateFlags& flags) {
  const auto directory = context.existing_node_directory();
  if (!directory) return directory.error();
  if (Status status = check(flags); !status) return status.error();
  std::error_code ignored;
  const bool under_way = fs::exists(identity::next_certificate_file(*directory), ignored);
  if (flags.finish ? under_way : flags.now && !under_way) {
    const Status agreed = warn_of_refusals(context.environment, *directory, flags);
    if (!agreed) return agreed.error();
  }
  api::Json json = {{"schema", "sluice.node_rotate.v1"}};
  if (flags.abandon) {
    const Result<bool> gone = identity::abandon_rotation(*directory);
    if (!gone) return gone.error();
    if (!*gone) return usage("--abandon: no new key was made");
    json.update({{"state", "abandoned"}});
    context.print(json, "the new key is gone, the present one stays\n");
    return 0;
  }
  const auto self = rotated(context, *directory, flags);
  if (!self) return self.error();
  const bool begun = !self->next_certificate_pem.empty();
  const auto next = begun ? identity::fingerprint_of_pem(self->next_certificate_pem) : self->fingerprint;
  if (!next) return next.error();
  json.update({{"state", begun ? "begun" : "finished"},
               {"fingerprint", self->fingerprint},
               {"next_fingerprint", begun ? *next : ""}});
  context.print(
      json, begun ? fmt::format("new key {}\nPeers are offered it whenever they connect; their operators "
                                "take it with 'sluice node trust {} --successor'.\nWhen they have: {} node "
                                "rotate --finish\n",
                                *next, self->name, context.command_for(*directory))
                  : fmt::format("this node's key is {}\n", self->fingerprint));
  return 0;
}

// ---- the commands --------------------------------------------------------------------------------

void add_trust(CLI::App& node, Context& context) {
  auto flags = std::make_shared<TrustFlags>();
  CLI::App* command = node.add_subcommand("trust", "Pin the identity of a peer");
  command->add_option("name", flags->name, "How this node calls the peer")->required()->type_name("NAME");
  command
      ->add_option(
          "certificate", flags->certificate,
          "The peer's certificate, PEM; - for the standard input. None where only the address is to be "
          "said of a peer that is trusted, or that an authority stands for")
      ->type_name("CERT.pem");
  command->add_option("--address", flags->address, "Where the peer's control daemon listens")
      ->type_name("HOST:PORT");
  command->add_flag("--replace", flags->replace, "Replace another identity of that name");
  command->add_flag("--successor", flags->successor,
                    "Take the new key that the peer offers, signed by the one that is pinned");
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return trust(context, *flags); }; });
}

void add_distrust(CLI::App& node, Context& context) {
  auto what = std::make_shared<std::string>();
  CLI::App* command =
      node.add_subcommand("distrust", "Forget the identity of a peer, and cancel all that runs with it");
  command->add_option("name", *what, "How this node calls the peer, or the fingerprint of a key")
      ->required()
      ->type_name("NAME|FINGERPRINT");
  command->callback(
      [&context, what] { context.action = [&context, what] { return distrust(context, *what); }; });
  auto allowed = std::make_shared<std::string>();
  CLI::App* undo = node.add_subcommand("allow", "Undo 'distrust' of a peer of an authority, or of a key");
  undo->add_option("name", *allowed, "What was distrusted")->required()->type_name("NAME|FINGERPRINT");
  undo->callback(
      [&context, allowed] { context.action = [&context, allowed] { return allow(context, *allowed); }; });
}

void add_rotate(CLI::App& node, Context& context) {
  constexpr uint32_t kDaysMax = 36'500;
  auto flags = std::make_shared<RotateFlags>();
  CLI::App* command = node.add_subcommand("rotate", "Change the key of this node, while transfers run");
  command->add_flag("--finish", flags->finish, "Use the new key from now on; the old one is destroyed");
  command->add_flag("--abandon", flags->abandon, "Keep the present key, and destroy the new one");
  command->add_flag("--now", flags->now,
                    "Make it and use it at once: peers that ask their operator refuse it");
  command->add_flag("--yes", flags->yes, "With --finish or --now: ask nothing, only warn");
  command
      ->add_option("--overlap-days", flags->overlap_days,
                   "So long both keys count at peers that took the new one (default 7)")
      ->transform(arguments::whole(0, kDaysMax))
      ->type_name("N");
  command->add_option("--days", flags->lifetime_days, "End of the new certificate (default: none)")
      ->transform(arguments::whole(1, kDaysMax))
      ->type_name("N");
  command
      ->add_option("--certificate", flags->certificate,
                   "Use this certificate, of an authority, with those between them")
      ->type_name("CERT.pem");
  command->add_option("--key", flags->key, "Its key, if that is not the present one")->type_name("KEY.pem");
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return rotate(context, *flags); }; });
}

}  // namespace

void add_trust_commands(CLI::App& node, Context& context) {
  add_trust(node, context);
  add_distrust(node, context);
  add_rotate(node, context);
}

}  // namespace sluice::cli
