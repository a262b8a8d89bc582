// sluice node init|trust|distrust|show|reference.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "control/identity/identity.h"
#include "control/metrics/table.h"
#include "dataplane/base/config/config.h"
#include "tools/cli/app.h"
#include "tools/cli/client.h"
#include "tools/cli/format.h"
#include "tools/cli/node_files.h"
#include "tools/cli/progress.h"
#include "tools/cli/service_files.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

struct InitFlags {
  std::string directory;
  std::vector<std::string> exports;
  std::string rate;
  bool service = false;
  config::TemplateOptions options;
};

struct TrustFlags {
  std::string name;
  std::string certificate;
  std::string address;
  bool replace = false;
};

struct ShowFlags {
  bool certificate = false;
};

Result<int> init(const Context& context, const InitFlags& flags) {
  config::TemplateOptions options = flags.options;
  const std::filesystem::path& here = context.environment.working_directory;
  const std::filesystem::path given = here / flags.directory;
  const std::filesystem::path directory = given.has_filename() ? given : given.parent_path();
  if (options.name.empty()) options.name = default_node_name(host_name());
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
  if (auto made = create_node(directory, options); !made) return made.error();
  const auto self = identity::load(directory);
  if (!self) return self.error();
  context.print(
      {{"schema", "sluice.node_init.v1"},
       {"directory", directory.string()},
       {"name", self->name},
       {"fingerprint", self->fingerprint},
       {"certificate_file", self->certificate_file.string()}},
      fmt::format("node {} in {}\nfingerprint {}\n"
                  "Give {} to the operators of your peers, and take theirs with 'sluice node trust'.\n",
                  self->name, directory.string(), self->fingerprint, self->certificate_file.string()));
  return 0;
}

Result<int> trust(const Context& context, const TrustFlags& flags) {
  const auto directory = context.existing_node_directory();
  if (!directory) return directory.error();
  if (!config::valid_node_name(flags.name) || flags.name == "memory" || flags.name == "null") {
    return usage("'" + printable(flags.name) +
                 "' cannot name a node; use a-z, 0-9, _ and -, and neither 'memory' nor 'null'");
  }
  if (!flags.address.empty()) {
    if (const auto address = config::parse_host_port(flags.address); !address) {
      return usage("--address: " + address.error().message);
    }
  }
  const std::string file =
      flags.certificate == "-" ? "-" : (context.environment.working_directory / flags.certificate).string();
  const auto certificate = read_certificate(file);
  if (!certificate) return certificate.error();
  const auto peer = identity::trust(*directory, flags.name, flags.address, *certificate, flags.replace);
  if (!peer) return peer.error();
  context.print({{"schema", "sluice.peer.v1"},
                 {"name", peer->name},
                 {"address", peer->address},
                 {"fingerprint", peer->fingerprint}},
                fmt::format("trusts {} with fingerprint {}{}\n", peer->name, peer->fingerprint,
                            peer->address.empty() ? ", which calls us" : " at " + peer->address));
  return 0;
}

// First nobody is let in any more, then what runs is ended.
Result<int> distrust(const Context& context, const std::string& name) {
  const auto directory = context.existing_node_directory();
  if (!directory) return directory.error();
  if (auto status = identity::distrust(*directory, name); !status) return status.error();
  Json cancelled = Json::array();
  std::string text = fmt::format("does not trust {} any more\n", name);
  const auto client = Client::connect(*directory);
  const auto all = client ? (*client)->list() : Result<api::ListSessionsReply>(client.error());
  if (!all && all.error().code != ErrorCode::kDaemonNotRunning) return all.error();
  for (int i = 0; all && i < all->sessions_size(); ++i) {
    const api::Session& session = all->sessions(i);
    if (session.peer() != name || session_ended(session)) continue;
    const auto ended = (*client)->cancel(session.id());
    // It may have ended by itself meanwhile.
    if (!ended && ended.error().code != ErrorCode::kUsage) return ended.error();
    cancelled.push_back(session.id());
    text += fmt::format("cancelled session {}\n", session.id());
  }
  context.print({{"schema", "sluice.node_distrust.v1"}, {"name", name}, {"cancelled", cancelled}}, text);
  return 0;
}

// What the running daemons say; an Error when there is none to ask.
Result<api::NodeReply> live_status(const std::filesystem::path& directory) {
  auto client = Client::connect(directory);
  if (!client) return client.error();
  return (*client)->node();
}

struct NodeView {
  config::Node config;
  identity::Identity self;
  std::vector<identity::Peer> peers;
};

Result<NodeView> view_of(const std::filesystem::path& directory) {
  auto node = config::load(directory);
  if (!node) return node.error();
  auto self = identity::load(directory);
  if (!self) return self.error();
  auto peers = identity::load_peers(directory);
  if (!peers) return peers.error();
  return NodeView{std::move(*node), std::move(*self), std::move(*peers)};
}

Json view_json(const NodeView& view, const Result<api::NodeReply>& live) {
  Json exports = Json::array();
  for (const config::Export& item : view.config.exports) {
    Json one = {{"name", item.name}, {"path", item.path.string()}, {"mode", item.mode()}, {"peers", nullptr}};
    if (item.peers) {
      one["peers"] = Json::array();
      for (const config::ExportPeer& peer : *item.peers)
        one["peers"].push_back(Json{{"name", peer.name}, {"mode", item.for_peer(peer.name).mode()}});
    }
    exports.push_back(std::move(one));
  }
  Json peers = Json::array();
  for (const identity::Peer& peer : view.peers) {
    peers.push_back(Json{{"name", peer.name}, {"address", peer.address}, {"fingerprint", peer.fingerprint}});
  }
  Json out = {{"schema", "sluice.node.v1"},
              {"name", view.config.name},
              {"directory", view.config.directory.string()},
              {"fingerprint", view.self.fingerprint},
              {"certificate", view.self.certificate_pem},
              {"listen", view.config.listen},
              {"metrics_listen", view.config.metrics_listen},
              {"device", view.config.device},
              {"address4", view.config.address4},
              {"address6", view.config.address6},
              {"neighbours", view.config.neighbours},
              {"memory", view.config.memory},
              {"memory_mib", view.config.memory_mib}};
  out["exports"] = std::move(exports);
  out["peers"] = std::move(peers);
  out["live"] = live ? live_json(*live) : Json(nullptr);
  return out;
}

std::string live_text(const Result<api::NodeReply>& live) {
  if (!live && live.error().code == ErrorCode::kDaemonNotRunning) return "control      not running\n";
  if (!live) return "control      " + printable(live.error().message) + "\n";
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
  if (!live->dataplane_attached()) return text + "dataplane    not attached\n";
  text += fmt::format("dataplane    attached: {}, {} worker{}, {}, frames up to {} bytes, CRC by {}\n",
                      printable(live->device()), live->workers(), live->workers() == 1 ? "" : "s",
                      live->hugepages() ? "hugepages" : "no hugepages", live->frame_bytes_max(),
                      printable(live->crc_variant()));
  return text;
}

std::string view_text(const NodeView& view, const Result<api::NodeReply>& live) {
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
  }
  return text + live_text(live);
}

Result<int> show(const Context& context, const ShowFlags& flags) {
  const auto directory = context.existing_node_directory();
  if (!directory) return directory.error();
  if (flags.certificate && !context.json) {
    // Works also while node.toml is wrong.
    const auto self = identity::load(*directory);
    if (!self) return self.error();
    context.print(nullptr, self->certificate_pem);
    return 0;
  }
  const auto view = view_of(*directory);
  if (!view) return view.error();
  const auto live = live_status(*directory);
  context.print(view_json(*view, live), view_text(*view, live));
  return 0;
}

Result<int> reference(const Context& context, bool of_metrics) {
  const std::string markdown = of_metrics ? metrics::reference_markdown() : config::reference_markdown();
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
  command->add_option("--device", options.device, "DPDK device of the data port")->type_name("DEVICE");
  command->add_option("--address", options.address4, "IPv4 address of the data port")->type_name("A/LEN");
  command->add_option("--address6", options.address6, "IPv6 address of the data port")->type_name("A/LEN");
  command->add_option("--gateway", options.gateway4, "IPv4 router of the data network")->type_name("A");
  command->add_option("--gateway6", options.gateway6, "IPv6 router of the data network")->type_name("A");
  command->add_option("--mtu", options.mtu, "IP MTU of the data network")->type_name("N");
  command->add_option("--udp-port-base", options.udp_port_base, "First UDP port of the lanes")
      ->type_name("N");
  command->add_option("--core", options.cores, "CPU of a worker; repeat for each")
      ->type_name("N")
      ->allow_extra_args(false);
  command->add_option("--workers", options.workers, "Workers (default: one for each --core, else 1)")
      ->type_name("N");
  command->add_option("--poll", options.poll, "adaptive or busy")->type_name("MODE");
  command->add_option("--memory", options.memory, "auto, hugepages or no-huge")->type_name("KIND");
  command->add_option("--memory-mib", options.memory_mib, "Memory of the dataplane in MiB")->type_name("N");
  command->add_option("--rate", flags->rate, "Rate of a session in bit/s, such as 10G")->type_name("RATE");
  command
      ->add_option("--export", flags->exports, "Directory that may be read, written or both; repeat for each")
      ->type_name("NAME=PATH[:r|w|rw|rm|wm|rwm]")
      ->allow_extra_args(false);
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

void add_trust(CLI::App& node, Context& context) {
  auto flags = std::make_shared<TrustFlags>();
  CLI::App* command = node.add_subcommand("trust", "Pin the identity of a peer");
  command->add_option("name", flags->name, "How this node calls the peer")->required()->type_name("NAME");
  command
      ->add_option("certificate", flags->certificate, "The peer's certificate, PEM; - for the standard input")
      ->required()
      ->type_name("CERT.pem");
  command->add_option("--address", flags->address, "Where the peer's control daemon listens")
      ->type_name("HOST:PORT");
  command->add_flag("--replace", flags->replace, "Replace another identity of that name");
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return trust(context, *flags); }; });
}

void add_distrust(CLI::App& node, Context& context) {
  auto name = std::make_shared<std::string>();
  CLI::App* command =
      node.add_subcommand("distrust", "Forget the identity of a peer, and cancel all that runs with it");
  command->add_option("name", *name, "How this node calls the peer")->required()->type_name("NAME");
  command->callback(
      [&context, name] { context.action = [&context, name] { return distrust(context, *name); }; });
}

}  // namespace

void add_node_commands(CLI::App& app, Context& context) {
  CLI::App* node =
      app.add_subcommand("node", "The node itself: setup, init, trust, distrust, show, reference");
  node->require_subcommand(1);
  add_setup(*node, context);
  add_init(*node, context);
  add_trust(*node, context);
  add_distrust(*node, context);
  auto flags = std::make_shared<ShowFlags>();
  CLI::App* command = node->add_subcommand("show", "Show configuration, identity, peers and live status");
  command->add_flag("--certificate", flags->certificate, "Print the certificate, for a peer's operator");
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return show(context, *flags); }; });
  auto of_metrics = std::make_shared<bool>(false);
  CLI::App* table = node->add_subcommand("reference", "Print the reference of node.toml, or of the metrics");
  table->add_flag("--metrics", *of_metrics, "The metrics that sluice-control tells Prometheus");
  table->callback([&context, of_metrics] {
    context.action = [&context, of_metrics] { return reference(context, *of_metrics); };
  });
}

}  // namespace sluice::cli
