// The options of `sluice send` and `sluice get`, and the requests that they make. The file of `sluice run`
// (run_file.h) takes the same: its keys are made of these options. Which there are stands in
// dataplane/base/options/options.def.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "control/client/requests.h"
#include "control/proto/api.pb.h"
#include "control/selection/selection.h"
#include "dataplane/base/error.h"
#include "tools/cli/two_nodes.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace sluice::cli {

struct TransferFlags {
  std::vector<std::string> paths;
  // Of options that a node hears of, by their names in dataplane/base/options/options.def.
  std::map<std::string, std::string, std::less<>> values;  // as they were given
  std::map<std::string, bool, std::less<>> switches;
  std::vector<selection::Rule> rules;  // as they were given
  std::vector<std::string> from;       // of `get`: the nodes that all have its sources
  bool overwrite_given() const {
    const auto found = switches.find("overwrite");
    return found != switches.end() && found->second;
  }
  // Of the command alone.
#define SLUICE_OPTION(...)
#define SLUICE_COMMAND(name, type, ...) type name{};
#include "dataplane/base/options/options.def"
};

// What an option may be, by its name: a range, or words.
CLI::Validator validator_of(std::string_view option);
// One option of a transfer, maybe under other flags and with another help than its own.
CLI::Option* add_option(CLI::App& command, TransferFlags& flags, std::string_view option,
                        std::string_view as = {}, std::string_view help = {});
// Of `get` alone: --from.
inline constexpr std::string_view kFromHelp =
    "These nodes all have the same sources, written without NODE: each sends a part of them";
CLI::Option* add_from(CLI::App& command, TransferFlags& flags);
// All that `sluice run` has keys for.
void add_flags(CLI::App& command, TransferFlags& flags);
// And those of a command that is typed.
void add_command_flags(CLI::App& command, TransferFlags& flags);

enum class Direction : uint8_t { kSend, kGet };

// kUsage names the argument or the option that is wrong. Looks whether a local destination is a directory,
// and reads the list of --files-from. `input`: what "-" stands for there; nullptr: nothing. `knows`: of
// nodes; with it a transfer between two others is understood, and without it none is.
Result<api::TransferRequest> transfer_request(Direction direction, const TransferFlags& flags,
                                              const std::filesystem::path& working_directory,
                                              std::istream* input, const KnowsNode& knows = {});

}  // namespace sluice::cli
