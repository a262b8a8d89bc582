// One status of all shards: of what they have written of themselves, and of what Slurm says.
//
// Pure; the time is an argument.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/fleet/jobs.h"
#include "tools/fleet/plan_directory.h"
#include "tools/fleet/tries.h"

namespace sluice::fleet {

enum class ShardState : uint8_t {
  kPlanned,  // nobody runs it, and nobody has
  kWaiting,  // Slurm has it in its queue
  kRunning,
  kSucceeded,
  kFailed,
  kCancelled,
  kLost,  // it says that it runs, and Slurm knows nothing of it
};
std::string_view state_word(ShardState state);

struct ShardStatus {
  uint32_t shard = 0;
  ShardState state = ShardState::kPlanned;
  std::optional<Try> attempt;  // the one that counts
  TaskState task;              // as Slurm has it
  uint64_t bytes_total = 0;
  uint64_t bytes_done = 0;
  double rate_bps = 0;
  std::optional<double> eta_s;
  double silent_s = 0;  // since a running one was heard of
};

struct FleetStatus {
  std::string dataset;
  std::vector<ShardStatus> shards;
  ShardStatus last;
  std::map<ShardState, uint32_t> counts;
  uint64_t names_total = 0;
  uint64_t names_done = 0;
  uint64_t names_failed = 0;
  uint64_t bytes_total = 0;
  uint64_t bytes_done = 0;
  uint64_t bytes_sent = 0;  // by all tries
  double rate_bps = 0;
  std::optional<double> eta_s;
  std::optional<uint32_t> slowest;          // of those that run, the one that will take longest
  ShardState state = ShardState::kPlanned;  // of all

  bool active() const { return state == ShardState::kRunning || state == ShardState::kWaiting; }
  // 0: all has succeeded. Else that of the first shard that failed.
  int exit_code() const;
};

// `queue`: nothing, where nobody has asked Slurm.
FleetStatus status_of(const Plan& plan, const std::map<uint32_t, std::vector<Try>>& tries, const Jobs& jobs,
                      const std::optional<std::map<uint32_t, TaskState>>& queue, int64_t now_unix_ns);

Json status_json(const FleetStatus& status);  // sluice.fleet_status.v1

// Shards that nobody runs and that have not succeeded.
std::vector<uint32_t> to_retry(const FleetStatus& status);

}  // namespace sluice::fleet
