// The plan of this machine, from sysfs.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <system_error>

#include "tools/doctor/gather.h"
#include "tools/doctor/topology.h"

namespace sluice::doctor {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSectorBytes = 512;  // of the kernel's `size`, whatever the disk's are
constexpr int kNodesMax = 1024;

int64_t number_at(const fs::path& file, int64_t otherwise) {
  const std::string word = first_word(file);
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  return word.empty() || failure != std::errc() ? otherwise : value;
}

std::vector<fs::path> sorted_below(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory, error)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

uint64_t memory_mib(const fs::path& meminfo) {
  std::ifstream in(meminfo);
  for (std::string word; in >> word;) {
    uint64_t kib = 0;
    if (word == "MemTotal:" && in >> kib) return kib / 1024;
  }
  return 0;
}

PlanNode& node_of(Plan& plan, int64_t number) {
  const auto found = std::find_if(plan.nodes.begin(), plan.nodes.end(),
                                  [number](const PlanNode& each) { return each.number == number; });
  if (found != plan.nodes.end()) return *found;
  // With one node all is on it; otherwise what nobody knows stands by itself, at the end.
  if (plan.nodes.size() == 1 && plan.nodes.front().number >= 0) return plan.nodes.front();
  if (plan.nodes.empty() || plan.nodes.back().number >= 0) plan.nodes.push_back({.number = -1});
  return plan.nodes.back();
}

void add_nodes(const fs::path& root, Plan* plan) {
  const auto distances = gather_numa_distances(root);
  std::error_code error;
  for (int number = 0; number < kNodesMax; ++number) {
    const fs::path folder = root / fmt::format("sys/devices/system/node/node{}", number);
    if (!fs::exists(folder, error)) continue;
    PlanNode& node =
        plan->nodes.emplace_back(PlanNode{.number = number, .memory_mib = memory_mib(folder / "meminfo")});
    if (static_cast<size_t>(number) < distances.size())
      node.distances = distances[static_cast<size_t>(number)];
  }
  if (plan->nodes.empty())  // a kernel without NUMA
    plan->nodes.push_back({.number = 0, .memory_mib = memory_mib(root / "proc/meminfo")});
}

void add_cores(const config::Node& config, const fs::path& root, Plan* plan) {
  const fs::path all = root / "sys/devices/system/cpu";
  const std::vector<int> online = parse_cpu_list(first_word(all / "online"));
  std::map<std::pair<int64_t, int64_t>, std::pair<int, PlanCore>> cores;  // by package and core: node, core
  for (const CpuFacts& cpu : gather_cpus(root, online)) {
    const fs::path topology = all / fmt::format("cpu{}/topology", cpu.cpu);
    const int64_t package = std::max<int64_t>(number_at(topology / "physical_package_id", 0), 0);
    const int64_t core = number_at(topology / "core_id", cpu.cpu);
    auto& [node, one] = cores[{package, core}];
    node = cpu.numa_node;
    one.package = static_cast<int>(package);
    one.cpus.push_back(cpu.cpu);
    one.isolated |= cpu.isolated;
    for (size_t worker = 0; worker < config.cores.size(); ++worker) {
      if (config.cores[worker] == cpu.cpu) one.workers.push_back(static_cast<int>(worker));
    }
  }
  for (auto& [key, core] : cores) node_of(*plan, core.first).cores.push_back(std::move(core.second));
  for (PlanNode& node : plan->nodes)
    std::sort(node.cores.begin(), node.cores.end(),
              [](const PlanCore& a, const PlanCore& b) { return a.cpus < b.cpus; });
}

void add_ports(const config::Node& config, const fs::path& root, Plan* plan) {
  const DeviceFacts data = gather_device(config, root);
  bool data_seen = false;
  std::error_code error;
  for (const fs::path& folder : sorted_below(root / "sys/class/net")) {
    const fs::path device = fs::canonical(folder / "device", error);
    if (error) continue;  // a bridge, a tunnel, the loopback: no hardware
    PlanPort port{.name = folder.filename(), .speed_mbps = number_at(folder / "speed", -1)};
    const bool pci =
        fs::exists(device / "vendor", error) && device.filename().string().find(':') != std::string::npos;
    if (pci) port.pci = device.filename();
    port.driver = fs::read_symlink(device / "driver", error).filename();
    port.data = !data.name.empty() && (data.name == port.name || data.name == port.pci);
    data_seen |= port.data;
    node_of(*plan, number_at(device / "numa_node", -1)).ports.push_back(std::move(port));
  }
  if (data_seen) return;
  // Bound to a driver that makes no interface, or of no hardware at all.
  PlanPort port{.name = data.name.empty() ? config.device.substr(0, config.device.find(',')) : data.name,
                .driver = data.driver,
                .data = true};
  node_of(*plan, data.numa_node).ports.push_back(std::move(port));
}

void add_disks(const config::Node& config, const fs::path& root, Plan* plan) {
  std::map<std::string, std::vector<std::string>> exports;  // by disk
  for (const config::Export& each : config.exports) {
    const std::string name = fmt::format("{} ({})", each.name, each.path.string());
    const DiskFacts disk = gather_disk(each.path, root);
    if (disk.device.empty()) {
      node_of(*plan, -1).exports.push_back(name);
    } else {
      exports[disk.device].push_back(name);
    }
  }
  std::error_code error;
  for (const fs::path& folder : sorted_below(root / "sys/block")) {
    const std::string name = folder.filename();
    const bool hardware = fs::exists(folder / "device", error);
    if (!hardware && !exports.contains(name)) continue;  // loop, ram, zram: nobody's but an export's
    PlanDisk disk{.name = name,
                  .size_bytes = static_cast<uint64_t>(number_at(folder / "size", 0)) * kSectorBytes,
                  .exports = exports[name]};
    int64_t node = -1;
    fs::path at = fs::canonical(folder, error);
    for (; !error && node < 0 && at.has_relative_path() && at != root; at = at.parent_path())
      node = number_at(at / "numa_node", -1);
    node_of(*plan, node).disks.push_back(std::move(disk));
  }
}

}  // namespace

Plan gather_plan(const config::Node& node, const fs::path& root) {
  Plan plan{.workers = node.workers, .cores_chosen = !node.cores.empty(), .device = node.device};
  add_nodes(root, &plan);
  add_cores(node, root, &plan);
  add_ports(node, root, &plan);
  add_disks(node, root, &plan);
  return plan;
}

}  // namespace sluice::doctor
