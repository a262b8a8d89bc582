// sluice run.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "control/identity/trust.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/counted.h"
#include "dataplane/base/read_rest.h"
#include "tools/cli/app.h"
#include "tools/cli/canceller.h"
#include "tools/cli/connect.h"
#include "tools/cli/format.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/run_again.h"
#include "tools/cli/run_file.h"
#include "tools/cli/run_memory.h"
#include "tools/cli/runner.h"

namespace sluice::cli {
namespace {

struct RunFlags {
  std::string file;
  bool check = false;
  bool reference = false;
  bool quiet = false;
};

Result<std::string> read_text(const Environment& environment, const std::string& name) {
  const std::filesystem::path path = environment.working_directory / name;
  std::ifstream file;
  if (!is_standard(name)) file.open(path, std::ios::binary);
  std::istream& in = is_standard(name) ? environment.in : file;
  const bool opened = !in.fail();
  std::string text = base::read_rest(in);  // a directory opens, and fails here
  if (!opened || in.bad()) {
    return Error{ErrorCode::kConfiguration,
                 fmt::format("{}: cannot be read: {}", printable(path.string()), std::strerror(errno))};
  }
  return text;
}

// One run of the file, or all of them.
class Rounds {
 public:
  Rounds(const Context& context, const std::filesystem::path& origin, const RunFile& file, bool quiet,
         Canceller& canceller, Gate& gate)
      : context_(context), origin_(origin), file_(file), quiet_(quiet), canceller_(canceller), gate_(gate) {}

  Result<int> run() {
    (void)gate_.wait_not_before();
    while (true) {
      const auto began = std::chrono::steady_clock::now();
      const Result<int> code = run_once();
      const auto took = std::chrono::steady_clock::now() - began;
      if (file_.times.every_ns == 0 || canceller_.interrupted()) return code;
      if (!code)
        context_.environment.err << "sluice: " << printable(code.error().message) << "\n" << std::flush;
      const int64_t took_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
      // One that takes longer leaves turns out.
      if (!canceller_.wait(std::chrono::nanoseconds(file_.times.every_ns - took_ns % file_.times.every_ns)))
        return code;
    }
  }

 private:
  Result<int> run_once() {
    auto connected = connect_to_node(context_.node_directory());
    if (!connected) return connected.error();
    const std::shared_ptr<api::Client> client = std::move(*connected);
    const auto memory = std::make_shared<RunMemory>(context_, origin_, file_);
    if (Status status = memory->usable(); !status) return status.error();
    gate_.use(client, memory);
    Runner runner(context_, client, canceller_, *memory, quiet_);
    Transfers all;
    for (const RunTransfer& transfer : file_.transfers) all.push_back(&transfer);
    if (file_.together) {
      run_all(runner, all);
    } else {
      for (const RunTransfer* const one : all) {
        run_all(runner, {one});
        if (runner.exit_code() != 0) break;  // the next may build on it
      }
    }
    if (context_.json) context_.print(runner.json(), "");
    return runner.exit_code();
  }

  // With what is tried again.
  void run_all(Runner& runner, Transfers left) {
    for (uint32_t failures = 0;;) {
      for (const RunTransfer* const transfer : left) {
        if (canceller_.interrupted() || !gate_.wait_until_open()) {
          runner.not_begun(*transfer);
        } else {
          runner.begin(*transfer);
        }
      }
      runner.follow();
      if (failures >= file_.times.retry || canceller_.interrupted()) return;
      Runner::Failed failed = runner.take_failed(left);
      left = std::move(failed.transfers);
      if (left.empty()) return;
      const int64_t wait_ns = waits_.after_ns(++failures);
      context_.environment.err << fmt::format("sluice: {} failed ({}); tried again in {} s (try {} of {})\n",
                                              base::counted(left.size(), "transfer", "transfers"),
                                              failed.kinds, wait_ns / unattended::kOneSecondNs, failures + 1,
                                              file_.times.retry + 1)
                               << std::flush;
      (void)canceller_.wait(std::chrono::nanoseconds(wait_ns));
      if (auto anew = connect_to_node(context_.node_directory())) {
        const std::shared_ptr<api::Client> client = std::move(*anew);
        gate_.use(client);
        runner.use(client);
      }
    }
  }

  const Context& context_;
  const std::filesystem::path& origin_;
  const RunFile& file_;
  const bool quiet_;
  Canceller& canceller_;
  Gate& gate_;
  const unattended::Waits waits_;
};

Result<int> run_all(const Context& context, const std::filesystem::path& origin, const RunFile& file,
                    bool quiet) {
  Canceller canceller(context.environment);
  // Before the client, whose threads shall not take the signals.
  const Interrupt interrupt([&canceller] { canceller.on_interrupt(); },
                            static_cast<int>(ErrorCode::kCancelled));
  Gate gate(context.environment, file.times, canceller);
  return Rounds(context, origin, file, quiet, canceller, gate).run();
}

const std::string& peer_of(const api::TransferRequest& request) {
  const auto* const send = std::get_if<api::SendRequest>(&request);
  return send != nullptr ? send->peer() : std::get<api::GetRequest>(request).peer();
}

// A name that no peer of this node has. Where the node's files cannot be read here, the node says so itself.
Status check_peers(const Context& context, const RunFile& file) {
  const auto directory = context.existing_node_directory();
  if (!directory) return {};
  const auto node = config::load(*directory);
  if (!node) return {};
  for (const RunTransfer& transfer : file.transfers) {
    const auto request =
        transfer_request(transfer.direction, transfer.flags, context.environment.working_directory, nullptr);
    if (!request) continue;
    const auto peer = identity::find_peer(*node, peer_of(*request));
    if (peer || peer.error().code != ErrorCode::kPeerUntrusted) continue;
    const size_t at = transfer.direction == Direction::kSend ? transfer.places.paths.size() - 1 : 0;
    return Error{ErrorCode::kPeerUntrusted, transfer.places.paths[at] + ": " + peer.error().message};
  }
  return {};
}

Result<int> run_file(const Context& context, const RunFlags& flags) {
  if (flags.reference) {
    const std::string markdown = run_file_reference();
    context.print({{"schema", "sluice.reference.v1"}, {"markdown", markdown}}, markdown);
    return 0;
  }
  if (flags.file.empty())
    return Error{ErrorCode::kUsage, "no FILE given; --reference tells what stands in one"};
  const std::filesystem::path path = context.environment.working_directory / flags.file;
  const auto text = read_text(context.environment, flags.file);
  if (!text) return text.error();
  const auto file = parse_run_file(*text, flags.file);
  if (!file) return file.error();
  // What is wrong with any of them is told before the first begins.
  for (const RunTransfer& transfer : file->transfers) {
    const auto request =
        transfer_request(transfer.direction, transfer.flags, context.environment.working_directory, nullptr);
    if (request) continue;
    const std::string place = place_of(transfer, request.error(), context.environment.working_directory);
    return Error{ErrorCode::kConfiguration, place + ": " + request.error().message};
  }
  if (const Status known = check_peers(context, *file); !known) return known.error();
  if (!flags.check) return run_all(context, path, *file, flags.quiet);
  std::string commands;
  api::Json list = api::Json::array();
  for (const RunTransfer& transfer : file->transfers) {
    commands += transfer.command + "\n";
    list.push_back(transfer.command);
  }
  context.print({{"schema", "sluice.run_check.v1"}, {"commands", list}}, commands);
  return 0;
}

}  // namespace

void add_run_command(CLI::App& app, Context& context) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("run", "Run the transfers that a file describes");
  command->add_option("file", flags->file, "TOML; - is the standard input; see --reference")
      ->type_name("FILE");
  command->add_flag("--check", flags->check, "Only check it, and print the commands that it stands for");
  command->add_flag("--reference", flags->reference, "Print the reference of its keys");
  command->add_flag("-q,--quiet", flags->quiet, "Show no progress");
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return run_file(context, *flags); }; });
}

}  // namespace sluice::cli
