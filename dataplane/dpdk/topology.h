// Which CPU each worker runs on.
//
// Cold. `choose_cores` is pure; `processing_units` asks hwloc; `device_numa_node` reads sysfs, since the
// choice is needed before EAL, which knows the node of a port only after it has started.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/error.h"
#include "dataplane/dpdk/device_args.h"

namespace sluice::dpdk {

// One hardware thread.
struct ProcessingUnit {
  int cpu = 0;   // operating system's number
  int core = 0;  // logical number of the physical core
  int numa_node = -1;
  bool allowed = true;  // in this process's cpuset
};

struct CoreRequest {
  uint32_t workers = 1;
  std::vector<int> cores;  // [dataplane] cores; empty: choose
  int numa_node = -1;      // of the port; -1: any
};

struct CoreChoice {
  std::vector<int> worker_cpus;  // one per worker
  std::vector<int> other_cpus;   // for the main thread and the interrupt thread; never empty
  bool shared = false;           // more workers than cores
};

// Chosen cores: on the port's NUMA node first, one hardware thread per core, CPU 0's core last, and none
// twice while there are enough. kConfiguration when `cores` names what is not there or not allowed.
Result<CoreChoice> choose_cores(std::span<const ProcessingUnit> units, const CoreRequest& request);

Result<std::vector<ProcessingUnit>> processing_units();
int device_numa_node(const Device& device);  // -1: unknown

}  // namespace sluice::dpdk
