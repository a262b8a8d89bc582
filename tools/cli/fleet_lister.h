// The list of a fleet's dataset as a node tells it, into files of the plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "control/client/client.h"
#include "tools/cli/app.h"
#include "tools/cli/canceller.h"
#include "tools/fleet/names.h"
#include "tools/fleet/plan_directory.h"
#include "tools/fleet/shard_writer.h"

namespace sluice::cli {

class FleetLister {
 public:
  // Files and links go to `files`, directories to `last`, figures to `plan`.
  FleetLister(const Context& context, api::Client& client, fleet::Plan& plan, fleet::NamesWriter files,
              fleet::ShardWriter& last)
      : context_(context), client_(client), plan_(plan), files_(std::move(files)), last_(last) {}

  // Asks this node, where it is one of the plan's, else the first that has the dataset. With --sync both
  // sides are compared.
  Status list(const Canceller& canceller);

  uint64_t same() const { return compared_.same(); }
  uint64_t extra() const { return compared_.extra(); }
  uint64_t large() const { return large_; }

 private:
  using FileKey = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>;

  Status list_names(const std::string& node, const std::string& path, const Canceller& canceller);
  Status compare(const api::CompareRequest& asked, const std::string& own_source, const Canceller& canceller);
  void take(const api::NameEntry& entry, const std::string& own);
  void take(const api::NameDifference& difference, const std::string& own);
  void take_file(const api::NameEntry& entry, const std::string& own);
  void add(uint64_t bytes, const std::string& name);
  void count(uint64_t bytes, uint64_t names, const std::string& first);
  void directory(const std::string& name);
  void problem(const std::string& path, const std::string& reason);
  Status end(Status status, const Canceller& canceller);

  const Context& context_;
  api::Client& client_;
  fleet::Plan& plan_;
  fleet::NamesWriter files_;
  fleet::ShardWriter& last_;
  std::map<FileKey, std::vector<std::string>> linked_;
  uint64_t linked_names_ = 0;
  uint64_t large_ = 0;
  api::CompareTotals compared_;
  Status failure_;
};

}  // namespace sluice::cli
