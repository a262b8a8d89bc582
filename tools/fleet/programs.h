// Runs a program of the host, such as sbatch, to its end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "dataplane/base/error.h"

namespace sluice::fleet {

inline constexpr double kSlurmLimitS = 60;  // of a command of Slurm

struct Ran {
  int exit_code = 0;  // 128 and more: by a signal
  std::string out;
  std::string err;
};

// kConfiguration: it is not there. kStalled: it did not end in time, and was killed.
Result<Ran> run_program(const std::vector<std::string>& words, double limit_s);

}  // namespace sluice::fleet
