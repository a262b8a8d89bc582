// What the daemons have in common towards whoever starts them: their options, and their log.
//
// Cold; the main thread, at the start. The log is spdlog's and may be used by any thread afterwards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "dataplane/base/error.h"

namespace CLI {
class App;
}  // namespace CLI

namespace sluice::daemon {

struct Program {
  std::string name;
  std::string about;
};
inline const Program kControl{"sluice-control", "The control daemon of a Sluice node."};
inline const Program kDataplane{
    "sluice-dataplane", "The data plane of a Sluice node: moves chunks between the data port and the disks."};
inline const Program kUsers{"sluice-users",
                            "Opens files as users of this host, for the control daemon of a Sluice node."};

struct Options {
  std::filesystem::path node = "/etc/sluice";  // its directory; absolute, once it is parsed
  std::string log_level;                       // empty: that of node.toml

  const std::string& log_level_or(const std::string& configured) const {
    return log_level.empty() ? configured : log_level;
  }
};

// What both of them understand, for the command line and for their manual pages; `options` has to live as
// long.
void add_options(CLI::App& app, const Program& program, Options& options);

// Of a command line. Nothing: only --help or --version was asked for, and has been answered. kUsage: it is
// wrong.
Result<std::optional<Options>> parse(const Program& program, int argc, const char* const* argv);

// From now on spdlog writes to the standard error: time, level, message, one line each, whatever is in it; or
// to systemd's journal, where the standard error is its own (journal_sink.h).
// Each of `components` has a logger (dataplane/base/log.h) and the level that `level_of` gives it; the first
// also has what is nobody else's.
using LevelOf = std::function<std::string(const char* component)>;
void start_log(const std::string& program, std::span<const char* const> components, const LevelOf& level_of);

}  // namespace sluice::daemon
