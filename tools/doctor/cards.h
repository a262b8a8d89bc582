// The network cards of a host, for whoever chooses one for the data port: what the kernel tells of its PCI
// devices.
//
// Reads sysfs and procfs, blocking; changes nothing. `root` stands for "/" in tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace sluice::doctor {

struct Card {
  std::string pci;           // "0000:01:00.0"
  std::string interface;     // of the kernel; empty: it has made none, as of a card on vfio-pci
  std::string driver;        // empty: none is bound
  int64_t speed_mbps = -1;   // -1: not known, or no link
  int numa_node = -1;        // -1: not known
  bool up = false;           // it has a link
  bool iommu_group = false;  // vfio-pci can take it
  bool default_route = false;
  std::vector<std::string> addresses;  // that the kernel has there, with their lengths

  // The host would lose something if the kernel lost this card.
  bool in_use() const { return default_route || !addresses.empty(); }
  // DPDK uses it beside the kernel, so that nothing is bound to another driver.
  bool shared_with_kernel() const { return driver == "mlx5_core" || driver == "mlx4_core"; }
};

using Addresses = std::map<std::string, std::vector<std::string>>;  // by interface

// In the order of their PCI addresses.
std::vector<Card> gather_cards(const std::filesystem::path& root, const Addresses& addresses);
// Of this host, but those of the link alone.
Addresses gather_addresses();

}  // namespace sluice::doctor
