// The file of `sluice run`: transfers, written down (MCDTP, docs/SOURCES.md, section 4.4: declarative).
//
// Pure. Each table [[send]] or [[get]] becomes the arguments of that very command: the key of an option is
// its long name with '_' for '-'. So there is one list of options, and one parser of their values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/error.h"
#include "tools/cli/run_again.h"
#include "tools/cli/transfer_flags.h"

namespace sluice::cli {

struct RunTransfer {
  Direction direction = Direction::kSend;
  TransferFlags flags;
  std::string place;    // "FILE:LINE"
  std::string command;  // as one would write it in a shell
  struct Places {
    std::map<std::string, std::string> options;  // "--rate" -> "FILE:LINE"
    std::vector<std::string> paths;              // as flags.paths
  } places;
};

struct RunFile {
  bool together = true;  // otherwise one after the other
  RunTimes times;
  std::vector<RunTransfer> transfers;
};

// kConfiguration, with file and line, for what is wrong in it.
Result<RunFile> parse_run_file(std::string_view text, const std::string& origin);

// Where stands what is wrong, if a request cannot be made of the transfer: `error` says what.
std::string place_of(const RunTransfer& transfer, const Error& error,
                     const std::filesystem::path& working_directory);

// The keys, as docs/REFERENCE.md has them.
std::string run_file_reference();

}  // namespace sluice::cli
