// Starting and ending DPDK's environment: its arguments, its memory, its log, what it leaves on disk.
//
// Cold, main thread. EAL starts at most once in a process's life.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"
#include "dataplane/dpdk/device_args.h"
#include "dataplane/dpdk/topology.h"

namespace sluice::dpdk {

using Warn = std::function<void(const std::string&)>;

// lcore 0 is the main thread; worker w is lcore w + 1.
inline constexpr unsigned kMainLcore = 0;
inline constexpr unsigned lcore_of_worker(uint32_t worker) { return worker + 1; }

struct EalPlan {
  std::vector<std::string> arguments;
  std::filesystem::path runtime_dir;  // as of EalRequest
  bool hugepages = false;
};

struct EalFacts {
  uint64_t hugepages_free_mib = 0;
  uint64_t needed_mib = 0;        // what pools, extents and drivers will take
  uint64_t ram_mib = UINT64_MAX;  // of the machine
};

struct EalRequest {
  std::string program;   // of this name EAL speaks in its log
  std::string instance;  // without hugepages and runtime_dir: a name that no other process on this host uses
  std::string lcores;
  uint32_t memory_mib = 0;
  bool hugepages = false;
  // Of this node alone: EAL puts dpdk/rte/dpdk_telemetry.v2 into it. Empty: no telemetry, and nothing stays.
  std::filesystem::path runtime_dir = {};
  std::vector<const Device*> devices;
};

// Where DPDK's telemetry answers, below the run directory of a node; nothing when that path is too long for a
// unix socket.
std::optional<std::filesystem::path> telemetry_socket(const std::filesystem::path& run_dir);

// Pure, all five.
std::vector<std::string> eal_arguments(const EalRequest& request);
// Whether to use hugepages: `memory` is "auto", "hugepages" or "no-huge"; `key` names it in messages.
Result<bool> choose_hugepages(const std::string& key, const std::string& memory, uint64_t memory_mib,
                              uint64_t free_mib, const Warn& warn);
Error needs_hugepages(const Device& device, uint64_t memory_mib);
Result<EalPlan> plan_eal(const config::Node& node, const Device& device, const CoreChoice& cores,
                         const EalFacts& facts, const Warn& warn);

// Removes what EAL of a process that was killed left: empty directories sluice-...-PID of processes that
// are not alive.
void remove_left_directories(const std::filesystem::path& parent, const std::function<bool(pid_t)>& alive);
struct Hugepages {
  uint64_t free_mib = 0;
  uint64_t all_mib = 0;  // free or not
};
Hugepages count_hugepages();
// What is free, after a wait of at most `limit` while that is less than `needed_mib` though the kernel has as
// much: the memory of a process that was killed comes back a moment after its end, when io_uring lets go of
// it.
uint64_t await_hugepages_mib(uint64_t needed_mib, std::chrono::milliseconds limit, const Warn& warn,
                             const std::function<Hugepages()>& count = count_hugepages);
inline constexpr std::chrono::milliseconds kHugepagesWait{2000};
// The drivers that a bundle brings (tools/package/bundle.py). Loaded, they make themselves known, as those do
// that EAL loads from where Debian has them. Before EAL starts. A directory that is not there has none.
Status load_drivers(const std::filesystem::path& directory);
Status start_eal(const EalPlan& plan);
void stop_eal();

// The last error that DPDK logged, in parentheses with a leading space, or nothing: the end of a message.
std::string dpdk_reason();

}  // namespace sluice::dpdk
