// Running many plans: seeds, loss patterns; in several processes; and what is said about them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/sim/plan.h"
#include "tools/sim/world.h"

namespace sluice::sim {

struct RunOptions {
  uint64_t first = 1;
  uint64_t seeds = 1000;
  uint32_t jobs = 1;
  uint32_t twice_every = 1;  // seeds of which one runs twice, to see that it takes the same course
  uint32_t bits = 10;
  uint32_t legs = 0;   // of each transfer; 0: as its seed says
  bool coded = false;  // each plan has a code and losses; else as its seed says
  bool verbose = false;
  Break broken = Break::kNone;
  std::optional<Course> course;  // of each plan; nothing: as its seed says
  struct Regression {
    uint64_t seed = 0;
    std::optional<Course> course;
  };
  std::vector<Regression> regressions;
};

// Exit statuses: 0 when all held; with a deliberate defect, 0 when it was found.
int run_one(uint64_t seed, const RunOptions& options);
int run_seeds(const RunOptions& options);
int run_exhaustive(const RunOptions& options);

// A short transfer whose first frames are lost as the bits say.
Plan pattern_plan(uint64_t forward_bits, uint64_t backward_bits);

}  // namespace sluice::sim
