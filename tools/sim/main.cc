// sluice-sim: runs seeds of the deterministic simulator; exit 0 only if everything held.
//
// One seed fixes everything. The regression list (tools/sim/seeds.txt) is run first.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>

#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/check.h"
#include "tools/sim/runner.h"

int main(int argc, char** argv) {
  using namespace sluice::sim;
  sluice::base::set_dchecks(true);
  // Memory of one run serves the next.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);

  CLI::App app{"Deterministic simulator: the production code on virtual time, with faults and a judge.",
               "sluice-sim"};
  RunOptions options;
  std::string regressions = SLUICE_SIM_SEEDS;
  std::string broken = "none";
  std::string course;
  uint64_t seed = 0;
  bool exhaustive = false;
  app.add_option("--seeds", options.seeds, "Run so many seeds")->capture_default_str();
  app.add_option("--first", options.first, "Begin with this one")->capture_default_str();
  auto* const one = app.add_option("--seed", seed, "Run this one alone, twice, and say everything about it");
  app.add_option("--jobs", options.jobs, "Processes")->capture_default_str();
  app.add_option("--twice-every", options.twice_every, "Run every Nth seed twice: its traces must agree")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--exhaustive", exhaustive, "All loss patterns of short transfers instead of seeds");
  app.add_option("--bits", options.bits, "Exhaustive: first datagrams of which every subset is lost")
      ->capture_default_str();
  app.add_option("--regressions", regressions, "List of seeds that are run first")->capture_default_str();
  app.add_option("--break", broken, "Put in a deliberate defect: exit 0 only if it is found");
  app.add_option("--legs", options.legs, "Give each transfer so many legs, whatever its seed says")
      ->check(CLI::Range(1, 3));
  app.add_option("--course", course,
                 "What the session of each plan is, whatever its seed says: two-nodes, sources (of one "
                 "destination), rivals (for one lease), grant (of a third node)");
  app.add_flag("--coded", options.coded, "Give each plan an erasure code and losses, whatever its seed says");
  app.add_flag("--verbose", options.verbose, "Print every event (with --seed), or every seed");
  if (const auto parsed = sluice::arguments::parse_main(app, argc, argv); parsed.ended) return parsed.status;

  bool known = false;
  options.broken = break_named(broken, &known);
  if (!known) {
    fmt::print(stderr, "sluice-sim: --break {}: there are {}\n", broken, fmt::join(break_names(), ", "));
    return 2;
  }
  if (!course.empty()) options.course = course_named(course, &known);
  if (!known) {
    fmt::print(stderr, "sluice-sim: --course {}: there are {}\n", course, fmt::join(course_names(), ", "));
    return 2;
  }
  if (*one) return run_one(seed, options);
  if (exhaustive) return run_exhaustive(options);
  if (options.broken == Break::kNone && !options.course && !options.coded) {
    std::ifstream list(regressions);
    for (std::string line; std::getline(list, line);) {
      if (line.empty() || line[0] == '#') continue;
      RunOptions::Regression listed{.seed = std::stoull(line), .course = {}};
      if (const size_t space = line.find(' '); space != std::string::npos)
        listed.course = course_named(line.substr(space + 1), &known);
      if (!known) {
        fmt::print(stderr, "sluice-sim: {}: '{}' names no course\n", regressions, line);
        return 2;
      }
      options.regressions.push_back(listed);
    }
  }
  return run_seeds(options);
}
