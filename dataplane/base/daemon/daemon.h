// What the daemons have in common towards whoever starts them: their options, and their log.
//
// Cold; the main thread, at the start. The log is spdlog's and may be used by any thread afterwards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "dataplane/base/error.h"

namespace sluice::daemon {

struct Options {
  std::filesystem::path node;  // its directory, absolute
  std::string log_level;       // empty: that of node.toml

  const std::string& log_level_or(const std::string& configured) const {
    return log_level.empty() ? configured : log_level;
  }
};

// Of a command line. Nothing: only --help or --version was asked for, and has been answered. kUsage: it is
// wrong.
Result<std::optional<Options>> parse(const std::string& program, const std::string& about, int argc,
                                     const char* const* argv);

// From now on spdlog writes to the standard error: time, level, message, one line each, whatever is in it; or
// to systemd's journal, where the standard error is its own (journal_sink.h).
// Each of `components` has a logger (dataplane/base/log.h); the first also has what is nobody else's.
void start_log(const std::string& program, std::span<const char* const> components, const std::string& level);

}  // namespace sluice::daemon
