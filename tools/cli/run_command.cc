// sluice run.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "control/identity/trust.h"
#include "control/proto/session_state.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/counted.h"
#include "tools/cli/app.h"
#include "tools/cli/canceller.h"
#include "tools/cli/connect.h"
#include "tools/cli/dry_run.h"
#include "tools/cli/follow.h"
#include "tools/cli/format.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/local_files.h"
#include "tools/cli/progress.h"
#include "tools/cli/remote_patterns.h"
#include "tools/cli/run_again.h"
#include "tools/cli/run_file.h"
#include "tools/cli/sync.h"
#include "tools/cli/teller.h"
#include "tools/cli/transfer_lists.h"
#include "tools/cli/tree_name.h"

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

Result<std::string> read_text(const Environment& environment, const std::string& name) {
  const std::filesystem::path path = environment.working_directory / name;
  std::ifstream file;
  if (!is_standard(name)) file.open(path, std::ios::binary);
  std::istream& in = is_standard(name) ? environment.in : file;
  (void)in.peek();  // a directory opens, and fails here
  if (in.bad() || in.fail()) {
    return Error{ErrorCode::kConfiguration,
                 fmt::format("{}: cannot be read: {}", printable(path.string()), std::strerror(errno))};
  }
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

// So many are under way at a time: what a node remembers of sessions that ended, and lets wait, is limited.
constexpr size_t kUnderWayMax = 64;

using Transfers = std::vector<const RunTransfer*>;

// Begins transfers and follows them, each to its end.
class Runner {
 public:
  Runner(const Context& context, std::shared_ptr<api::Client> client, Canceller& canceller, bool quiet)
      : context_(context), client_(std::move(client)), canceller_(canceller), quiet_(quiet) {}

  // Its options count from now on: a deadline of "30m" begins with it.
  void begin(const RunTransfer& transfer) {
    if (under_way_.size() >= kUnderWayMax) follow_next();
    if (transfer.flags.sync) return sync(transfer);
    if (transfer.flags.dry_run) return preview(transfer);
    const Result<std::string> id = ask(transfer);
    if (!id) return fail(transfer, id.error());
    canceller_.started(client_, *id);
    under_way_.push_back({&transfer, *id});
  }
  // All that were begun. What became of one does not keep the others from their end.
  void follow() {
    while (!under_way_.empty()) follow_next();
  }
  void not_begun(const RunTransfer& transfer) {
    fail(transfer, {ErrorCode::kCancelled, "was not begun, since the command was interrupted"});
  }
  // Of these, what failed and may end otherwise later: from now on it counts as not yet run.
  Transfers take_failed(const Transfers& of) {
    Transfers again;
    for (const RunTransfer* const transfer : of) {
      const auto failed = failed_.find(transfer);
      if (failed == failed_.end() || settled_.contains(transfer) ||
          !worth_another_try(static_cast<ErrorCode>(failed->second)))
        continue;
      again.push_back(transfer);
      failed_.erase(failed);
    }
    return again;
  }
  // A node that was restarted meanwhile has another connection.
  void use(std::shared_ptr<api::Client> client) { client_ = std::move(client); }

  int exit_code() const { return failed_.empty() ? 0 : failed_.begin()->second; }
  api::Json json() const {
    return {{"schema", "sluice.run.v1"},
            {"sessions", sessions_},
            {"previews", previews_},
            {"syncs", syncs_},
            {"errors", errors_}};
  }

 private:
  // From its beginning to its end: what it sends last depends on what it sent first.
  void sync(const RunTransfer& transfer) {
    auto request =
        transfer_request(transfer.direction, transfer.flags, context_.environment.working_directory, nullptr);
    if (!request) return fail(transfer, request.error());
    TransferFlags flags = transfer.flags;
    flags.quiet = quiet_;
    const auto outcome = sync_directory(context_.environment, client_, canceller_, flags, *request);
    if (!outcome) return fail(transfer, outcome.error());
    syncs_.push_back(outcome->object);
    for (const api::Session& session : outcome->ended) notify(transfer, session);
    if (!context_.json) context_.environment.out << outcome->text << std::flush;
    note(transfer, outcome->exit_code);
  }
  void preview(const RunTransfer& transfer) {
    const Result<api::TransferRequest> request = request_of(transfer);
    if (!request) return fail(transfer, request.error());
    std::ostringstream object;
    Environment collecting{object, context_.environment.err};
    Context with_json{.environment = collecting, .json = true};
    const Result<int> code = dry_run(context_.json ? with_json : context_, *client_, *request);
    if (!code) return fail(transfer, code.error());
    if (context_.json) previews_.push_back(api::Json::parse(object.str(), nullptr, false));
    const bool lacks_some = *code == 0 && !left_out_[&transfer].empty();
    note(transfer, lacks_some ? static_cast<int>(ErrorCode::kPartial) : *code);
  }
  Result<api::TransferRequest> request_of(const RunTransfer& transfer) {
    const auto node = client_->node();
    if (!node) return node.error();
    const auto knows = [&node](const std::string& name) { return api::knows_peer(*node, name); };
    auto request = transfer_request(transfer.direction, transfer.flags,
                                    context_.environment.working_directory, nullptr, knows);
    if (!request) return request.error();
    auto left_out = replace_patterns(*client_, transfer.flags, *request, context_.environment.err);
    if (!left_out) return left_out.error();
    left_out_[&transfer] = std::move(*left_out);
    name_tree(*client_, &*request);
    return request;
  }
  // A session of an earlier try that is there yet goes on: what has arrived is not sent again.
  Result<std::string> ask(const RunTransfer& transfer) {
    if (const auto held = held_.find(&transfer); held != held_.end()) {
      const std::string id = held->second;
      held_.erase(held);
      const auto session = client_->show(id);
      if (!session && session.error().code != ErrorCode::kUsage) {
        held_[&transfer] = id;
        return session.error();
      }
      if (session && !api::has_ended(*session)) {
        if (!api::stands_still(*session)) return id;
        const auto continued = client_->go_on(id);
        return continued ? Result<std::string>(id) : Result<std::string>(continued.error());
      }
    }
    Result<api::TransferRequest> request = request_of(transfer);
    if (!request) return request.error();
    auto lists = TransferLists::of(transfer.flags, context_, nullptr, &*request);
    if (!lists) return lists.error();
    if (Status names = lists->check_names(context_, *client_, *request); !names) return names.error();
    lists_.insert_or_assign(&transfer, std::move(*lists));
    return begin_transfer(context_, *client_, *request);
  }
  void follow_next() {
    const Begun each = under_way_.front();
    under_way_.pop_front();
    FollowOptions options;
    options.quiet = quiet_;
    const auto session = watch_session(context_.environment, *client_, each.id, options);
    canceller_.ended(each.id);
    if (!session || !api::has_ended(*session)) held_[each.transfer] = each.id;
    if (!session) return fail(*each.transfer, session.error());
    api::Json object = api::session_json(*session);
    int exit_code = exit_code_of(*session);
    if (const auto lists = lists_.find(each.transfer);
        lists != lists_.end() && session->state() == api::Session::SUCCEEDED)
      exit_code = tell_lists(context_.environment, *client_, lists->second, *session, &object);
    exit_code = tell_left_out(left_out_[each.transfer], exit_code, &object);
    if (exit_code == static_cast<int>(ErrorCode::kPartial) && exit_code_of(*session) == 0)
      settled_.insert(each.transfer);
    sessions_.push_back(std::move(object));
    notify(*each.transfer, *session);
    note(*each.transfer, exit_code);
    if (session->state() == api::Session::SUCCEEDED && !context_.json)
      context_.environment.out << summary_text(*session) << std::flush;
    tell_failure(context_.environment, *session, each.transfer->place + ": ");
  }
  void notify(const RunTransfer& transfer, const api::Session& session) {
    notify_end(context_.environment, context_.node_directory(), transfer.flags.notify, session);
  }
  void note(const RunTransfer& transfer, int exit_code) {
    if (exit_code != 0) failed_[&transfer] = exit_code;
  }
  void fail(const RunTransfer& transfer, const Error& error) {
    const Error placed{error.code, transfer.place + ": " + error.message};
    errors_.push_back(api::error_json(placed));
    note(transfer, static_cast<int>(error.code));
    context_.environment.err << "sluice: " << printable(placed.message) << "\n" << std::flush;
  }

  const Context& context_;
  std::shared_ptr<api::Client> client_;
  Canceller& canceller_;
  const bool quiet_;
  std::deque<Begun> under_way_;
  std::map<const RunTransfer*, TransferLists> lists_;
  std::map<const RunTransfer*, int> failed_;  // with their exit codes, in the order of the file
  std::map<const RunTransfer*, std::vector<std::string>> left_out_;  // that fit a pattern of theirs
  std::set<const RunTransfer*> settled_;                             // another try would bring no more
  std::map<const RunTransfer*, std::string> held_;  // sessions of tries that are over, and that are not
  api::Json sessions_ = api::Json::array();
  api::Json previews_ = api::Json::array();
  api::Json syncs_ = api::Json::array();
  api::Json errors_ = api::Json::array();
};

// One run of the file, or all of them.
class Rounds {
 public:
  Rounds(const Context& context, const RunFile& file, bool quiet, Canceller& canceller, Gate& gate)
      : context_(context), file_(file), quiet_(quiet), canceller_(canceller), gate_(gate) {}

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
    gate_.use(client);
    Runner runner(context_, client, canceller_, quiet_);
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
      const int code = runner.exit_code();
      left = runner.take_failed(left);
      if (left.empty()) return;
      const int64_t wait_ns = waits_.after_ns(++failures);
      context_.environment.err << fmt::format("sluice: {} failed ({}); tried again in {} s (try {} of {})\n",
                                              base::counted(left.size(), "transfer", "transfers"),
                                              error_code_name(static_cast<ErrorCode>(code)),
                                              wait_ns / unattended::kOneSecondNs, failures + 1,
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
  const RunFile& file_;
  const bool quiet_;
  Canceller& canceller_;
  Gate& gate_;
  const unattended::Waits waits_;
};

Result<int> run_all(const Context& context, const RunFile& file, bool quiet) {
  Canceller canceller(context.environment);
  // Before the client, whose threads shall not take the signals.
  const Interrupt interrupt([&canceller] { canceller.on_interrupt(); },
                            static_cast<int>(ErrorCode::kCancelled));
  Gate gate(context.environment, file.times, canceller);
  return Rounds(context, file, quiet, canceller, gate).run();
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
    context.environment.out << run_file_reference();
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
  if (!flags.check) return run_all(context, *file, flags.quiet);
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
  command->add_option("file", flags->file, "TOML; - is the standard input; see --reference")->type_name("FILE");
  command->add_flag("--check", flags->check, "Only check it, and print the commands that it stands for");
  command->add_flag("--reference", flags->reference, "Print the reference of its keys");
  command->add_flag("-q,--quiet", flags->quiet, "Show no progress");
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return run_file(context, *flags); }; });
}

}  // namespace sluice::cli
