// Cold. See topology.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/topology.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hwloc.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>

#include "dataplane/base/counted.h"

namespace sluice::dpdk {
namespace {

Error wrong_cores(std::string reason) {
  return {ErrorCode::kConfiguration, fmt::format("[dataplane] cores: {}", reason)};
}

Status check_given(std::span<const ProcessingUnit> units, const CoreRequest& request) {
  if (request.cores.size() != request.workers) {
    return wrong_cores(fmt::format("{} for {}: name one CPU per worker, or leave cores out",
                                   base::counted(request.cores.size(), "CPU"),
                                   base::counted(request.workers, "worker")));
  }
  for (const int cpu : request.cores) {
    const auto unit = std::ranges::find(units, cpu, &ProcessingUnit::cpu);
    if (unit == units.end()) return wrong_cores(fmt::format("CPU {} does not exist on this machine", cpu));
    if (!unit->allowed) {
      return wrong_cores(
          fmt::format("CPU {} is not allowed to this process: widen its cpuset (taskset, "
                      "AllowedCPUs=) or name another",
                      cpu));
    }
  }
  return {};
}

// One allowed hardware thread of each core, best first.
std::vector<ProcessingUnit> candidates(std::span<const ProcessingUnit> units, int numa_node) {
  std::vector<ProcessingUnit> first_of_core;
  std::set<int> cores_seen;
  for (const ProcessingUnit& unit : units) {
    if (unit.allowed && cores_seen.insert(unit.core).second) first_of_core.push_back(unit);
  }
  const auto zero = std::ranges::find(units, 0, &ProcessingUnit::cpu);
  const int core_of_cpu0 = zero == units.end() ? -1 : zero->core;
  std::ranges::stable_sort(first_of_core, {}, [&](const ProcessingUnit& unit) {
    const bool far = numa_node >= 0 && unit.numa_node != numa_node;
    return (far ? 2 : 0) + (unit.core == core_of_cpu0 ? 1 : 0);
  });
  return first_of_core;
}

}  // namespace

Result<CoreChoice> choose_cores(std::span<const ProcessingUnit> units, const CoreRequest& request) {
  CoreChoice choice;
  if (!request.cores.empty()) {
    const Status status = check_given(units, request);
    if (!status) return status.error();
    choice.worker_cpus = request.cores;
  } else {
    const auto cores = candidates(units, request.numa_node);
    if (cores.empty()) return wrong_cores("this process may run on no CPU: widen its cpuset");
    for (uint32_t w = 0; w < request.workers; ++w) {
      choice.worker_cpus.push_back(cores[w % cores.size()].cpu);
    }
    choice.shared = request.workers > cores.size();
  }
  std::vector<int> allowed;
  for (const ProcessingUnit& unit : units) {
    if (!unit.allowed) continue;
    allowed.push_back(unit.cpu);
    if (std::ranges::find(choice.worker_cpus, unit.cpu) == choice.worker_cpus.end()) {
      choice.other_cpus.push_back(unit.cpu);
    }
  }
  if (choice.other_cpus.empty()) choice.other_cpus = allowed;
  return choice;
}

Result<std::vector<ProcessingUnit>> processing_units() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return Error{ErrorCode::kDevice, "hwloc: cannot start"};
  const std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> topology(raw,
                                                                                    &hwloc_topology_destroy);
  // CPUs outside the cpuset stay visible, to tell "not allowed" from "does not exist".
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(raw) != 0) return Error{ErrorCode::kDevice, "hwloc: cannot read this machine"};
  const std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> bound(hwloc_bitmap_alloc(),
                                                                            &hwloc_bitmap_free);
  if (hwloc_get_cpubind(raw, bound.get(), HWLOC_CPUBIND_THREAD) != 0) {
    hwloc_bitmap_copy(bound.get(), hwloc_topology_get_allowed_cpuset(raw));
  }
  std::vector<ProcessingUnit> units;
  for (hwloc_obj_t pu = nullptr; (pu = hwloc_get_next_obj_by_type(raw, HWLOC_OBJ_PU, pu)) != nullptr;) {
    const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(raw, HWLOC_OBJ_CORE, pu);
    ProcessingUnit unit{.cpu = static_cast<int>(pu->os_index),
                        .core = static_cast<int>(core != nullptr ? core->logical_index : pu->logical_index),
                        .allowed = hwloc_bitmap_isset(bound.get(), pu->os_index) != 0};
    const int node = hwloc_bitmap_first(pu->nodeset);
    unit.numa_node = node;
    units.push_back(unit);
  }
  return units;
}

int device_numa_node(const Device& device) {
  std::string path;
  if (device.kind == DeviceKind::kPci) {
    const bool domain_given = std::ranges::count(device.name, ':') == 2;
    path = fmt::format("/sys/bus/pci/devices/{}{}/numa_node", domain_given ? "" : "0000:", device.name);
  } else if (!device.interface_name.empty()) {
    path = fmt::format("/sys/class/net/{}/device/numa_node", device.interface_name);
  } else {
    return -1;
  }
  std::ifstream file(path);
  int node = -1;
  return file >> node ? node : -1;
}

}  // namespace sluice::dpdk
