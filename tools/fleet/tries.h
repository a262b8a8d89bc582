// What became of a shard: one file of the plan's folder `tries` for each epoch in which it was tried,
// written by whoever runs it.
//
// An epoch is never used twice, and a later try has a higher one. So a try that was thought dead and still
// runs writes into a file of its own, which nobody looks at any more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "dataplane/base/error.h"
#include "tools/fleet/files.h"

namespace sluice::fleet {

// Of a restart by Slurm within a retry of the plan.
inline constexpr uint64_t kRestartsMax = 999;
constexpr uint64_t epoch_of(uint64_t retry, uint64_t restart) {
  return retry * (kRestartsMax + 1) + (restart < kRestartsMax ? restart : kRestartsMax) + 1;
}

struct TrySession {
  std::string id;
  std::string state;
  uint64_t bytes = 0;       // to be moved
  uint64_t bytes_done = 0;  // written at the destination
  uint64_t bytes_sent = 0;
  uint64_t names_done = 0;
};

struct Try {
  enum class State : uint8_t { kRunning, kSucceeded, kFailed, kCancelled };

  uint32_t shard = 0;  // 0: what comes last
  uint64_t epoch = 1;
  std::string node;  // of Sluice
  std::string host;
  std::string job;  // of Slurm; empty: none
  int64_t began_unix_ns = 0;
  int64_t updated_unix_ns = 0;
  State state = State::kRunning;
  int exit_code = 0;
  std::string error;
  uint64_t names_total = 0;
  uint64_t bytes_total = 0;
  uint64_t names_found = 0;  // stood at the destination already
  uint64_t bytes_found = 0;
  std::vector<TrySession> sessions;
  double rate_bps = 0;
  std::string waiting_for;
  std::string verdict;  // what held the last session back
  uint64_t names_failed = 0;
  std::vector<std::pair<std::string, std::string>> failed;  // names with reasons, the first hundred
  std::vector<std::string> notes;

  uint64_t bytes_done() const;
  uint64_t bytes_sent() const;
  uint64_t names_done() const;
};

std::string_view state_word(Try::State state);
Json try_json(const Try& one);  // sluice.fleet_try.v1
Result<Try> try_of(const Json& object);

std::filesystem::path try_file(const std::filesystem::path& plan, uint32_t shard, uint64_t epoch);
Status write_try(const std::filesystem::path& plan, const Try& one);
// By shard, each with its tries by epoch. A file that is not whole is none.
Result<std::map<uint32_t, std::vector<Try>>> load_tries(const std::filesystem::path& plan);
std::vector<Try> load_tries_of(const std::filesystem::path& plan, uint32_t shard);
// The one that counts: a success, else the latest; nullptr: there is none.
const Try* latest(const std::vector<Try>& tries);

}  // namespace sluice::fleet
