// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "dataplane/base/counted.h"
#include "dataplane/base/text.h"

namespace sluice::doctor {
namespace {

constexpr size_t kColumnsMin = 40;
constexpr std::string_view kIndent = "  ";
constexpr size_t kLabelColumns = 9;

class Drawing {
 public:
  explicit Drawing(size_t columns) : columns_(std::max(columns, kColumnsMin)) {}

  void line(std::string text) {
    text = base::printable(text);
    if (text.size() > columns_) text = text.substr(0, columns_ - 2) + "..";
    lines_.push_back(std::move(text));
  }
  // Words behind a label, in as many lines as they take.
  void list(std::string_view label, const std::vector<std::string>& words) {
    std::string text = fmt::format("{}{:<{}}", kIndent, label, kLabelColumns);
    const size_t begin = text.size();
    for (const std::string& word : words) {
      if (text.size() > begin && text.size() + 1 + word.size() > columns_) {
        line(std::move(text));
        text.assign(begin, ' ');
      }
      text += (text.size() > begin ? " " : "") + word;
    }
    line(std::move(text));
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  const size_t columns_;
  std::vector<std::string> lines_;
};

// "2+66" for two threads of one core; in brackets where a worker is.
std::string core_text(const PlanCore& core) {
  std::string text;
  for (const int cpu : core.cpus) text += fmt::format("{}{}", text.empty() ? "" : "+", cpu);
  if (core.isolated) text += "*";
  if (core.workers.empty()) return text;
  std::string workers;
  for (const int worker : core.workers) workers += fmt::format("{}{}", workers.empty() ? "" : ",", worker);
  return fmt::format("[{}=w{}]", text, workers);
}

std::string port_text(const PlanPort& port) {
  std::string text = port.name;
  if (!port.pci.empty() && port.pci != port.name) text += " " + port.pci;
  if (!port.driver.empty()) text += " " + port.driver;
  if (port.speed_mbps > 0) text += fmt::format(" {} Mbit/s", port.speed_mbps);
  return text + (port.data ? "  <- the data port" : "");
}

std::string disk_text(const PlanDisk& disk) {
  std::string text = fmt::format("{} {} GB", disk.name, disk.size_bytes / 1'000'000'000);
  for (const std::string& name : disk.exports) text += "  <- export " + name;
  return text;
}

void draw_node(const PlanNode& node, Drawing& drawing) {
  if (node.number < 0) {
    drawing.line("anywhere (the kernel does not say where)");
  } else {
    std::string text = fmt::format("NUMA node {}: {} MiB", node.number, node.memory_mib);
    for (size_t to = 0; to < node.distances.size() && node.distances.size() > 1; ++to)
      text += fmt::format("{}{}", to == 0 ? ", distances " : " ", node.distances[to]);
    drawing.line(std::move(text));
  }
  std::set<int> packages;
  for (const PlanCore& core : node.cores) packages.insert(core.package);
  for (const int package : packages) {
    std::vector<std::string> words;
    for (const PlanCore& core : node.cores) {
      if (core.package == package) words.push_back(core_text(core));
    }
    drawing.list(fmt::format("socket {}", package), words);
  }
  for (const PlanPort& port : node.ports) drawing.list("port", {port_text(port)});
  for (const PlanDisk& disk : node.disks) drawing.list("disk", {disk_text(disk)});
  for (const std::string& name : node.exports) drawing.list("export", {name});
}

}  // namespace

std::vector<std::string> draw(const Plan& plan, size_t columns) {
  Drawing drawing(columns);
  size_t cores = 0;
  size_t cpus = 0;
  bool isolated = false;
  for (const PlanNode& node : plan.nodes) {
    cores += node.cores.size();
    for (const PlanCore& core : node.cores) {
      cpus += core.cpus.size();
      isolated |= core.isolated;
    }
    draw_node(node, drawing);
  }
  drawing.line(fmt::format("{}, {}; {}", base::counted(cores, "core"), base::counted(cpus, "CPU"),
                           plan.cores_chosen
                               ? fmt::format("[CPU=wN]: worker N of {}", plan.workers)
                               : fmt::format("{}, on cores that sluice-dataplane chooses near the port",
                                             base::counted(plan.workers, "worker"))));
  if (isolated) drawing.line("*: the kernel runs nothing else there (isolcpus)");
  return drawing.take();
}

}  // namespace sluice::doctor
