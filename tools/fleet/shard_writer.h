// Writes what the shards are to move: files for `sluice run`, and the lists of names that they use.
//
// A shard has as many sessions as the limits of one ask for. Names are written as they come; a buffer for
// each shard is all that is kept.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "control/selection/file_part.h"
#include "dataplane/base/error.h"
#include "tools/fleet/plan_directory.h"

namespace sluice::fleet {

struct SessionLimits {
  size_t names = 100'000;
  size_t name_bytes = 8U << 20;
  size_t large_files = 2000;  // which share a session's objects with packs
  uint64_t large_file_bytes = 1U << 20;
  uint64_t bytes = uint64_t{1} << 46;
};

// What a session of its own does to a file that was cut: it moves a range, or it is the last of that file.
struct FileRange {
  std::string name;  // relative to the dataset; UTF-8
  selection::FilePart part;
};

class ShardWriter {
 public:
  ShardWriter(std::filesystem::path directory, uint32_t shards, SessionLimits limits = {})
      : directory_(std::move(directory)), limits_(limits), open_(shards + 1) {}

  // Names that stay together; shard 0 is the last one.
  Status add(uint32_t shard, uint64_t bytes, const std::vector<std::string>& names);
  void add_range(uint32_t shard, uint64_t bytes, FileRange range);
  // The lists to their end. Then how much each shard has; [0] is the last one's.
  Status finish();
  std::vector<ShardTotals> totals() const;
  const std::vector<FileRange>& ranges(uint32_t shard) const { return open_[shard].ranges; }

 private:
  struct Open {
    ShardTotals totals;
    std::string buffer;
    size_t names = 0;
    size_t name_bytes = 0;
    size_t large_files = 0;
    uint64_t bytes = 0;
    std::vector<FileRange> ranges;
  };
  Status flush(uint32_t shard);

  const std::filesystem::path directory_;
  const SessionLimits limits_;
  std::vector<Open> open_;
};

// "shard-0007-1.names": of a shard's first session.
std::string names_file(uint32_t shard, uint32_t session);

// Keys of the file's [options], each as TOML has it: `rate = "2G"`.
using RunOptions = std::vector<std::string>;
// "KEY=VALUE" as a line of TOML: true, false and whole numbers as they are, all else a string. kUsage: no
// key.
Result<std::string> option_line(std::string_view given);

// `ranges`: each is a session, before those of the lists of names.
std::string run_file_text(const Plan& plan, uint32_t shard, const ShardTotals& totals,
                          const RunOptions& options, const std::vector<FileRange>& ranges = {});
// By which the sessions of one file's ranges find each other. kInternal: the system gave no random bytes.
Result<std::string> make_set();

}  // namespace sluice::fleet
