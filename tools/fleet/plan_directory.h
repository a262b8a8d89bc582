// The directory of a plan, which is what `sluice fleet plan` makes and all other verbs read:
//
//   plan.json              what is planned (this header)
//   shard-0007.toml        for `sluice run`, in this directory; shard-0007-1.names: the names of its first
//   session shard-last.toml        directories, whose times and modes come last shards.sbatch, run.sh  what
//   runs the shards: by Slurm, or on this host jobs.json              which jobs of Slurm (jobs.h) tries/
//   what became of each shard, a file for each epoch (tries.h) receipts/, digests/    of each session that
//   succeeded log/                   what the jobs print
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dataplane/base/error.h"
#include "tools/fleet/files.h"

namespace sluice::fleet {

// Where the dataset is at a node.
struct Place {
  std::string node;
  std::string path;  // without a final slash
};

// Where the shards run: at the nodes that have the data, or at those that get it. There the path is the same
// at each node.
enum class Side : uint8_t { kFrom, kTo };

struct ShardTotals {
  uint64_t names = 0;
  uint64_t bytes = 0;
  uint32_t sessions = 0;  // of lists of names
  uint32_t ranges = 0;    // of files that were cut: a session each; of the last one: these files
};

struct Plan {
  std::string dataset;
  std::string made;  // UTC
  Side at = Side::kFrom;
  std::vector<Place> from;
  std::vector<Place> to;
  bool sync = false;
  bool removes = false;        // --delete
  std::string emit = "slurm";  // or "shell"
  std::string node_directory;  // of the node at each host; %n is the name that Slurm has for the host
  uint64_t name_cost_bytes = 0;
  uint64_t names = 0;  // files and links
  uint64_t bytes = 0;
  uint64_t directories = 0;
  uint64_t left_out = 0;       // devices, pipes and sockets
  uint64_t problems = 0;       // names that could not be looked at
  double worst_over_mean = 1;  // cost of the largest shard over the mean
  std::string largest;         // the largest file
  uint64_t largest_bytes = 0;
  double largest_in_shards = 0;  // its cost over that of a mean shard
  std::vector<ShardTotals> shards;
  uint32_t last_sessions = 0;
  uint32_t cut_files = 0;  // that several shards write; each is finished by the last one

  const std::vector<Place>& here() const { return at == Side::kFrom ? from : to; }
  const std::vector<Place>& there() const { return at == Side::kFrom ? to : from; }
  // With whom a shard's sessions are; 0: the last one's.
  const Place& other_side(uint32_t shard) const {
    return there()[shard == 0 ? 0 : (shard - 1) % there().size()];
  }
  uint32_t count() const { return static_cast<uint32_t>(shards.size()); }
};

// Under which each shard's sessions run: the plan's secret with the shard's name (docs/REFERENCE.md,
// "Leases"). Whoever knows it can take the lease, so the file `lease` is its owner's alone.
Status make_lease(const std::filesystem::path& directory);
Result<std::string> lease_name(const std::filesystem::path& directory, uint32_t shard);

// "shard-0007"; 0: "shard-last".
std::string shard_name(uint32_t shard);
// kUsage: neither a shard of it nor "last".
Result<uint32_t> parse_shard(const Plan& plan, const std::string& word);

Json plan_json(const Plan& plan);  // sluice.fleet_plan.v1
// kConfiguration: there is none, or it was changed.
Result<Plan> load_plan(const std::filesystem::path& directory);

}  // namespace sluice::fleet
