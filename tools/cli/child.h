// Programs that a command starts: one that is waited for and heard, and one that is watched.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "dataplane/base/error.h"

namespace sluice::cli {

struct Heard {
  int status = 0;   // as a shell has it: 128 + N for signal N
  std::string out;  // at most 1 MiB of each
  std::string err;
};
// Runs it to its end, without any signal blocked and with `in` on its standard input. kConfiguration: it
// cannot be started.
Result<Heard> run_program(const std::vector<std::string>& words, const std::string& in);

struct StartOptions {
  std::vector<std::string> words;             // [0] is looked for in PATH
  std::filesystem::path log = {};             // of its standard output and error; empty: this process's own
  bool daemon = false;                        // in a session of its own, and ended when this process is
  std::vector<std::string> environment = {};  // NAME=VALUE, besides this process's own
};
// Its pid. An error: it could not be started, with errno's words; 127 or 126 is how a shell would end then.
struct Started {
  pid_t pid = 0;
  int reason = 0;  // errno, where pid is 0
};
// Signals that this thread blocks are open in it.
Started start_program(const StartOptions& options);

int exit_status(int wait_status);

}  // namespace sluice::cli
