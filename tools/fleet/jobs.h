// The jobs of a plan: what Slurm was given, and what it says of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/error.h"
#include "tools/fleet/plan_directory.h"

namespace sluice::fleet {

// A job array, whose task T is shard `offset` + T; or the job of what comes last.
struct Job {
  uint64_t id = 0;
  bool last = false;
  uint32_t offset = 0;
  uint64_t retry = 0;
};

struct Jobs {
  uint64_t retry = 0;               // how often failed shards were begun again
  std::vector<std::string> sbatch;  // further options of sbatch
  std::vector<Job> jobs;
};

Status save_jobs(const std::filesystem::path& plan, const Jobs& jobs);  // sluice.fleet_jobs.v1
// None were submitted: an empty one.
Result<Jobs> load_jobs(const std::filesystem::path& plan);

// What runs one shard as a task. `program`: sluice.
std::string slurm_script(const Plan& plan, const std::filesystem::path& directory,
                         const std::string& program);
// What runs all on this host, one after another, or so many at a time.
std::string shell_script(const Plan& plan, const std::string& program);

// "1-3,7"
std::string array_text(const std::vector<uint32_t>& numbers);
// Shards by the arrays that Slurm takes: {offset, tasks}. `tasks_max`: MaxArraySize - 1.
std::vector<std::pair<uint32_t, std::vector<uint32_t>>> arrays_of(const std::vector<uint32_t>& shards,
                                                                  uint32_t tasks_max);
// Of `scontrol show config`; without it Slurm's default.
uint32_t tasks_max_of(std::string_view configuration);

struct TaskState {
  std::string state;  // "PENDING", "RUNNING", ...
  std::string node;
  std::string reason;
};
inline constexpr std::string_view kQueueFormat = "%F|%K|%T|%N|%r";
// What squeue -h -r -o kQueueFormat prints, by shard; 0: what comes last. Jobs that it does not know have
// ended.
std::map<uint32_t, TaskState> queue_of(const Jobs& jobs, std::string_view printed);

}  // namespace sluice::fleet
