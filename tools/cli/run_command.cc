// sluice run.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <ostream>

#include "tools/cli/app.h"
#include "tools/cli/canceller.h"
#include "tools/cli/client.h"
#include "tools/cli/follow.h"
#include "tools/cli/format.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/progress.h"
#include "tools/cli/run_file.h"

namespace sluice::cli {
namespace {

struct RunFlags {
  std::string file;
  bool check = false;
  bool reference = false;
  bool quiet = false;
};

struct Begun {
  const RunTransfer* transfer = nullptr;
  std::string id;
};

Result<std::string> read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  (void)in.peek();  // a directory opens, and fails here
  if (!in.is_open() || in.bad()) {
    return Error{ErrorCode::kConfiguration,
                 fmt::format("{}: cannot be read: {}", printable(path.string()), std::strerror(errno))};
  }
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

// Begins transfers and follows them, each to its end.
class Runner {
 public:
  Runner(const Context& context, Client& client, Canceller& canceller, bool quiet)
      : context_(context), client_(client), canceller_(canceller), quiet_(quiet) {}

  Status begin(const RunTransfer& transfer, const TransferRequest& request) {
    const Result<std::string> id = client_.begin(request);
    if (!id) return Error{id.error().code, transfer.place + ": " + id.error().message};
    canceller_.started(client_, *id);
    under_way_.push_back({&transfer, *id});
    return {};
  }
  // All that were begun. What became of one does not keep the others from their end.
  Status follow() {
    for (const Begun& each : std::exchange(under_way_, {})) {
      FollowOptions options;
      options.quiet = quiet_;
      const auto session = watch_session(context_.environment, client_, each.id, options);
      if (!session) return session.error();
      canceller_.ended(each.id);
      report(*each.transfer, *session);
    }
    return {};
  }
  int exit_code() const { return exit_code_; }
  Json json() const { return {{"schema", "sluice.run.v1"}, {"sessions", sessions_}}; }

 private:
  void report(const RunTransfer& transfer, const api::Session& session) {
    sessions_.push_back(session_json(session));
    if (exit_code_ == 0) exit_code_ = exit_code_of(session);
    if (session.state() == api::Session::SUCCEEDED && !context_.json)
      context_.environment.out << summary_text(session) << std::flush;
    tell_failure(context_.environment, session, transfer.place + ": ");
  }

  const Context& context_;
  Client& client_;
  Canceller& canceller_;
  const bool quiet_;
  std::vector<Begun> under_way_;
  Json sessions_ = Json::array();
  int exit_code_ = 0;
};

Result<int> run_all(const Context& context, const RunFile& file, const std::vector<TransferRequest>& requests,
                    bool quiet) {
  Canceller canceller(context.environment);
  // Before the client, whose threads shall not take the signals.
  const Interrupt interrupt([&canceller] { canceller.on_interrupt(); },
                            static_cast<int>(ErrorCode::kCancelled));
  auto client = Client::connect(context.node_directory());
  if (!client) return client.error();
  Runner runner(context, **client, canceller, quiet);
  Status begun;
  for (size_t i = 0; begun && i < requests.size() && !canceller.interrupted(); ++i) {
    begun = runner.begin(file.transfers[i], requests[i]);
    if (file.together || !begun) continue;
    if (const Status followed = runner.follow(); !followed) return followed.error();
    if (runner.exit_code() != 0) break;  // the next may build on it
  }
  if (const Status followed = runner.follow(); !followed) return followed.error();
  if (!begun) return begun.error();
  if (context.json) context.print(runner.json(), "");
  return runner.exit_code();
}

Result<int> run_file(const Context& context, const RunFlags& flags) {
  if (flags.reference) {
    context.environment.out << run_file_reference();
    return 0;
  }
  if (flags.file.empty())
    return Error{ErrorCode::kUsage, "no FILE given; --reference tells what stands in one"};
  const std::filesystem::path path = context.environment.working_directory / flags.file;
  const auto text = read_text(path);
  if (!text) return text.error();
  const auto file = parse_run_file(*text, flags.file);
  if (!file) return file.error();
  std::vector<TransferRequest> requests;
  for (const RunTransfer& transfer : file->transfers) {
    auto request =
        transfer_request(transfer.direction, transfer.flags, context.environment.working_directory);
    if (!request) return Error{ErrorCode::kConfiguration, transfer.place + ": " + request.error().message};
    requests.push_back(std::move(*request));
  }
  if (!flags.check) return run_all(context, *file, requests, flags.quiet);
  std::string commands;
  Json list = Json::array();
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
  command->add_option("file", flags->file, "TOML; see --reference")->type_name("FILE");
  command->add_flag("--check", flags->check, "Only check it, and print the commands that it stands for");
  command->add_flag("--reference", flags->reference, "Print the reference of its keys");
  command->add_flag("-q,--quiet", flags->quiet, "Show no progress");
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return run_file(context, *flags); }; });
}

}  // namespace sluice::cli
