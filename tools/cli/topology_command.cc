// sluice node topology: where cores, ports, disks and workers lie.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "tools/cli/app.h"
#include "tools/doctor/topology.h"

namespace sluice::cli {
namespace {

constexpr size_t kColumns = 80;

api::Json node_json(const doctor::PlanNode& node) {
  api::Json cores = api::Json::array();
  for (const doctor::PlanCore& core : node.cores)
    cores.push_back({{"package", core.package},
                     {"cpus", core.cpus},
                     {"workers", core.workers},
                     {"isolated", core.isolated}});
  api::Json ports = api::Json::array();
  for (const doctor::PlanPort& port : node.ports)
    ports.push_back({{"name", port.name},
                     {"pci", port.pci},
                     {"driver", port.driver},
                     {"speed_mbps", port.speed_mbps},
                     {"data_port", port.data}});
  api::Json disks = api::Json::array();
  for (const doctor::PlanDisk& disk : node.disks)
    disks.push_back({{"name", disk.name}, {"size_bytes", disk.size_bytes}, {"exports", disk.exports}});
  return {{"numa_node", node.number},  {"memory_mib", node.memory_mib}, {"distances", node.distances},
          {"cores", std::move(cores)}, {"ports", std::move(ports)},     {"disks", std::move(disks)},
          {"exports", node.exports}};
}

Result<int> topology(const Context& context) {
  const auto directory = context.existing_node_directory();
  if (!directory) return directory.error();
  const auto node = config::load(*directory);
  if (!node) return node.error();
  const doctor::Plan plan = doctor::gather_plan(*node, "/");
  api::Json nodes = api::Json::array();
  for (const doctor::PlanNode& each : plan.nodes) nodes.push_back(node_json(each));
  std::string text;
  for (const std::string& line : doctor::draw(plan, kColumns)) text += line + "\n";
  context.print({{"schema", "sluice.topology.v1"},
                 {"device", plan.device},
                 {"workers", plan.workers},
                 {"nodes", std::move(nodes)}},
                text);
  return 0;
}

}  // namespace

void add_node_topology(CLI::App& node, Context& context) {
  node.add_subcommand("topology", "Draw where NUMA nodes, cores, ports, disks and workers lie")
      ->callback([&context] { context.action = [&context] { return topology(context); }; });
}

}  // namespace sluice::cli
