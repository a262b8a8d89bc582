// Where everything lies in this machine: packages, NUMA nodes, cores, network ports, disks, and which of them
// this node of Sluice uses.
//
// Drawing is a function of the plan. Gathering reads the kernel's sysfs, from which hwloc has it as well;
// `root` stands for "/" in tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tools/doctor/facts.h"

namespace sluice::doctor {

struct PlanCore {
  int package = 0;
  std::vector<int> cpus;     // hardware threads, in order
  std::vector<int> workers;  // that [dataplane] cores puts there
  bool isolated = false;
};

struct PlanPort {
  std::string name;    // interface, or PCI address of a device that has none
  std::string pci;     // empty: none
  std::string driver;  // empty: not known
  int64_t speed_mbps = -1;
  bool data = false;  // of [port] device
};

struct PlanDisk {
  std::string name;
  uint64_t size_bytes = 0;
  std::vector<std::string> exports;
};

// What lies on one NUMA node.
struct PlanNode {
  int number = 0;  // -1: of these nobody knows where they are
  uint64_t memory_mib = 0;
  std::vector<int> distances;  // to each node
  std::vector<PlanCore> cores;
  std::vector<PlanPort> ports;
  std::vector<PlanDisk> disks;
  std::vector<std::string> exports;  // whose disk is not known
};

struct Plan {
  std::vector<PlanNode> nodes;
  uint32_t workers = 0;
  bool cores_chosen = false;  // by [dataplane] cores
  std::string device;         // of [port]
};

Plan gather_plan(const config::Node& node, const std::filesystem::path& root);
// Lines of at most so many columns.
std::vector<std::string> draw(const Plan& plan, size_t columns);

}  // namespace sluice::doctor
