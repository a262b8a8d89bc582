// What a probe that runs for days has found so far, and the file that holds it between two runs of the
// command.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "control/client/json.h"
#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::cli {

// Faults of which all is kept; of further ones only the number.
inline constexpr size_t kFaultsKept = 1000;

struct ProbeState {
  // What is probed. A file of another probe is not gone on with.
  std::string node_directory;
  std::string peer;
  std::string kind;    // "transfers", "packets"
  uint64_t bytes = 0;  // of each
  // What was found.
  uint64_t done = 0;   // whether right or wrong
  uint64_t wrong = 0;  // of them
  uint64_t bytes_moved = 0;
  uint64_t crc_errors = 0;  // datagrams that came damaged, and were repaired
  uint64_t lost = 0;        // datagrams; of reflected ones those that did not come back
  uint64_t resent = 0;
  uint64_t tried_again = 0;  // that did not come to an end, and do not count
  std::string protection;  // of the last transfer: only under "crc" damaged datagrams are told from lost ones
  // Of datagrams that the peer reflects.
  uint64_t copies = 0;       // that came back once more
  uint64_t wrong_bytes = 0;  // in all that came back
  uint64_t bits_set = 0;     // of these bytes, as far as their faults were told
  uint64_t bits_cleared = 0;
  bool udp_checksum = false;               // they had one
  std::map<uint32_t, uint64_t> positions;  // in the payload: how often this byte was wrong, likewise
  double elapsed_s = 0;                    // over all runs of the command
  int64_t began_unix_ns = 0;
  int64_t changed_unix_ns = 0;
  api::Json faults = api::Json::array();

  bool same_probe(const ProbeState& other) const {
    return node_directory == other.node_directory && peer == other.peer && kind == other.kind &&
           bytes == other.bytes;
  }
  uint64_t came() const { return kind == "packets" ? done - lost : done; }
  void add_fault(api::Json fault) {
    if (faults.size() < kFaultsKept) faults.push_back(std::move(fault));
  }
};

// Adds what was found, and of which probe: for the state, and for whoever reads the command's JSON.
void put_found(const ProbeState& state, api::Json* out);
std::string state_text(const ProbeState& state);
// kUsage: it is no such text, or says what cannot be.
Result<ProbeState> read_state(const std::string& text);

// The highest share of wrong ones that fits what was seen, with 95 % confidence: 3 / n where none of n was
// wrong (the rule of three), otherwise by Poisson's law. 1 where nothing was seen.
double share_at_most(uint64_t wrong, uint64_t n);

// Where the state stands if the caller names no place; empty: the environment names no directory.
std::filesystem::path usual_probe_state_file(const std::string& peer, const std::string& kind);

// While it lives no other command uses the file.
class ProbeStateFile {
 public:
  // Makes the directory that the file stands in, too. kDestinationExists: another command uses it. kStorage,
  // kNoSpace.
  static Result<ProbeStateFile> open(const std::filesystem::path& file);

  // What it held when it was opened; empty: it is new.
  const std::string& text() const { return text_; }
  // Replaces all of it, or nothing: a loss of power leaves the old text or the new one.
  Status write(const std::string& text);

 private:
  ProbeStateFile(std::filesystem::path file, UniqueFd fd) : file_(std::move(file)), fd_(std::move(fd)) {}

  std::filesystem::path file_;
  UniqueFd fd_;  // locked
  std::string text_;
};

}  // namespace sluice::cli
