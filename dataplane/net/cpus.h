// May workers be pinned to the CPUs that were configured? Cold; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "dataplane/base/error.h"

namespace sluice::net {

// Those that the machine has and the cpuset of this process allows, whatever it is pinned to now. Empty: the
// kernel does not say.
std::vector<int> possible_cpus();

// kConfiguration: one of `cores` is not among `possible`. Where these are not known all may be.
inline Status check_cores(const std::vector<int>& cores, const std::vector<int>& possible) {
  for (const int cpu : cores) {
    if (possible.empty() || std::ranges::find(possible, cpu) != possible.end()) continue;
    return Error{
        ErrorCode::kConfiguration,
        fmt::format("[dataplane] cores: CPU {} does not exist on this machine, or its cpuset does not "
                    "allow it to this process; name some of {}, or leave cores out",
                    cpu, fmt::join(possible, ", "))};
  }
  return {};
}

}  // namespace sluice::net
