// sluice node init|show|reference. The other commands of a node have files of their own.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "control/identity/trust.h"
#include "control/metrics/table.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/counted.h"
#include "dataplane/base/options/options.h"
#include "dataplane/base/utc.h"
#include "tools/cli/app.h"
#include "tools/cli/connect.h"
#include "tools/cli/enrol.h"
#include "tools/cli/format.h"
#include "tools/cli/log_format.h"
#include "tools/cli/node_files.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/service_files.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

struct InitFlags {
  std::string directory;
  std::vector<std::string> exports;
  std::string rate;
  bool service = false;
  EnrolFlags enrol;
  config::TemplateOptions options;
};

struct ShowFlags {
  bool certificate = false;
  bool next = false;
};

Result<int> init(const Context& context, const InitFlags& flags) {
  config::TemplateOptions options = flags.options;
  const std::filesystem::path& here = context.environment.working_directory;
  const std::filesystem::path given = here / flags.directory;
  const std::filesystem::path directory = given.has_filename() ? given : given.parent_path();
  Result<site::Token> token = site::Token{};
  if (!flags.enrol.token.empty()) token = token_of(context, flags.enrol);
  if (!token) return token.error();
  if (options.name.empty()) options.name = token->name.empty() ? default_node_name(host_name()) : token->name;
  if (!config::valid_node_name(options.name)) {
    return usage("--name: '" + printable(options.name) + "' is no node name; use a-z, 0-9, _ and -");
  }
  for (const std::string& text : flags.exports) {
    auto item = parse_export(text, here);
    if (!item) return item.error();
    options.exports.push_back(std::move(*item));
  }
  if (!flags.rate.empty()) {
    const auto rate_bps = rate_option("--rate", flags.rate);
    if (!rate_bps) return rate_bps.error();
    options.rate_bps = *rate_bps;
  }
  if (flags.service) use_service(options);
  if (!options.addresses_file.empty()) options.addresses_file = (here / options.addresses_file).string();
  const auto signed_by_authority = [&](config::TemplateOptions& made) {
    return enrol(context, directory, *token, flags.enrol, made);
  };
  const bool enrols = !flags.enrol.token.empty();
  if (auto made = create_node(directory, options, enrols ? Named(signed_by_authority) : Named()); !made)
    return made.error();
  const auto self = identity::load(directory);
  if (!self) return self.error();
  const std::string next =
      enrols ? "Its certificate is of the authority: peers that have named that one know it.\n"
             : fmt::format("Give {} to the operators of your peers, and take theirs with '{} node trust'.\n",
                           self->certificate_file.string(), context.command_for(directory));
  context.print({{"schema", "sluice.node_init.v1"},
                 {"directory", directory.string()},
                 {"name", self->name},
                 {"fingerprint", self->fingerprint},
                 {"certificate_file", self->certificate_file.string()}},
                fmt::format("node {} in {}\nfingerprint {}\n{}", self->name, directory.string(),
                            self->fingerprint, next));
  return 0;
}

struct Live {
  api::NodeReply node;
  api::ComponentLevels levels;
};

// What the running daemons say; an Error when there is none to ask.
Result<Live> live_status(const Result<std::unique_ptr<api::Client>>& client) {
  if (!client) return client.error();
  auto node = (*client)->node();
  if (!node) return node.error();
  auto levels = (*client)->log_levels();
  if (!levels) return levels.error();
  return Live{std::move(*node), std::move(*levels)};
}

struct NodeView {
  config::Node config;
  identity::Identity self;
  std::vector<identity::Peer> peers;
  std::vector<identity::Expiry> expiries;  // of what has an end
  size_t addresses = 0;                    // in [control] addresses_file
};

// Who may look at a node and not at its key learns from the daemon who it is.
Result<identity::Identity> self_of(const std::filesystem::path& directory, const Result<Live>& live) {
  auto self = identity::load(directory);
  if (self || !live || ::access((directory / "identity").c_str(), R_OK | X_OK) == 0) return self;
  identity::Identity told;
  told.name = live->node.name();
  told.fingerprint = live->node.fingerprint();
  return told;
}

Result<NodeView> view_of(const std::filesystem::path& directory, const Result<Live>& live) {
  auto node = config::load(directory);
  if (!node) return node.error();
  auto self = self_of(directory, live);
  if (!self) return self.error();
  const auto trust = identity::Trust::load(*node);
  if (!trust) return trust.error();
  if (!trust->problems().empty()) return trust->problems().front();
  std::vector<identity::Expiry> expiries = identity::expiries_of(
      {std::make_shared<const identity::Identity>(*self), std::make_shared<const identity::Trust>(*trust)});
  std::erase_if(expiries, [](const identity::Expiry& one) { return one.unix_s == identity::kNoEnd; });
  const size_t addresses = trust->addresses() == nullptr ? 0 : trust->addresses()->all().size();
  return NodeView{std::move(*node), std::move(*self), trust->pinned(), std::move(expiries), addresses};
}

// What the daemon says that a peer offers in place of its key; nothing: no other key.
const api::Peer* offer_of(const identity::Peer& peer, const Result<Live>& live) {
  if (!live) return nullptr;
  for (const api::Peer& each : live->node.peers()) {
    if (each.name() == peer.name && !each.offered_fingerprint().empty()) return &each;
  }
  return nullptr;
}

std::string expiry_text(const identity::Expiry& expiry) {
  constexpr int64_t kSecondNs = 1'000'000'000;
  return base::utc_text(expiry.unix_s * kSecondNs);
}

std::string next_fingerprint(const identity::Identity& self) {
  const auto fingerprint = identity::fingerprint_of_pem(self.next_certificate_pem);
  return fingerprint ? *fingerprint : "";
}

api::Json view_json(const NodeView& view, const Result<Live>& live) {
  api::Json exports = api::Json::array();
  for (const config::Export& item : view.config.exports) {
    api::Json one = {
        {"name", item.name}, {"path", item.path.string()}, {"mode", item.mode()}, {"peers", nullptr}};
    if (item.peers) {
      one["peers"] = api::Json::array();
      for (const config::ExportPeer& peer : *item.peers)
        one["peers"].push_back(api::Json{{"name", peer.name}, {"mode", item.for_peer(peer.name).mode()}});
    }
    exports.push_back(std::move(one));
  }
  api::Json peers = api::Json::array();
  for (const identity::Peer& peer : view.peers) {
    const api::Peer* const offer = offer_of(peer, live);
    peers.push_back(api::Json{{"name", peer.name},
                              {"address", peer.address},
                              {"fingerprint", peer.fingerprint},
                              {"former_fingerprint", peer.former_fingerprint},
                              {"offered_fingerprint", offer == nullptr ? "" : offer->offered_fingerprint()}});
  }
  api::Json certificates = api::Json::array();
  for (const identity::Expiry& one : view.expiries)
    certificates.push_back(api::Json{{"kind", one.kind}, {"name", one.name}, {"expires", expiry_text(one)}});
  api::Json out = {{"schema", "sluice.node.v1"},
                   {"name", view.config.name},
                   {"directory", view.config.directory.string()},
                   {"fingerprint", view.self.fingerprint},
                   {"certificate", view.self.certificate_pem},
                   {"next_certificate", view.self.next_certificate_pem},
                   {"next_fingerprint", next_fingerprint(view.self)},
                   {"listen", view.config.listen},
                   {"metrics_listen", view.config.metrics_listen},
                   {"device", view.config.device},
                   {"address4", view.config.address4},
                   {"address6", view.config.address6},
                   {"neighbours", view.config.neighbours},
                   {"addresses", view.addresses},
                   {"memory", view.config.memory},
                   {"memory_mib", view.config.memory_mib}};
  out["exports"] = std::move(exports);
  out["peers"] = std::move(peers);
  out["certificates"] = std::move(certificates);
  out["live"] = live ? api::live_json(live->node) : api::Json(nullptr);
  if (live) out["live"]["log_levels"] = api::levels_json(live->levels);
  return out;
}

std::string sandbox_text(std::string_view daemon, bool there, const api::Sandbox& sandbox) {
  if (!there) return "";  // it is of before, or not attached
  const std::string refused =
      sandbox.refused_calls() == 0
          ? ""
          : fmt::format("; {} not allowed, see its log", base::counted(sandbox.refused_calls(), "call"));
  return fmt::format("{:<12} {}: {}{}\n", "sandbox", daemon, printable(sandbox.text()), refused);
}

std::string live_text(const Result<Live>& answer) {
  if (!answer && answer.error().code == ErrorCode::kDaemonNotRunning) return "control      not running\n";
  if (!answer) return "control      " + printable(answer.error().message) + "\n";
  const api::NodeReply* const live = &answer->node;
  const std::string reached =
      live->control_address() == "none" ? "only calls" : "listens on " + live->control_address();
  std::string text = fmt::format("control      running, version {}, {}\n", live->version(), reached);
  if (!live->metrics_address().empty()) {
    text += fmt::format("metrics      http://{}/metrics\n", printable(live->metrics_address()));
  }
  if (live->longest_turn_ns() != 0) {
    text += fmt::format("longest turn {:.1f} ms of its loop, by {}\n",
                        static_cast<double>(live->longest_turn_ns()) * 1e-6, printable(live->longest_turn()));
  }
  for (const api::NodeReply::Wait& wait : live->waits())
    text += fmt::format(
        "waits        export {}: its file system has let a call wait for {:.0f} s ({} call{})\n",
        printable(wait.export_name()), wait.waited_s(), wait.calls(), wait.calls() == 1 ? "" : "s");
  if (answer->levels.levels_size() > 0) text += fmt::format("log levels   {}\n", levels_text(answer->levels));
  text += sandbox_text("control", live->has_control_sandbox(), live->control_sandbox());
  if (!live->dataplane_attached()) return text + "dataplane    not attached\n";
  text += fmt::format("dataplane    attached: {}\n", dataplane_text(*live));
  if (live->has_fallback())
    text +=
        fmt::format("fallback     udp, for {} since {}: {}; docs/RUNBOOK.md, \"The card died\"\n",
                    printable(live->fallback().device()), base::utc_text(live->fallback().since_unix_ns()),
                    printable(live->fallback().reason()));
  if (!live->device_abilities().empty())
    text += fmt::format("device       {}\n", printable(live->device_abilities()));
  return text + sandbox_text("dataplane", live->has_dataplane_sandbox(), live->dataplane_sandbox());
}

std::string view_text(const NodeView& view, const Result<Live>& live) {
  std::string text;
  const auto add = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("{:<12} {}\n", name, value.empty() ? "-" : value);
  };
  add("name", view.config.name);
  add("directory", view.config.directory.string());
  add("fingerprint", view.self.fingerprint);
  add("listen", view.config.listen);
  add("device", view.config.device);
  add("address4", view.config.address4);
  add("address6", view.config.address6);
  if (!view.config.neighbours.empty()) add("neighbours", view.config.neighbours);
  for (const config::Export& item : view.config.exports) {
    add("export", fmt::format("{} {} {}{}", item.name, printable(item.path.string()), item.mode(),
                              item.peers ? " for " + item.peers_text() : ""));
  }
  for (const identity::Peer& peer : view.peers) {
    add("peer",
        fmt::format("{} {} {}", peer.name, peer.address.empty() ? "-" : peer.address, peer.fingerprint));
    if (const api::Peer* const offer = offer_of(peer, live))
      add("", fmt::format("offers {} in place of it: sluice node trust {} --successor",
                          printable(offer->offered_fingerprint()), peer.name));
  }
  if (!view.config.addresses_file.empty())
    add("addresses", fmt::format("of {} in {}", base::counted(view.addresses, "peer"),
                                 printable(view.config.addresses_file)));
  for (const identity::Expiry& one : view.expiries)
    add("expires", fmt::format("{} {} {}", expiry_text(one), one.kind, printable(one.name)));
  if (!view.self.next_certificate_pem.empty()) add("next key", next_fingerprint(view.self));
  return text + live_text(live);
}

Result<int> show(const Context& context, const ShowFlags& flags) {
  const auto directory = context.existing_node_directory();
  if (!directory) return directory.error();
  if (flags.certificate && !context.json) {
    // Works also while node.toml is wrong.
    const auto self = identity::load(*directory);
    if (!self) return self.error();
    if (flags.next && self->next_certificate_pem.empty())
      return usage("--next: this node has no key that is to follow; 'sluice node rotate' makes one");
    context.print(nullptr, flags.next ? self->next_certificate_pem : self->certificate_pem);
    return 0;
  }
  const auto client = connect_to_node(*directory);
  const auto live = live_status(client);
  // One that was there and does not answer is no node without a daemon.
  if (client && !live && live.error().code == ErrorCode::kDaemonNotRunning) return live.error();
  const auto view = view_of(*directory, live);
  if (!view) return view.error();
  context.print(view_json(*view, live), view_text(*view, live));
  return 0;
}

struct ReferenceFlags {
  bool metrics = false;
  bool options = false;
};

Result<int> reference(const Context& context, const ReferenceFlags& of) {
  const std::string markdown = of.metrics   ? metrics::reference_markdown()
                               : of.options ? options::reference_markdown()
                                            : config::reference_markdown();
  context.print({{"schema", "sluice.reference.v1"}, {"markdown", markdown}}, markdown);
  return 0;
}

void add_init(CLI::App& node, Context& context) {
  auto flags = std::make_shared<InitFlags>();
  config::TemplateOptions& options = flags->options;
  CLI::App* command = node.add_subcommand("init", "Make a node directory with an identity and a node.toml");
  command->add_option("directory", flags->directory, "Where to make it")->required()->type_name("DIR");
  command->add_option("--name", options.name, "Name of the node (default: the host's)")->type_name("NAME");
  command
      ->add_option("--listen", options.listen,
                   "Address of the control stream; none: this node only calls, as behind a NAT or a firewall")
      ->type_name("HOST:PORT|none");
  command->add_option("--device", options.device, "Device of the data port: udp (sockets), or one of DPDK")
      ->type_name("udp|DEVICE");
  command->add_option("--address", options.address4, "IPv4 address of the data port")->type_name("A/LEN");
  command->add_option("--address6", options.address6, "IPv6 address of the data port")->type_name("A/LEN");
  command->add_option("--gateway", options.gateway4, "IPv4 router of the data network")->type_name("A");
  command->add_option("--gateway6", options.gateway6, "IPv6 router of the data network")->type_name("A");
  command->add_option("--mtu", options.mtu, "IP MTU of the data network")
      ->type_name("N")
      ->transform(range_of("port", "mtu"));
  command->add_option("--udp-port-base", options.udp_port_base, "First UDP port of the lanes")
      ->type_name("N")
      ->transform(range_of("port", "udp_port_base"));
  command->add_option("--core", options.cores, "CPU of a worker; repeat for each")
      ->type_name("N")
      ->transform(range_of("dataplane", "cores"))
      ->allow_extra_args(false);
  command->add_option("--workers", options.workers, "Workers (default: one for each --core, else 1)")
      ->type_name("N")
      ->transform(range_of("dataplane", "workers"));
  command->add_option("--poll", options.poll, "How idle workers wait")
      ->type_name("MODE")
      ->check(words_of("dataplane", "poll"));
  command->add_option("--memory", options.memory, "Pages of the dataplane's memory")
      ->type_name("KIND")
      ->check(words_of("dataplane", "memory"));
  command->add_option("--memory-mib", options.memory_mib, "Memory of the dataplane in MiB")
      ->type_name("N")
      ->transform(range_of("dataplane", "memory_mib"));
  command->add_option("--rate", flags->rate, "Rate of a session in bit/s, such as 10G")->type_name("RATE");
  command
      ->add_option("--export", flags->exports, "Directory that may be read, written or both; repeat for each")
      ->type_name("NAME=PATH[:r|w|rw|rm|wm|rwm]")
      ->allow_extra_args(false);
  add_enrol_options(*command, flags->enrol);
  command->add_option("--addresses-file", options.addresses_file, "File that says where peers listen")
      ->type_name("FILE");
  command->add_flag("--service", flags->service,
                    "For the services of the package: their groups and directories");
  command->callback([&context, flags, command] {
    const bool counted = command->get_option("--workers")->count() > 0;
    if (!counted && !flags->options.cores.empty()) {
      flags->options.workers = static_cast<uint32_t>(flags->options.cores.size());
    }
    context.action = [&context, flags] { return init(context, *flags); };
  });
}

}  // namespace

void add_node_commands(CLI::App& app, Context& context) {
  CLI::App* node =
      app.add_subcommand("node",
                         "The node itself: setup, init, enrol, run, trust, distrust, allow, rotate, "
                         "show, topology, log-level, reference");
  node->require_subcommand(1);
  add_setup(*node, context);
  add_init(*node, context);
  add_node_enrol(*node, context);
  add_node_run(*node, context);
  add_trust_commands(*node, context);
  add_node_log_level(*node, context);
  add_node_topology(*node, context);
  auto flags = std::make_shared<ShowFlags>();
  CLI::App* command = node->add_subcommand("show", "Show configuration, identity, peers and live status");
  command->add_flag("--certificate", flags->certificate, "Print the certificate, for a peer's operator");
  command->add_flag("--next", flags->next, "With --certificate: of the key that is to follow (node rotate)");
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return show(context, *flags); }; });
  auto of = std::make_shared<ReferenceFlags>();
  CLI::App* table = node->add_subcommand(
      "reference", "Print the reference of node.toml, of the options of transfers, or of the metrics");
  auto* metrics =
      table->add_flag("--metrics", of->metrics, "The metrics that sluice-control tells Prometheus");
  table->add_flag("--options", of->options, "The options of send and get")->excludes(metrics);
  table->callback([&context, of] { context.action = [&context, of] { return reference(context, *of); }; });
}

}  // namespace sluice::cli
