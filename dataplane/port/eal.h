// Starting and ending DPDK's environment: its arguments, its memory, its log, what it leaves on disk.
//
// Cold, main thread. EAL starts at most once in a process's life.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dataplane/config/config.h"
#include "dataplane/core/error.h"
#include "dataplane/port/device_args.h"
#include "dataplane/port/topology.h"

namespace sluice::port {

using Warn = std::function<void(const std::string&)>;

// lcore 0 is the main thread; worker w is lcore w + 1.
inline constexpr unsigned kMainLcore = 0;
inline constexpr unsigned lcore_of_worker(uint32_t worker) { return worker + 1; }

struct EalPlan {
  std::vector<std::string> arguments;
  bool hugepages = false;
};

struct EalFacts {
  uint64_t hugepages_free_mib = 0;
  uint64_t needed_mib = 0;  // what pools, extents and drivers will take
};

// Pure.
Result<EalPlan> plan_eal(const config::Node& node, const Device& device, const CoreChoice& cores,
                         const EalFacts& facts, const Warn& warn);

uint64_t hugepages_free_mib();
Status start_eal(const EalPlan& plan);
void stop_eal();

// The last error that DPDK logged, in parentheses with a leading space, or nothing: the end of a message.
std::string dpdk_reason();

}  // namespace sluice::port
