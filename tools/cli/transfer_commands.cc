// sluice send, sluice get.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <chrono>
#include <mutex>
#include <optional>
#include <ostream>

#include "dataplane/base/config/config.h"
#include "tools/cli/app.h"
#include "tools/cli/client.h"
#include "tools/cli/follow.h"
#include "tools/cli/format.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/target.h"
#include "tools/cli/when.h"

namespace sluice::cli {
namespace {

struct TransferFlags {
  std::vector<std::string> paths;
  std::optional<uint32_t> lanes;
  std::string rate;
  std::string mode;
  std::string min_rate;
  std::string deadline;
  std::string deadline_policy;
  std::optional<double> expected_loss_percent;
  std::string crc;
  std::string chunk_bytes;
  bool overwrite = false;
  bool verify = false;
  bool ip4 = false;
  bool ip6 = false;
  bool detach = false;
  bool quiet = false;
};

void add_flags(CLI::App& command, TransferFlags& flags) {
  command.add_option("--lanes", flags.lanes, "UDP flows side by side")->type_name("N");
  command.add_option("--rate", flags.rate, "Limit of the session in bit/s, such as 10G or 800M")
      ->type_name("RATE");
  command.add_option("--mode", flags.mode, "How the rate is found (docs/RATE.md)")
      ->type_name("MODE")
      ->check(CLI::IsMember({"adaptive", "fixed", "cubic"}));
  command.add_option("--min-rate", flags.min_rate, "Fail if it is slower than this for a minute")
      ->type_name("RATE");
  command
      .add_option(
          "--deadline", flags.deadline,
          "When all is to be done: 2h30m, 18:00, 2026-11-22T18:00:00Z; refused if that cannot be kept")
      ->type_name("T");
  command
      .add_option("--deadline-policy", flags.deadline_policy,
                  "refuse what cannot be kept (the default), only warn, or refuse and stop when it is over")
      ->type_name("POLICY")
      ->check(CLI::IsMember({"refuse", "warn", "stop"}));
  command
      .add_option("--expect-loss", flags.expected_loss_percent,
                  "Percentage of datagrams that the path loses, however little is sent")
      ->type_name("PERCENT")
      ->check(CLI::Range(0.0, 95.0));
  command.add_option("--crc", flags.crc, "Kind of checksum; none only into null:")
      ->type_name("KIND")
      ->check(CLI::IsMember({"crc64", "crc32c", "none"}));
  command
      .add_option("--chunk-bytes", flags.chunk_bytes,
                  "Payload of one datagram; auto: whatever brings most under the path's loss")
      ->type_name("N");
  command.add_flag("--overwrite", flags.overwrite, "Replace a destination that exists");
  command.add_flag(
      "--verify", flags.verify,
      "The destination reads each file back from its disk and compares it before it gets its name");
  auto* ip4 = command.add_flag("-4", flags.ip4, "Send the data over IPv4");
  command.add_flag("-6", flags.ip6, "Send the data over IPv6")->excludes(ip4);
  command.add_flag("--detach", flags.detach, "Print the session's id and leave it running");
  command.add_flag("-q,--quiet", flags.quiet, "Show no progress");
}

Status set_options(const TransferFlags& flags, api::TransferOptions& options) {
  if (flags.lanes == 0U) return Error{ErrorCode::kUsage, "--lanes: 0 carry nothing; give 1 or more"};
  options.set_lanes(flags.lanes.value_or(0));
  options.set_crc(flags.crc);
  options.set_overwrite(flags.overwrite);
  options.set_verify(flags.verify);
  if (flags.ip4) options.set_ip("4");
  if (flags.ip6) options.set_ip("6");
  if (!flags.rate.empty()) {
    const auto rate_bps = rate_option("--rate", flags.rate);
    if (!rate_bps) return rate_bps.error();
    options.set_rate_bps(*rate_bps);
  }
  options.set_mode(flags.mode);
  if (flags.expected_loss_percent) options.set_expected_loss(*flags.expected_loss_percent / 100);
  if (!flags.min_rate.empty()) {
    const auto rate_bps = rate_option("--min-rate", flags.min_rate);
    if (!rate_bps) return rate_bps.error();
    options.set_min_rate_bps(*rate_bps);
  }
  if (!flags.deadline.empty()) {
    const auto when_ns = parse_when(flags.deadline, unix_now_ns());
    if (!when_ns) return Error{ErrorCode::kUsage, "--deadline: " + when_ns.error().message};
    options.set_deadline_unix_ns(*when_ns);
    options.set_deadline_policy(flags.deadline_policy);
  } else if (!flags.deadline_policy.empty()) {
    return Error{ErrorCode::kUsage, "--deadline-policy: of what deadline? Give --deadline as well"};
  }
  if (flags.chunk_bytes == "auto") {
    options.set_chunk_auto(true);
  } else if (!flags.chunk_bytes.empty()) {
    const auto bytes = config::parse_size(flags.chunk_bytes);
    if (!bytes) return Error{ErrorCode::kUsage, "--chunk-bytes: " + bytes.error().message};
    if (*bytes == 0 || *bytes > UINT16_MAX) {
      return Error{ErrorCode::kUsage, "--chunk-bytes: " + flags.chunk_bytes + " does not fit a datagram"};
    }
    options.set_chunk_bytes(static_cast<uint32_t>(*bytes));
  }
  return {};
}

// Cancels the session on Ctrl-C, also when Ctrl-C came before the session had an id.
class Canceller {
 public:
  explicit Canceller(Environment& environment) : environment_(environment) {}

  void on_interrupt() {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    if (!id_.empty()) cancel();
  }
  void started(Client& client, const std::string& id) {
    const std::lock_guard lock(mutex_);
    client_ = &client;
    id_ = id;
    if (interrupted_) cancel();
  }

 private:
  void cancel() {
    environment_.err << (environment_.err_is_terminal ? "\r\x1b[K" : "") << "sluice: cancelling session "
                     << printable(id_) << "; Ctrl-C again leaves at once\n"
                     << std::flush;
    const auto cancelled = client_->cancel(id_);
    if (!cancelled) {
      environment_.err << "sluice: cannot cancel session " << printable(id_) << ": "
                       << printable(cancelled.error().message) << "\n"
                       << std::flush;
    }
  }

  Environment& environment_;
  std::mutex mutex_;
  bool interrupted_ = false;
  Client* client_ = nullptr;
  std::string id_;
};

// `begin` asks for the session and gives its id.
template <typename Begin>
Result<int> transfer(const Context& context, const TransferFlags& flags, Begin begin) {
  Canceller canceller(context.environment);
  // Before the client, whose threads shall not take the signals.
  const Interrupt interrupt([&canceller] { canceller.on_interrupt(); },
                            static_cast<int>(ErrorCode::kCancelled));
  auto client = Client::connect(context.node_directory());
  if (!client) return client.error();
  const Result<std::string> id = begin(**client);
  if (!id) return id.error();
  canceller.started(**client, *id);
  if (flags.detach) {
    const auto session = (*client)->show(*id);
    if (!session) return session.error();
    context.print(session_json(*session), printable(*id) + "\n");
    return 0;
  }
  FollowOptions options;
  options.quiet = flags.quiet;
  return follow_session(context, **client, *id, options);
}

Result<int> send(const Context& context, const TransferFlags& flags) {
  auto request = send_request(flags.paths, context.environment.working_directory);
  if (!request) return request.error();
  if (auto ok = set_options(flags, *request->mutable_options()); !ok) return ok.error();
  return transfer(context, flags, [&](Client& client) { return client.send(*request); });
}

Result<int> get(const Context& context, const TransferFlags& flags) {
  auto request = get_request(flags.paths, context.environment.working_directory);
  if (!request) return request.error();
  std::error_code ignored;
  if (!request->destination().ends_with('/') &&
      std::filesystem::is_directory(request->destination(), ignored)) {
    request->set_destination(request->destination() + "/");
  }
  if (auto ok = set_options(flags, *request->mutable_options()); !ok) return ok.error();
  return transfer(context, flags, [&](Client& client) { return client.get(*request); });
}

void add_command(CLI::App& app, Context& context, const std::string& name, const std::string& about,
                 const std::string& paths, Result<int> (*work)(const Context&, const TransferFlags&)) {
  auto flags = std::make_shared<TransferFlags>();
  CLI::App* command = app.add_subcommand(name, about);
  command->add_option("paths", flags->paths, paths)->required()->type_name("");
  add_flags(*command, *flags);
  command->callback([&context, flags, work] {
    context.action = [&context, flags, work] { return work(context, *flags); };
  });
}

}  // namespace

void add_transfer_commands(CLI::App& app, Context& context) {
  add_command(
      app, context, "send", "Send files to another node",
      "SRC... NODE:PATH; a source is a local file, or memory:SIZE for generated bytes; the path null: "
      "discards",
      send);
  add_command(app, context, "get", "Get files from another node",
              "NODE:SRC... PATH; all sources on one node; the path null: discards", get);
}

}  // namespace sluice::cli
