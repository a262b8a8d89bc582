// sluice fleet: a dataset, moved by many nodes as shards, which Slurm or a script of the shell runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dataplane/base/error.h"
#include "tools/cli/app.h"
#include "tools/fleet/plan_directory.h"

namespace sluice::cli {

struct FleetPlanFlags {
  std::string dataset;
  std::vector<std::string> from;
  std::vector<std::string> to;
  std::string at = "from";
  std::string emit = "slurm";
  uint32_t shards = 0;  // 0: by the size of the dataset
  bool sync = false;
  bool removes = false;
  bool whole_files = false;
  std::string align;  // where files may be cut; empty: by the dataset
  std::vector<std::string> options;
  std::string node_rate = "10G";
  double name_cost_ms = 0.05;
  std::string node_directory = "/etc/sluice";
};
Result<int> plan_fleet(const Context& context, const FleetPlanFlags& flags);

struct FleetShardFlags {
  std::string dataset;
  std::string shard;
  uint64_t retry = 0;
  uint32_t patience_s = 60;
};
Result<int> run_fleet_shard(const Context& context, const FleetShardFlags& flags);

struct FleetJobFlags {
  std::string dataset;
  std::vector<std::string> sbatch;
  bool all = false;
  bool quiet = false;
  double timeout_s = 0;  // 0: without end
  int timeout_exit_code = 124;
};
Result<int> submit_fleet(const Context& context, const FleetJobFlags& flags);
Result<int> retry_fleet(const Context& context, const FleetJobFlags& flags);
Result<int> cancel_fleet(const Context& context, const FleetJobFlags& flags);
Result<int> drop_fleet(const Context& context, const FleetJobFlags& flags);
Result<int> show_fleet(const Context& context, const FleetJobFlags& flags);
Result<int> wait_for_fleet(const Context& context, const FleetJobFlags& flags);
Result<int> fleet_receipt(const Context& context, const FleetJobFlags& flags);

// "PLACE[,PLACE...]:PATH", as often as it was given. kUsage: it is none.
Result<std::vector<fleet::Place>> parse_places(const std::string& option,
                                               const std::vector<std::string>& given);

inline std::filesystem::path fleet_directory(const Context& context, const std::string& dataset) {
  const std::filesystem::path path = (context.environment.working_directory / dataset).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}
// This program, as jobs find it.
std::string own_program();

inline int64_t unix_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace sluice::cli
