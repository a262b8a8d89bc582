// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "dataplane/base/counted.h"
#include "tools/cli/format.h"
#include "tools/cli/tried.h"  // of tools/cards/tried.tsv, by CMake

namespace sluice::cli {
namespace {

std::string or_dash(const std::string& text) { return text.empty() ? "-" : printable(text); }

std::string host_text(const doctor::HostFacts& host) {
  std::string text = fmt::format("system       {}, Linux {}\n", or_dash(host.system), or_dash(host.kernel));
  text += fmt::format("CPU          {} x {}: {}\n", host.cpus, or_dash(host.cpu),
                      fmt::join(host.instructions, " "));
  return text + fmt::format("memory       {} MiB\n", host.ram_mib);
}

std::string pools_text(const std::vector<doctor::HugepagePool>& pools) {
  std::string text;
  for (const doctor::HugepagePool& pool : pools)
    text += fmt::format("hugepages    node {}: {} MiB of {} KiB pages, {} MiB free\n", pool.numa_node,
                        pool.all_mib, pool.page_kib, pool.free_mib);
  return text;
}

std::string cards_text(const std::vector<doctor::Card>& cards) {
  std::string text;
  for (const doctor::Card& card : cards)
    text +=
        fmt::format("card         {} {} {}{}{}{}\n", card.pci, or_dash(card.driver), or_dash(card.interface),
                    card.speed_mbps > 0 ? fmt::format(" {} Mbit/s", card.speed_mbps) : "",
                    card.iommu_group ? "" : ", no IOMMU group",
                    card.numa_node >= 0 ? fmt::format(", NUMA node {}", card.numa_node) : "");
  return text.empty() ? "card         none on PCI\n" : text;
}

std::string node_text(const doctor::Facts& facts) {
  if (!facts.node) return fmt::format("node         {}\n", or_dash(facts.configuration_error));
  const config::Node& node = *facts.node;
  return fmt::format("node         device {}, MTU {}, {}, memory {}, {} MiB, rings of {} and {}\n",
                     printable(node.device), node.mtu, base::counted(node.workers, "worker"), node.memory,
                     node.memory_mib, node.rx_ring, node.tx_ring);
}

std::string live_text(const Result<api::NodeReply>& live) {
  if (!live) return fmt::format("control      {}\n", printable(live.error().message));
  std::string text = fmt::format("control      version {}\n", printable(live->version()));
  if (!live->dataplane_attached()) return text + "dataplane    not attached\n";
  text += fmt::format("dataplane    {}\n", dataplane_text(*live));
  if (live->has_fallback())
    text += fmt::format("fallback     udp, for {}: {}\n", printable(live->fallback().device()),
                        printable(live->fallback().reason()));
  return text + fmt::format("device       {}\n", or_dash(live->device_abilities()));
}

std::string counters_text(const Result<api::CountersReply>& reply) {
  std::string text;
  for (int i = 0; reply && i < reply->counters_size(); ++i) {
    const auto& counter = reply->counters(i);
    if (counter.value() != 0)
      text += fmt::format("  {:<28} {}\n", printable(counter.name()), counter.value());
  }
  return text.empty() ? "  none\n" : text;
}

}  // namespace

std::string dataplane_text(const api::NodeReply& reply) {
  return fmt::format("{}{}, {}, {}, frames up to {} bytes, CRC by {}", printable(reply.device()),
                     reply.link().empty() ? "" : " (link " + printable(reply.link()) + ")",
                     base::counted(reply.workers(), "worker"),
                     reply.hugepages() ? "hugepages" : "no hugepages", reply.frame_bytes_max(),
                     printable(reply.crc_variant()));
}

std::string tried_text() {
  std::vector<std::vector<std::string>> rows;
  std::vector<size_t> widths;
  std::istringstream lines{std::string(kTried)};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream cells(line);
    std::vector<std::string>& row = rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, '\t');) row.push_back(cell.empty() ? "-" : cell);
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format(" {:<{}}", row[i], widths[i] + 1);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string report_text(const ReportFacts& facts) {
  return fmt::format(
      "sluice {} doctor --report, {}\n"
      "It holds names and addresses of this host and its peers: read it before you send it "
      "on.\n\n{}{}{}{}{}\n"
      "Counters that are not zero\n{}\nWhat sluice doctor says\n{}\nDevices that were tried: device, driver, "
      "DPDK, frames, "
      "workers, cases passed, did not pass, day\n{}",
      facts.node.version, facts.when, host_text(facts.host), pools_text(facts.node.hugepages),
      cards_text(facts.cards), node_text(facts.node), live_text(facts.live), counters_text(facts.counters),
      facts.findings, tried_text());
}

}  // namespace sluice::cli
