// The options of `sluice send` and `sluice get`, and the requests that they make. The file of `sluice run`
// (run_file.h) takes the same: its keys are made of these options.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/client/requests.h"
#include "control/proto/api.pb.h"
#include "control/selection/selection.h"
#include "dataplane/base/error.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace sluice::cli {

struct TransferFlags {
  std::vector<std::string> paths;
  std::optional<uint32_t> lanes;
  std::string rate;
  std::string mode;
  std::string min_rate;
  uint32_t timeout_s = 0;
  int32_t priority = 0;
  std::string log_level;
  std::string deadline;
  std::string deadline_policy;
  std::optional<double> expected_loss_percent;
  std::string crc;
  std::string protection;
  std::string fec;
  std::string chunk_bytes;
  std::vector<selection::Rule> rules;  // as they were given
  bool overwrite = false;
  bool verify = false;
  bool mkdir = false;
  bool owner = false;
  bool group = false;
  bool numeric_ids = false;
  bool xattrs = false;
  bool acls = false;
  std::string files_from;
  bool from0 = false;
  bool dry_run = false;
  bool sync = false;
  bool removes = false;  // what the source of a sync lacks
  bool checksum = false;
  bool literal = false;
  bool ip4 = false;
  bool ip6 = false;
  bool detach = false;
  bool quiet = false;
};

// What a priority may be.
CLI::Validator priority_range();
// How many lanes a session may have.
CLI::Validator lanes_range();
// Of a session's network log.
CLI::Validator log_levels();
// How data go, whatever they are: --mode, --crc, --protection, -4, -6.
void add_data_flags(CLI::App& command, TransferFlags& flags);
// All but `paths`, `detach` and `quiet`.
void add_flags(CLI::App& command, TransferFlags& flags);

enum class Direction : uint8_t { kSend, kGet };

// kUsage names the argument or the option that is wrong. Looks whether a local destination is a directory,
// and reads the list of --files-from. `input`: what "-" stands for there; nullptr: nothing.
Result<api::TransferRequest> transfer_request(Direction direction, const TransferFlags& flags,
                                              const std::filesystem::path& working_directory,
                                              std::istream* input);

}  // namespace sluice::cli
