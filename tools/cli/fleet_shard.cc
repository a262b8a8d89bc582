// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/fleet_shard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ostream>
#include <thread>

#include "control/proto/session_state.h"
#include "dataplane/base/counted.h"
#include "tools/cli/connect.h"
#include "tools/cli/fleet_found.h"
#include "tools/cli/follow.h"
#include "tools/cli/format.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/names_format.h"
#include "tools/cli/receipt.h"
#include "tools/fleet/programs.h"

namespace sluice::cli {
namespace {

constexpr int64_t kWriteEveryNs = 1'000'000'000;
constexpr auto kAskAgainAfter = std::chrono::milliseconds(500);
constexpr int kRestartsOfOurOwn = 3;
// Errors that another node, or another hour, may not have.
constexpr ErrorCode kTransient[] = {ErrorCode::kDaemonNotRunning, ErrorCode::kPeerUnreachable,
                                    ErrorCode::kStalled, ErrorCode::kResources};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string job_name() {
  const std::string array = variable("SLURM_ARRAY_JOB_ID");
  const std::string task = variable("SLURM_ARRAY_TASK_ID");
  return array.empty() || task.empty() ? variable("SLURM_JOB_ID") : array + "_" + task;
}

uint64_t restarts() { return std::strtoull(variable("SLURM_RESTART_COUNT").c_str(), nullptr, 10); }

// Has Slurm run it again, maybe elsewhere: only what time may mend, and not for ever.
void requeue(const Context& context, const std::string& job, int exit_code) {
  const bool transient =
      std::ranges::find(kTransient, static_cast<ErrorCode>(exit_code)) != std::end(kTransient);
  if (job.empty() || !transient || restarts() >= kRestartsOfOurOwn) return;
  const auto ran = fleet::run_program({"scontrol", "requeue", job}, fleet::kSlurmLimitS);
  if (ran && ran->exit_code == 0) return;
  context.environment.err << "sluice: job " << printable(job)
                          << " could not be requeued: " << printable(ran ? ran->err : ran.error().message)
                          << "\n"
                          << std::flush;
}

}  // namespace

// ---- the node ------------------------------------------------------------------------------------

template <typename Call>
auto ShardRun::patiently(Call call) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(patience_s_);
  for (;;) {
    auto result = call();
    const bool away = !result && result.error().code == ErrorCode::kDaemonNotRunning;
    if (!away || canceller_.interrupted() || std::chrono::steady_clock::now() >= end) return result;
    std::this_thread::sleep_for(kAskAgainAfter);
    (void)connect();
  }
}

Status ShardRun::connect() {
  auto connected = connect_to_node(context_.node_directory());
  if (!connected) return connected.error();
  client_ = std::move(*connected);
  return {};
}

Status ShardRun::check_node() {
  const auto node = patiently([this]() -> Result<api::NodeReply> {
    if (client_ == nullptr) {
      if (Status status = connect(); !status) return status.error();
    }
    return client_->node();
  });
  if (!node) return node.error();
  try_.node = node->name();
  const auto& places = plan_.here();
  if (std::ranges::any_of(places, [&node](const fleet::Place& place) { return place.node == node->name(); }))
    return {};
  std::string names;
  for (const fleet::Place& place : places) names += (names.empty() ? "" : ", ") + place.node;
  return Error{ErrorCode::kConfiguration,
               fmt::format("the node of this host is {}; the plan's shards run at {}. Submit to their hosts "
                           "(--sbatch=--partition=...), "
                           "and plan with --node-dir where a host's node is not in /etc/sluice",
                           printable(node->name()), printable(names))};
}

// ---- one shard -----------------------------------------------------------------------------------

Result<std::vector<RunTransfer>> ShardRun::transfers() const {
  if (try_.shard == 0 && plan_.last_sessions == 0 && plan_.cut_files == 0)
    return std::vector<RunTransfer>();  // no directories
  const std::filesystem::path path = directory_ / (fleet::shard_name(try_.shard) + ".toml");
  const auto text = fleet::read_file(path);
  if (!text) return text.error();
  auto file = parse_run_file(*text, path.string());
  if (!file) return file.error();
  return std::move(file->transfers);
}

Result<int> ShardRun::perform(uint32_t shard, uint64_t epoch) {
  const Result<std::string> lease = fleet::lease_name(directory_, shard);
  if (!lease) return lease.error();
  lease_ = fmt::format("{}:{}", *lease, epoch);
  former_ = fleet::load_tries_of(directory_, shard);
  if (const fleet::Try* const best = fleet::latest(former_);
      best != nullptr && best->state == fleet::Try::State::kSucceeded) {
    context_.print(
        {{"schema", "sluice.fleet_shard.v1"}, {"shard", shard}, {"state", "succeeded"}, {"exit_code", 0}},
        fleet::shard_name(shard) + " has succeeded already\n");
    return 0;
  }
  try_.shard = shard;
  try_.epoch = epoch;
  try_.host = host_name();
  try_.job = job_name();
  try_.began_unix_ns = unix_now_ns();
  if (shard != 0) {
    try_.names_total = plan_.shards[shard - 1].names;
    try_.bytes_total = plan_.shards[shard - 1].bytes;
  }
  if (Status status = write(); !status) return status.error();
  Status status = check_node();
  if (status) status = shard == 0 ? run_last() : run_shard();
  if (!status) fail(status.error());
  if (try_.exit_code == 0)
    try_.state = fleet::Try::State::kSucceeded;
  else if (canceller_.interrupted())
    try_.state = fleet::Try::State::kCancelled;
  else
    try_.state = fleet::Try::State::kFailed;
  try_.rate_bps = 0;
  try_.waiting_for.clear();
  if (Status written = write(); !written) return written.error();
  const std::string names =
      shard == 0 ? base::counted(try_.names_done(), "name")
                 : fmt::format("{} of {}", try_.names_done(), base::counted(try_.names_total, "name"));
  context_.print(try_json(try_), fmt::format("{} {}: {}, {}\n", fleet::shard_name(shard),
                                             state_word(try_.state), names, format_bytes(try_.bytes_done())));
  if (try_.state == fleet::Try::State::kFailed) requeue(context_, try_.job, try_.exit_code);
  return try_.exit_code;
}

Status ShardRun::run_shard() {
  const auto all = transfers();
  if (!all) return all.error();
  uint32_t number = 0;
  for (const RunTransfer& each : *all) {
    ++number;
    if (canceller_.interrupted()) return Error{ErrorCode::kCancelled, "interrupted"};
    auto request = transfer_request(each.direction, each.flags, directory_, nullptr);
    if (!request) return request.error();
    if (Status status = run_session(number, std::move(*request), cut_name(each)); !status) return status;
  }
  return {};
}

std::string ShardRun::cut_name(const RunTransfer& transfer) const {
  if (transfer.flags.part.empty()) return "";
  const fleet::Place& peer = plan_.other_side(try_.shard);
  const std::string begin =
      plan_.at == fleet::Side::kFrom ? plan_.here().front().path + "/" : peer.node + ":" + peer.path + "/";
  const std::string& path = transfer.flags.paths.front();
  return path.starts_with(begin) ? path.substr(begin.size()) : "";
}

// One that an earlier try has begun at this node, and that still runs or has succeeded.
Result<api::Session> ShardRun::find_former(uint32_t number) {
  for (auto one = former_.rbegin(); one != former_.rend(); ++one) {
    if (one->node != try_.node || one->epoch >= try_.epoch || one->sessions.size() < number) continue;
    const std::string& id = one->sessions[number - 1].id;
    if (id.empty()) continue;
    auto session = client_->show(id);
    if (!session) continue;
    if (!api::stands_still(*session) || exit_code_of(*session) == 0) return session;
  }
  return Error{ErrorCode::kUsage, "there is none"};
}

Status ShardRun::run_session(uint32_t number, api::TransferRequest request, const std::string& cut) {
  try_.sessions.emplace_back();
  range_ = !cut.empty() && try_.shard != 0;
  if (!cut.empty() && try_.epoch > 1) {  // an earlier try may have given it its name
    const FoundNames found = find_names(*client_, plan_, plan_.other_side(try_.shard), {cut});
    if (found.missing.empty()) return write();
  }
  const auto former = find_former(number);
  std::string id = former ? former->id() : "";
  if (former) {
    try_.notes.push_back(fmt::format("session {} of an earlier try goes on", id));
  } else {
    options_of(request).set_lease(lease_);
    auto& names = *options_of(request).mutable_names();
    if (!former_.empty() && !names.empty()) {
      FoundNames found =
          find_names(*client_, plan_, plan_.other_side(try_.shard), {names.begin(), names.end()});
      try_.names_found += found.found;
      try_.bytes_found += found.found_bytes;
      names.Clear();
      for (std::string& each : found.missing) *names.Add() = std::move(each);
      if (names.empty()) return write();  // a list without a name would mean all of the dataset
    }
    const Result<std::string> begun = patiently([&] { return client_->begin(request); });
    if (!begun) return begun.error();
    id = *begun;
  }
  try_.sessions.back().id = id;
  canceller_.started(client_, id);
  if (Status status = write(); !status) return status;
  const auto session = follow(id);
  canceller_.ended(id);
  if (!session) return session.error();
  return note_end(number, *session);
}

Result<api::Session> ShardRun::follow(const std::string& id) {
  return patiently([this, &id] {
    return client_->watch(id, std::nullopt, [this](const api::Session& session) {
      progress(session);
      return true;
    });
  });
}

void ShardRun::progress(const api::Session& session) {
  fleet::TrySession& one = try_.sessions.back();
  one.state = api::state_name(session);
  one.bytes = session.bytes_total();
  one.bytes_done = session.bytes_done();
  one.bytes_sent = session.bytes_sent() + session.bytes_resent();
  one.names_done = session.names().done();
  try_.rate_bps = session.has_rate_bps() ? session.rate_bps() : 0;
  try_.waiting_for = session.waiting_for();
  if (!session.bottleneck().cause().empty()) try_.verdict = session.bottleneck().cause();
  if (unix_now_ns() - written_ns_ >= kWriteEveryNs) (void)write();  // the next one tells
}

Status ShardRun::note_end(uint32_t number, const api::Session& session) {
  progress(session);
  try_.names_failed += session.names().failed();
  for (const api::MissingName& name : session.names().missing())
    try_.failed.emplace_back(escaped(name.path()), name.reason());
  keep_digests(number, session);
  const int code = exit_code_of(session);
  if (code == 0) {
    keep_receipt(number, session);
    return write();
  }
  tell_failure(context_.environment, session);
  const std::string reason = session.error().empty() ? api::state_name(session) : session.error();
  const Error error{static_cast<ErrorCode>(code), reason};
  // The other sessions of the shard do not depend on a name that is missing.
  if (error.code != ErrorCode::kPartial) return error;
  fail(error);
  return write();
}

void ShardRun::keep_digests(uint32_t number, const api::Session& session) const {
  if (range_) return;  // the file has one when it is finished
  std::string text;
  for (const api::FileProgress& file : session.files()) {
    if (!file.done() || file.digest_destination().empty()) continue;
    text += fmt::format("{}:{} {} {} {}\n", session.crc(), file.digest_destination(), file.size(),
                        file.names(), escaped(file.destination()));
  }
  if (text.empty()) return;
  (void)fleet::write_file(
      directory_ / "digests" / fmt::format("{}.{}-{}.txt", fleet::shard_name(try_.shard), try_.epoch, number),
      text);
}

// A user who may not read the node's key gets none.
void ShardRun::keep_receipt(uint32_t number, const api::Session& session) {
  const Result<api::Json> receipt = make_receipt(context_.node_directory(), session);
  if (!receipt) {
    try_.notes.push_back("no receipt: " + receipt.error().message);
    return;
  }
  const auto file = directory_ / "receipts" /
                    fmt::format("{}.{}-{}.json", fleet::shard_name(try_.shard), try_.epoch, number);
  (void)fleet::write_file(file, api::to_line(*receipt));
}

void ShardRun::fail(const Error& error) {
  if (try_.exit_code != 0) return;  // the first decides
  try_.exit_code = static_cast<int>(error.code);
  try_.error = error.message;
  context_.environment.err << "sluice: " << printable(fleet::shard_name(try_.shard) + ": " + error.message)
                           << "\n"
                           << std::flush;
}

Status ShardRun::write() {
  try_.updated_unix_ns = written_ns_ = unix_now_ns();
  return fleet::write_try(directory_, try_);
}

Result<int> run_fleet_shard(const Context& context, const FleetShardFlags& flags) {
  const std::filesystem::path directory = fleet_directory(context, flags.dataset);
  const auto plan = fleet::load_plan(directory);
  if (!plan) return plan.error();
  const auto shard = fleet::parse_shard(*plan, flags.shard);
  if (!shard) return shard.error();
  Canceller canceller(context.environment);
  const Interrupt interrupt([&canceller] { canceller.on_interrupt(); },
                            static_cast<int>(ErrorCode::kCancelled));
  ShardRun run(context, *plan, directory, flags.patience_s, canceller);
  return run.perform(*shard, fleet::epoch_of(flags.retry, restarts()));
}

}  // namespace sluice::cli
