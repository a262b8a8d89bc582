// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet/status.h"

#include <algorithm>

namespace sluice::fleet {
namespace {

constexpr double kBits = 8;
constexpr double kSecondNs = 1e9;
constexpr size_t kFailedShown = 1000;

ShardState state_of(const Try* attempt, bool submitted, const TaskState* task) {
  if (attempt != nullptr && attempt->state == Try::State::kSucceeded) return ShardState::kSucceeded;
  const bool runs = task != nullptr && (task->state == "RUNNING" || task->state == "COMPLETING");
  if (task != nullptr && !runs) return ShardState::kWaiting;
  if (attempt == nullptr) return runs ? ShardState::kRunning : ShardState::kPlanned;
  if (attempt->state == Try::State::kRunning)
    return runs || !submitted || attempt->job.empty() ? ShardState::kRunning : ShardState::kLost;
  if (runs && task->state == "RUNNING") return ShardState::kRunning;  // the next try, before it says so
  return attempt->state == Try::State::kCancelled ? ShardState::kCancelled : ShardState::kFailed;
}

ShardStatus shard_status(uint32_t shard, const ShardTotals& totals, const std::vector<Try>* tries,
                         bool submitted, const TaskState* task, int64_t now_unix_ns) {
  ShardStatus status;
  status.shard = shard;
  const Try* const attempt = tries == nullptr ? nullptr : latest(*tries);
  status.state = state_of(attempt, submitted, task);
  if (task != nullptr) status.task = *task;
  status.bytes_total = totals.bytes;
  if (attempt == nullptr) return status;
  status.attempt = *attempt;
  const bool done = status.state == ShardState::kSucceeded;
  status.bytes_done = done ? totals.bytes : std::min(attempt->bytes_done(), totals.bytes);
  if (status.state != ShardState::kRunning || attempt->state != Try::State::kRunning) return status;
  status.rate_bps = attempt->rate_bps;
  status.silent_s = std::max(0.0, static_cast<double>(now_unix_ns - attempt->updated_unix_ns) / kSecondNs);
  if (status.rate_bps > 0)
    status.eta_s = static_cast<double>(totals.bytes - status.bytes_done) * kBits / status.rate_bps;
  return status;
}

void add_up(FleetStatus& all, const ShardStatus& one, const ShardTotals& totals,
            const std::vector<Try>* tries) {
  ++all.counts[one.state];
  all.bytes_done += one.bytes_done;
  all.rate_bps += one.rate_bps;
  if (one.state == ShardState::kSucceeded)
    all.names_done += totals.names;
  else if (one.attempt)
    all.names_done += std::min(one.attempt->names_done(), totals.names);
  if (one.attempt && one.state != ShardState::kSucceeded) all.names_failed += one.attempt->names_failed;
  if (tries == nullptr) return;
  for (const Try& each : *tries) all.bytes_sent += each.bytes_sent();
}

ShardState state_of_all(const FleetStatus& status) {
  const auto count = [&status](ShardState state) {
    const auto found = status.counts.find(state);
    return (found == status.counts.end() ? 0U : found->second) + (status.last.state == state ? 1U : 0U);
  };
  if (count(ShardState::kRunning) != 0) return ShardState::kRunning;
  // What comes last waits for ever where a shard failed; Slurm removes it then.
  if (count(ShardState::kWaiting) != 0) return ShardState::kWaiting;
  for (const ShardState state : {ShardState::kFailed, ShardState::kLost, ShardState::kCancelled}) {
    if (count(state) != 0) return state;
  }
  return status.last.state == ShardState::kSucceeded ? ShardState::kSucceeded : ShardState::kPlanned;
}

Json shard_json(const ShardStatus& one) {
  Json object = {{"shard", one.shard == 0 ? Json("last") : Json(one.shard)},
                 {"state", state_word(one.state)},
                 {"bytes", one.bytes_total},
                 {"bytes_done", one.bytes_done},
                 {"rate_bps", one.rate_bps}};
  if (one.eta_s) object["eta_s"] = *one.eta_s;
  if (!one.task.state.empty())
    object["slurm"] = {{"state", one.task.state}, {"node", one.task.node}, {"reason", one.task.reason}};
  if (!one.attempt) return object;
  object["try"] = try_json(*one.attempt);
  object["silent_s"] = one.silent_s;
  return object;
}

}  // namespace

std::string_view state_word(ShardState state) {
  constexpr std::string_view kWords[] = {"planned", "waiting",   "running", "succeeded",
                                         "failed",  "cancelled", "lost"};
  return kWords[static_cast<size_t>(state)];
}

int FleetStatus::exit_code() const {
  if (state == ShardState::kSucceeded) return 0;
  const auto code = [](const ShardStatus& one) {
    const bool failed = one.state == ShardState::kFailed || one.state == ShardState::kCancelled;
    return failed && one.attempt ? one.attempt->exit_code : 0;
  };
  for (const ShardStatus& one : shards) {
    if (code(one) != 0) return code(one);
  }
  if (code(last) != 0) return code(last);
  return static_cast<int>(state == ShardState::kCancelled ? ErrorCode::kCancelled : ErrorCode::kPartial);
}

FleetStatus status_of(const Plan& plan, const std::map<uint32_t, std::vector<Try>>& tries, const Jobs& jobs,
                      const std::optional<std::map<uint32_t, TaskState>>& queue, int64_t now_unix_ns) {
  FleetStatus all;
  all.dataset = plan.dataset;
  all.names_total = plan.names;
  all.bytes_total = plan.bytes;
  const bool submitted = queue && !jobs.jobs.empty();
  const auto one = [&](uint32_t shard, const ShardTotals& totals) {
    const auto found = tries.find(shard);
    const std::vector<Try>* const own = found == tries.end() ? nullptr : &found->second;
    const TaskState* task = nullptr;
    if (queue && queue->contains(shard)) task = &queue->at(shard);
    return std::pair(shard_status(shard, totals, own, submitted, task, now_unix_ns), own);
  };
  for (uint32_t shard = 1; shard <= plan.count(); ++shard) {
    const ShardTotals& totals = plan.shards[shard - 1];
    auto [status, own] = one(shard, totals);
    add_up(all, status, totals, own);
    all.shards.push_back(std::move(status));
  }
  all.last = one(0, {}).first;
  if (all.rate_bps > 0)
    all.eta_s = static_cast<double>(all.bytes_total - std::min(all.bytes_total, all.bytes_done)) * kBits /
                all.rate_bps;
  for (const ShardStatus& each : all.shards) {
    if (each.state != ShardState::kRunning || !each.attempt) continue;
    const bool slower =
        !all.slowest || each.eta_s.value_or(1e18) > all.shards[*all.slowest - 1].eta_s.value_or(1e18);
    if (slower) all.slowest = each.shard;
  }
  all.state = state_of_all(all);
  return all;
}

Json status_json(const FleetStatus& status) {
  Json counts = Json::object();
  for (const auto& [state, count] : status.counts) counts[std::string(state_word(state))] = count;
  Json shards = Json::array();
  Json failed = Json::array();
  for (const ShardStatus& one : status.shards) {
    shards.push_back(shard_json(one));
    if (!one.attempt || one.state == ShardState::kSucceeded) continue;
    for (const auto& [path, reason] : one.attempt->failed) {
      if (failed.size() < kFailedShown)
        failed.push_back({{"shard", one.shard}, {"path", path}, {"reason", reason}});
    }
  }
  Json object = {
      {"schema", "sluice.fleet_status.v1"},
      {"dataset", status.dataset},
      {"state", state_word(status.state)},
      {"counts", std::move(counts)},
      {"names",
       {{"total", status.names_total}, {"done", status.names_done}, {"failed", status.names_failed}}},
      {"bytes", status.bytes_total},
      {"bytes_done", status.bytes_done},
      {"bytes_sent", status.bytes_sent},
      {"rate_bps", status.rate_bps}};
  if (status.eta_s) object["eta_s"] = *status.eta_s;
  if (status.slowest) object["slowest"] = *status.slowest;
  object["failed"] = std::move(failed);
  object["shards"] = std::move(shards);
  object["last"] = shard_json(status.last);
  return object;
}

std::vector<uint32_t> to_retry(const FleetStatus& status) {
  std::vector<uint32_t> shards;
  for (const ShardStatus& one : status.shards) {
    if (one.state != ShardState::kSucceeded && one.state != ShardState::kRunning &&
        one.state != ShardState::kWaiting)
      shards.push_back(one.shard);
  }
  return shards;
}

}  // namespace sluice::fleet
