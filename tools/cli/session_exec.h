// sluice session events --exec: a program is told of what happens at sessions, once each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tools/cli/app.h"

namespace sluice::cli {

struct ExecFlags {
  std::string program;
  std::string on = "end";
  uint32_t at_once = 4;
  uint32_t limit_s = 30;
  uint32_t tries = 10;
  uint32_t wait_s = 5;
  std::string state;
};

void add_exec_options(CLI::App& command, ExecFlags& flags);

// Without a session until it is interrupted; with one until that has ended, and was told.
Result<int> exec_on_events(const Context& context, const std::string& session, const ExecFlags& flags);

}  // namespace sluice::cli
