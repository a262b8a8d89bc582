// sluice node run --ephemeral: a node that lives as long as a command, or until a signal. It needs no root:
// it runs on the sockets of the host, in a private directory that goes with it.
//
// The daemons are children in sessions of their own, so that an interrupt from a terminal reaches the command
// first, and they are stopped in order. Should this process be killed, the kernel ends them; the directory
// stays then.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "control/identity/hex.h"
#include "control/identity/node_files.h"
#include "control/identity/rotation.h"
#include "dataplane/base/arguments/arguments.h"
#include "tools/cli/app.h"
#include "tools/cli/connect.h"
#include "tools/cli/daemons.h"
#include "tools/cli/enrol.h"
#include "tools/cli/format.h"
#include "tools/cli/node_files.h"
#include "tools/cli/progress.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr size_t kDirectoryBytesMax = 80;  // beneath it are sockets, whose paths may have 107
constexpr size_t kNameBytesMax = 63;
constexpr auto kCommandEnds = 10s;  // after a signal; then it is killed
constexpr auto kDaemonEnds = 8s;
constexpr auto kLook = 50ms;  // how often is looked whether all still runs

struct RunFlags {
  bool ephemeral = false;
  std::string parent;
  std::vector<std::string> exports;
  std::string rate;
  std::string certificate;
  std::string key;
  std::string ca_file;
  uint32_t start_timeout_s = 60;
  EnrolFlags enrol;
  config::TemplateOptions options;
  std::vector<std::string> command;
};

// ---- the node ------------------------------------------------------------------------------------

// Removed when it goes.
class PrivateDirectory {
 public:
  static Result<std::unique_ptr<PrivateDirectory>> make(const fs::path& parent) {
    std::string path = (parent / "sluice-XXXXXX").string();
    if (path.size() > kDirectoryBytesMax)
      return usage(fmt::format("{} is too long for the sockets beneath it; give --directory, such as /tmp",
                               printable(parent.string())));
    if (::mkdtemp(path.data()) == nullptr)
      return Error{ErrorCode::kConfiguration,
                   fmt::format("cannot make a directory in {}: {}; give another --directory",
                               printable(parent.string()), std::strerror(errno))};
    std::unique_ptr<PrivateDirectory> made(new PrivateDirectory);
    made->path_ = path;
    return made;
  }
  ~PrivateDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  PrivateDirectory() = default;
  fs::path path_;
};

// Of this host and of nobody before: what an authority has given to a key is not another's.
std::string chosen_name() {
  const std::string tail = "-" + identity::random_hex(4);
  return default_node_name(host_name()).substr(0, kNameBytesMax - tail.size()) + tail;
}

fs::path parent_of(const Context& context, const RunFlags& flags) {
  if (!flags.parent.empty()) return context.environment.working_directory / flags.parent;
  const char* const set = std::getenv("TMPDIR");
  return set != nullptr && *set == '/' ? set : "/tmp";
}

// The certificate that the operator has brought.
Status take_certificate(const Context& context, const RunFlags& flags, const fs::path& directory) {
  if (flags.certificate.empty()) return {};
  const fs::path& here = context.environment.working_directory;
  const auto certificate = identity::read_small_file(here / flags.certificate);
  if (!certificate) return certificate.error();
  const auto key = identity::read_small_file(here / flags.key);
  if (!key) return key.error();
  const auto installed = identity::install(directory, *certificate, *key);
  return installed ? Status() : Status(installed.error());
}

Status check(const RunFlags& flags) {
  if (!flags.ephemeral)
    return usage(
        "give --ephemeral: a node that stays is run by its services, or by sluice-dataplane and "
        "sluice-control");
  if (flags.enrol.token.empty() == flags.certificate.empty())
    return usage(
        "give --enrol TOKEN, or --certificate, --key and --ca-file of a node: else no peer knows it");
  if (!flags.certificate.empty() && (flags.key.empty() || flags.ca_file.empty()))
    return usage("--certificate: give its --key as well, and the --ca-file of its authority");
  if (!flags.options.name.empty() && !config::valid_node_name(flags.options.name))
    return usage("--name: '" + printable(flags.options.name) + "' is no node name; use a-z, 0-9, _ and -");
  return {};
}

class Node {
 public:
  Node(const Context& context, const RunFlags& flags) : context_(context), flags_(flags) {}
  ~Node() {
    control_.stop(kDaemonEnds);
    dataplane_.stop(kDaemonEnds);
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Status make() {
    auto directory = PrivateDirectory::make(parent_of(context_, flags_));
    if (!directory) return directory.error();
    directory_ = std::move(*directory);
    config::TemplateOptions options = flags_.options;
    Result<site::Token> token = site::Token{};
    if (!flags_.enrol.token.empty()) token = token_of(context_, flags_.enrol);
    if (!token) return token.error();
    if (options.name.empty()) options.name = token->name.empty() ? chosen_name() : token->name;
    if (options.listen.empty()) options.listen = "none";
    for (const std::string& text : flags_.exports) {
      auto item = parse_export(text, context_.environment.working_directory);
      if (!item) return item.error();
      options.exports.push_back(std::move(*item));
    }
    if (!flags_.rate.empty()) {
      const auto rate_bps = rate_option("--rate", flags_.rate);
      if (!rate_bps) return rate_bps.error();
      options.rate_bps = *rate_bps;
    }
    for (auto& [given, key] : {std::pair(&flags_.ca_file, &options.ca_file),
                               std::pair(&flags_.options.addresses_file, &options.addresses_file)})
      if (!given->empty()) *key = (context_.environment.working_directory / *given).string();
    name_ = options.name;
    return create_node(path(), options, [&](config::TemplateOptions& made) {
      if (flags_.enrol.token.empty()) return take_certificate(context_, flags_, path());
      return enrol(context_, path(), *token, flags_.enrol, made);
    });
  }

  // Until sluice-control has its dataplane.
  Status start(Signals& signals) {
    dataplane_ = Process("sluice-dataplane", path() / "dataplane.log");
    control_ = Process("sluice-control", path() / "control.log");
    const auto until = Clock::now() + std::chrono::seconds(flags_.start_timeout_s);
    if (Status s = start(dataplane_, context_.environment.dataplane, "dataplane.log"); !s) return s;
    const auto has_socket = [this] {
      std::error_code ignored;
      return fs::exists(path() / "run" / "dataplane.sock", ignored);
    };
    if (Status s = wait(signals, until, has_socket); !s) return s;
    if (Status s = start(control_, context_.environment.control, "control.log"); !s) return s;
    return wait(signals, until, [this] { return control_.running() && attached(); });
  }

  // What ended; nothing: both run.
  std::optional<Error> broken() {
    if (!control_.running()) return control_.ended();
    if (!dataplane_.running()) return dataplane_.ended();
    return std::nullopt;
  }
  fs::path path() const { return directory_->path(); }
  const std::string& name() const { return name_; }

 private:
  Status start(Process& process, const fs::path& program, const char* log) const {
    if (program.empty())
      return Error{ErrorCode::kConfiguration,
                   process.name() +
                       " is not installed beside this command; install the package, or build it "
                       "with ./dev build"};
    const int reason = process.start(
        {.words = {program.string(), "--node", path().string()}, .log = path() / log, .daemon = true});
    if (reason == 0) return {};
    return Error{ErrorCode::kConfiguration,
                 "cannot start " + program.string() + ": " + std::strerror(reason)};
  }
  Status wait(Signals& signals, Clock::time_point until, const std::function<bool()>& there) {
    while (!there()) {
      if (!dataplane_.running()) return dataplane_.ended();
      if (control_started_ && !control_.running()) return control_.ended();
      if (Clock::now() >= until)
        return Error{ErrorCode::kStalled, fmt::format("the node was not ready within {} s; give a longer "
                                                      "--start-timeout",
                                                      flags_.start_timeout_s)};
      if (signals.next(kLook) != 0)
        return Error{ErrorCode::kCancelled, "a signal came before the node was ready"};
    }
    control_started_ = true;
    return {};
  }
  bool attached() const {
    const auto client = api::Client::connect(path());
    if (!client) return false;
    const auto reply = (*client)->node();
    return reply && reply->dataplane_attached();
  }

  const Context& context_;
  const RunFlags& flags_;
  std::unique_ptr<PrivateDirectory> directory_;
  std::string name_;
  bool control_started_ = false;
  Process dataplane_, control_;
};

// ---- the command ---------------------------------------------------------------------------------

// Its exit status, or of the signal that ended all.
Result<int> wait_for(Node& node, Signals& signals, Process* command) {
  std::optional<Clock::time_point> kill_at;
  std::optional<Error> broken;
  for (;;) {
    if (command != nullptr && !command->running()) break;
    if (const int number = signals.next(kLook * 4); number != 0) {
      if (command == nullptr) return 0;
      if (!(number == SIGINT && signals.by_terminal())) command->send(number);
      if (!kill_at) kill_at = Clock::now() + kCommandEnds;
    }
    if (!broken && (broken = node.broken())) {
      if (command == nullptr) return *broken;
      command->send(SIGTERM);
      kill_at = Clock::now() + kCommandEnds;
    }
    if (kill_at && Clock::now() >= *kill_at) command->send(SIGKILL);
  }
  if (broken) return *broken;
  return command->status();
}

Result<int> run_node(const Context& context, const RunFlags& flags) {
  if (Status status = check(flags); !status) return status.error();
  Signals signals;
  Node node(context, flags);
  if (Status status = node.make(); !status) return status.error();
  if (Status status = node.start(signals); !status) return status.error();
  const std::string directory = node.path().string();
  if (flags.command.empty()) {
    context.print({{"schema", "sluice.node_run.v1"}, {"name", node.name()}, {"directory", directory}},
                  fmt::format("node {} runs in {} until a signal comes; {} speaks to it\n", node.name(),
                              directory, context.command_for(directory)));
    context.environment.out << std::flush;
    return wait_for(node, signals, nullptr);
  }
  Process command(flags.command[0], "");
  const int reason = command.start({.words = flags.command, .environment = {"SLUICE_NODE=" + directory}});
  if (reason != 0) {
    context.environment.err << "sluice: cannot run " << printable(flags.command[0]) << ": "
                            << std::strerror(reason) << "\n";
    return reason == ENOENT ? 127 : 126;  // as shells have it
  }
  return wait_for(node, signals, &command);
}

}  // namespace

void add_node_run(CLI::App& node, Context& context) {
  const auto flags = std::make_shared<RunFlags>();
  config::TemplateOptions& options = flags->options;
  CLI::App* const command = node.add_subcommand(
      "run",
      "Run a node as long as a command, on sockets and without root: inside an allocation of a cluster");
  command->add_flag("--ephemeral", flags->ephemeral, "It has a private directory, which goes with it");
  add_enrol_options(*command, flags->enrol);
  command->add_option("--enrol-timeout", flags->enrol.timeout_s, "Seconds for the enrolment (default 60)")
      ->transform(arguments::whole(1, 3600))
      ->type_name("S");
  command->add_option("--certificate", flags->certificate, "Instead: a certificate of an authority")
      ->type_name("CERT.pem");
  command->add_option("--key", flags->key, "Its key")->type_name("KEY.pem");
  command->add_option("--ca-file", flags->ca_file, "The certificate of its authority")->type_name("CA.pem");
  command->add_option("--ca-domain", options.ca_domain, "DNS domain of its names")->type_name("DOMAIN");
  command->add_option("--addresses-file", options.addresses_file, "File that says where peers listen")
      ->type_name("FILE");
  command
      ->add_option("--name", options.name,
                   "Name of the node (default: the token's, else the host's and a number)")
      ->type_name("NAME");
  command->add_option("--listen", options.listen, "Where peers may call it (default none: it only calls)")
      ->type_name("HOST:PORT|none");
  command->add_option("--address", options.address4, "IPv4 address of the data port")->type_name("A/LEN");
  command->add_option("--address6", options.address6, "IPv6 address of the data port")->type_name("A/LEN");
  command->add_option("--udp-port-base", options.udp_port_base, "First UDP port of the lanes")
      ->type_name("N")
      ->transform(range_of("port", "udp_port_base"));
  command->add_option("--memory-mib", options.memory_mib, "Memory of the dataplane in MiB")
      ->type_name("N")
      ->transform(range_of("dataplane", "memory_mib"));
  command->add_option("--rate", flags->rate, "Rate of a session in bit/s, such as 10G")->type_name("RATE");
  command->add_option("--export", flags->exports, "Directory that peers may use; repeat for each")
      ->type_name("NAME=PATH[:r|w|rw|rm|wm|rwm]")
      ->allow_extra_args(false);
  command
      ->add_option("--directory", flags->parent, "Where its directory is made (default $TMPDIR, else /tmp)")
      ->type_name("DIR");
  command
      ->add_option("--start-timeout", flags->start_timeout_s, "Seconds until it must be ready (default 60)")
      ->transform(arguments::whole(1, 3600))
      ->type_name("S");
  command->add_option("command", flags->command, "Runs with $SLUICE_NODE; its exit status is this one's")
      ->type_name("COMMAND");
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return run_node(context, *flags); }; });
}

}  // namespace sluice::cli
