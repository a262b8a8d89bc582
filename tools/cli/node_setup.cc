// sluice node setup: asks what a node needs to be told, or takes it from flags, and makes it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "control/identity/identity.h"
#include "control/identity/node_files.h"
#include "tools/cli/app.h"
#include "tools/cli/format.h"
#include "tools/cli/node_files.h"
#include "tools/cli/service_files.h"
#include "tools/cli/setup_plan.h"
#include "tools/cli/shell.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kCardMemoryMib = 1024;  // more than the default, as a card is faster than sockets
constexpr int kTriesMax = 5;               // for an answer that cannot be

struct SetupFlags {
  std::string directory;
  bool yes = false;
  bool take = false;
  uint32_t memory_mib = 0;
  std::vector<std::string> exports;
  config::TemplateOptions options;
};

// Asks, where somebody is there and a flag has not said it already.
class Dialogue {
 public:
  Dialogue(Environment& environment, bool asks) : environment_(environment), asks_(asks) {}
  bool asks() const { return asks_; }
  void say(const std::string& text) const {
    if (asks_) environment_.err << text;
  }
  // `check`: of an answer, an error to be shown before it is asked again.
  Result<std::string> ask(const std::string& question, const std::string& given, const std::string& otherwise,
                          const std::function<Status(const std::string&)>& check) const {
    if (!given.empty() || !asks_) {
      const std::string& taken = given.empty() ? otherwise : given;
      if (auto good = check(taken); !good) return good.error();
      return taken;
    }
    for (int tries = 0;; ++tries) {
      environment_.err << question << (otherwise.empty() ? "" : " [" + otherwise + "]") << ": " << std::flush;
      std::string answer = environment_.answer();
      if (answer.empty()) answer = otherwise;
      auto good = check(answer);
      if (good) return answer;
      if (tries + 1 == kTriesMax) return good.error();
      environment_.err << printable(good.error().message) << "\n";
    }
  }

 private:
  Environment& environment_;
  const bool asks_;
};

struct Setup {
  fs::path directory;
  std::optional<ServiceUsers> service;  // it is the node of the package's services
  config::TemplateOptions options;
  Carrier carrier;
};

Status good_name(const std::string& name) {
  if (config::valid_node_name(name)) return {};
  return usage("'" + printable(name) + "' is no node name; use a-z, 0-9, _ and -");
}

Status good_listen(const std::string& listen) {
  if (listen == "none") return {};
  const auto address = config::parse_host_port(listen);
  return address ? Status() : usage("--listen: " + address.error().message);
}

Status good_address(const std::string& address) {
  if (address.find('/') != std::string::npos) return {};  // the rest is the schema's to judge
  return usage("--address: '" + printable(address) + "' is no address with its length, as in 10.77.0.1/24");
}

Status ask_device(const Dialogue& dialogue, const SetupFlags& flags, Setup* setup) {
  const auto here = doctor::gather_addresses();
  const auto cards = doctor::gather_cards("/", here);
  config::TemplateOptions& options = setup->options;
  std::string proposed = std::string(config::kSocketDevice);
  if (dialogue.asks() && options.device.empty()) {
    dialogue.say(
        "\nWhat carries the data: udp, the sockets of this host, which need nothing; or a network card\n"
        "that Sluice drives itself and that the kernel does not have then.\n");
    for (const doctor::Card& card : cards) dialogue.say("  " + printable(card_line(card)) + "\n");
    if (const doctor::Card* card = free_card(cards)) proposed = card->pci;
  } else if (options.device.empty()) {
    const auto taken = default_device(cards, here, options.address4);
    if (!taken) return taken.error();
    proposed = *taken;
  }
  const auto device = dialogue.ask("Device", options.device, proposed, [&](const std::string& text) {
    auto carrier = carrier_of(cards, text, flags.take);
    if (!carrier) return Status(carrier.error());
    setup->carrier = std::move(*carrier);
    return Status();
  });
  if (!device) return device.error();
  options.device = setup->carrier.device;
  if (options.device == config::kSocketDevice) return {};
  if (options.address6.empty() || !options.address4.empty()) {
    const auto address =
        dialogue.ask("IPv4 address of the data port, with its length", options.address4, "", good_address);
    if (!address && options.address4.empty() && !dialogue.asks())
      return usage(
          "--address: a network card that Sluice drives needs an address of its own, as in "
          "--address 10.77.0.1/24");
    if (!address) return address.error();
    options.address4 = *address;
  }
  if (setup->carrier.card) options.memory = "hugepages";
  options.memory_mib = setup->carrier.card ? kCardMemoryMib : config::Node{}.memory_mib;
  return {};
}

Status ask_exports(const Dialogue& dialogue, const Context& context, const SetupFlags& flags, Setup* setup) {
  std::vector<std::string> exports = flags.exports;
  if (exports.empty()) {
    const fs::path usual = setup->service ? fs::path("/srv/sluice") : setup->directory / "data";
    dialogue.say("\nPeers may read and write files beneath one directory, and nothing outside it.\n");
    const auto directory =
        dialogue.ask("Directory to share", "", usual.string(), [](const std::string& text) {
          return text.starts_with('/') ? Status() : usage("'" + printable(text) + "' does not begin with /");
        });
    if (!directory) return directory.error();
    exports.push_back("data=" + *directory + ":rw");
  }
  for (const std::string& text : exports) {
    auto item = parse_export(text, context.environment.working_directory, Missing::kLeft);
    if (!item) return item.error();
    setup->options.exports.push_back(std::move(*item));
  }
  return {};
}

Result<Setup> ask_all(const Context& context, const SetupFlags& flags) {
  const bool asks = context.environment.answer && !flags.yes && !context.json;
  if (!asks && !flags.yes)
    return usage("nobody is here to be asked; give --yes, and a flag for what shall not be the default");
  const Dialogue dialogue(context.environment, asks);
  Setup setup{.directory = context.environment.working_directory / flags.directory,
              .service = {},
              .options = flags.options,
              .carrier = {}};
  if (!setup.directory.has_filename()) setup.directory = setup.directory.parent_path();
  if (setup.directory == kServiceNode) {
    setup.service = service_users("/");
    if (setup.service && ::geteuid() != 0)
      return Error{ErrorCode::kConfiguration, "the node of the services is root's to make: run it as root"};
    if (setup.service) use_service(setup.options);
  }
  std::error_code ignored;
  if (fs::exists(setup.directory / "node.toml", ignored))
    return Error{ErrorCode::kConfiguration,
                 setup.directory.string() +
                     " holds a node already; change its node.toml, or choose another "
                     "directory. Nothing was changed"};
  dialogue.say("A node of Sluice in " + setup.directory.string() +
               ". Enter takes what stands in brackets.\n");
  config::TemplateOptions& options = setup.options;
  const auto name =
      dialogue.ask("Name of this node", options.name, default_node_name(host_name()), good_name);
  if (!name) return name.error();
  options.name = *name;
  const auto listen = dialogue.ask("Address where other nodes call this one (none: it only calls)",
                                   options.listen, config::Node{}.listen, good_listen);
  if (!listen) return listen.error();
  options.listen = *listen;
  if (auto s = ask_device(dialogue, flags, &setup); !s) return s.error();
  if (flags.memory_mib != 0) options.memory_mib = flags.memory_mib;
  if (auto s = ask_exports(dialogue, context, flags, &setup); !s) return s.error();
  if (!asks) return setup;
  const auto sure = dialogue.ask("\nMake it? (yes, no)", "", "yes", [](const std::string& text) {
    return text == "yes" || text == "y" || text == "no" || text == "n" ? Status() : usage("yes or no");
  });
  if (!sure) return sure.error();
  if (sure->front() == 'n') return Error{ErrorCode::kCancelled, "nothing was made"};
  return setup;
}

Status finish(const Setup& setup) {
  for (const config::Export& item : setup.options.exports) {
    if (auto s = make_shared(item.path, setup.service); !s) return s;
  }
  if (!setup.service) return {};
  if (auto s = hand_over(setup.directory, *setup.service, "/"); !s) return s;
  const std::string host = host_file(setup.carrier, setup.options.memory_mib);
  if (auto s = identity::write_small_file(setup.directory / "host.conf", host, 0644, identity::Replace::kYes);
      !s)
    return s;
  return grant(setup.carrier.service_rights(), "/");
}

std::string next_steps(const Context& context, const Setup& setup, const identity::Identity& self) {
  std::string text =
      fmt::format("node {} in {}\nfingerprint {}\n", self.name, setup.directory.string(), self.fingerprint);
  text += setup.carrier.card ? "data over " + card_line(*setup.carrier.card) + "\n"
                             : "data over " + setup.carrier.device + "\n";
  for (const config::Export& item : setup.options.exports)
    text += fmt::format("peers may use {}: ({}) beneath {}\n", item.name, item.mode(), item.path.string());
  text += "\nNext:\n";
  if (setup.service) {
    text += setup.carrier.service_rights().empty() ? "" : "  systemctl daemon-reload\n";
    text +=
        "  systemctl restart sluice-host sluice-dataplane sluice-control\n"
        "  usermod -aG sluice USER                  (who may use it, besides root)\n";
  } else {
    const auto host = host_commands(setup.carrier, setup.options.memory_mib);
    if (!host.empty())
      text +=
          "  as root, after each start of the host: the card and its hugepages (sluice-host is of the "
          "package; in "
          "the source it is tools/package/sluice-host)\n";
    for (const std::string& command : host) text += "  " + command + "\n";
    const std::string node = shell_word(setup.directory.string());
    text += fmt::format("  sluice-dataplane --node {} &\n  sluice-control --node {} &\n", node, node);
  }
  const std::string sluice = context.command_for(setup.directory);
  return text +
         fmt::format(
             "  {} node trust PEER CERT --address HOST:7400, with the certificate of a peer; give it {}\n"
             "  {} doctor\n",
             sluice, self.certificate_file.string(), sluice);
}

Result<int> set_up(const Context& context, const SetupFlags& flags) {
  const auto setup = ask_all(context, flags);
  if (!setup) return setup.error();
  if (auto made = create_node(setup->directory, setup->options); !made) return made.error();
  if (auto finished = finish(*setup); !finished) {
    forget_node(setup->directory);
    return finished.error();
  }
  const auto self = identity::load(setup->directory);
  if (!self) return self.error();
  context.print({{"schema", "sluice.node_setup.v1"},
                 {"directory", setup->directory.string()},
                 {"name", self->name},
                 {"fingerprint", self->fingerprint},
                 {"certificate_file", self->certificate_file.string()},
                 {"device", setup->carrier.device},
                 {"service", setup->service.has_value()}},
                next_steps(context, *setup, *self));
  return 0;
}

}  // namespace

void add_setup(CLI::App& node, Context& context) {
  auto flags = std::make_shared<SetupFlags>();
  config::TemplateOptions& options = flags->options;
  CLI::App* command = node.add_subcommand(
      "setup",
      "Make a node that works here: asks on a terminal, or takes flags. In /etc/sluice, with the "
      "package installed, the node of its services");
  command->add_option("directory", flags->directory, "Where to make it")
      ->type_name("DIR")
      ->default_str(std::string(kServiceNode));
  command->add_flag("--yes", flags->yes, "Ask nothing: what no flag says is the default");
  command->add_option("--name", options.name, "Name of the node (default: the host's)")->type_name("NAME");
  command->add_option("--listen", options.listen, "Where other nodes call this one; none: it only calls")
      ->type_name("HOST:PORT|none");
  command
      ->add_option("--device", options.device,
                   "udp, the sockets of this host; or a network card, by its interface or PCI address")
      ->type_name("udp|DEVICE");
  command
      ->add_option("--address", options.address4,
                   "IPv4 address of the data port. One that this host does not have is for a card")
      ->type_name("A/LEN");
  command->add_option("--address6", options.address6, "IPv6 address of the data port")->type_name("A/LEN");
  command->add_option("--gateway", options.gateway4, "IPv4 router of the data network, of a card")
      ->type_name("A");
  command->add_option("--mtu", options.mtu, "IP MTU of the data network")
      ->type_name("N")
      ->transform(range_of("port", "mtu"));
  command->add_option("--memory-mib", flags->memory_mib, "Memory of the dataplane in MiB")
      ->type_name("N")
      ->transform(range_of("dataplane", "memory_mib"));
  command
      ->add_option("--export", flags->exports,
                   "Directory that peers may use, made where it is not there; repeat for each")
      ->type_name("NAME=PATH[:r|w|rw|rm|wm|rwm]")
      ->allow_extra_args(false);
  command->add_flag("--take", flags->take, "Take a card although this host has an address or a route there");
  command->callback([&context, flags] {
    if (flags->directory.empty()) flags->directory = kServiceNode;
    context.action = [&context, flags] { return set_up(context, *flags); };
  });
}

}  // namespace sluice::cli
