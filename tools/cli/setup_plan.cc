// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/setup_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "dataplane/base/config/config.h"
#include "tools/cli/format.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

using doctor::Card;

constexpr uint64_t kSocketBufferBytes = 4U << 20;  // what the dataplane asks for

Error refused(const Card& card, const std::string& why) {
  return {ErrorCode::kConfiguration, "--device: " + card.pci + " " + why};
}

std::string shown_addresses(const Card& card) {
  std::string text;
  for (const std::string& address : card.addresses) text += (text.empty() ? "" : ", ") + address;
  if (card.default_route) text += text.empty() ? "the default route" : " and the default route";
  return text;
}

bool can_be_had(const Card& card) {
  return card.driver == "vfio-pci" || card.shared_with_kernel() || card.iommu_group;
}

// As it may be written: "01:00.0" is in the first domain.
std::string full_pci(const std::string& text) { return text.size() == 7 ? "0000:" + text : text; }

}  // namespace

std::string Carrier::service_rights() const {
  const auto rights = [](const std::string& names) {
    return "CapabilityBoundingSet=" + names + "\nAmbientCapabilities=" + names + "\n";
  };
  if (device.starts_with("net_af_packet") || (card && card->shared_with_kernel()))
    return rights("CAP_NET_RAW");
  // It loads a program into the kernel's driver, and changes the interface's MTU.
  if (device.starts_with("net_af_xdp"))
    return rights("CAP_NET_RAW CAP_NET_ADMIN CAP_BPF") +
           "RestrictAddressFamilies=AF_XDP\nSystemCallFilter=bpf\n";
  return "";
}

Result<Carrier> carrier_of(const std::vector<Card>& cards, const std::string& asked, bool take) {
  if (asked == config::kSocketDevice || asked.starts_with("net_"))
    return Carrier{.device = asked, .card = {}};
  const auto it = std::find_if(cards.begin(), cards.end(), [&](const Card& card) {
    return card.pci == full_pci(asked) || (!card.interface.empty() && card.interface == asked);
  });
  if (it == cards.end()) {
    std::string there;
    for (const Card& card : cards)
      there += (there.empty() ? "" : ", ") + (card.interface.empty() ? card.pci : card.interface);
    return Error{ErrorCode::kConfiguration,
                 "--device: " + printable(asked) + " is no network card of this host; there " +
                     (there.empty() ? "is none: take the sockets with --device udp"
                                    : "is " + there + ", and udp, the sockets of this host")};
  }
  if (it->in_use() && !it->shared_with_kernel() && !take) {
    return refused(*it, "carries " + shown_addresses(*it) +
                            " of this host, which would be cut off; choose another, or give --take if that "
                            "is what you want");
  }
  if (!can_be_had(*it)) {
    return refused(*it,
                   "has no IOMMU group, so that vfio-pci cannot take it; switch the IOMMU on in the firmware "
                   "and with intel_iommu=on or amd_iommu=on on the kernel's command line");
  }
  return Carrier{.device = it->pci, .card = *it};
}

const Card* free_card(const std::vector<Card>& cards) {
  const Card* best = nullptr;
  for (const Card& card : cards) {
    if (card.in_use() || !can_be_had(card)) continue;
    if (best == nullptr || card.speed_mbps > best->speed_mbps) best = &card;
  }
  return best;
}

Result<std::string> default_device(const std::vector<Card>& cards, const doctor::Addresses& here,
                                   const std::string& address) {
  const auto bare = [](const std::string& text) { return text.substr(0, text.find('/')); };
  bool ours = address.empty();
  for (const auto& [interface, list] : here) {
    for (const std::string& one : list) ours = ours || bare(one) == bare(address);
  }
  if (ours) return std::string(config::kSocketDevice);
  if (const Card* card = free_card(cards)) return card->pci;
  return Error{ErrorCode::kConfiguration,
               "--address: " + printable(address) +
                   " is no address of this host, and there is no free network card "
                   "to give it to; name one of this host, or a --device"};
}

std::string card_line(const Card& card) {
  std::string text = fmt::format("{:<10} {}  {:<10}", card.interface.empty() ? "-" : card.interface, card.pci,
                                 card.driver.empty() ? "no driver" : card.driver);
  text += card.speed_mbps > 0 ? fmt::format("  {}", format_rate(static_cast<double>(card.speed_mbps) * 1e6))
                              : "  no link";
  if (card.numa_node >= 0) text += fmt::format("  NUMA node {}", card.numa_node);
  if (card.in_use()) return text + "  in use: " + shown_addresses(card);
  return can_be_had(card) ? text : text + "  no IOMMU";
}

std::string host_file(const Carrier& carrier, uint32_t memory_mib) {
  std::string text =
      "# What sluice-host.service gives this host before sluice-dataplane starts. Made by `sluice node "
      "setup`.\n"
      "# After a change: systemctl restart sluice-host sluice-dataplane\n\n"
      "# The largest buffers of a socket, at least.\n";
  text += fmt::format("SOCKET_BUFFER_BYTES={}\n\n", kSocketBufferBytes);
  text +=
      "# Hugepages of 2 MiB, at least: as many MiB as [dataplane] memory_mib; on which NUMA node, where not "
      "everywhere.\n";
  text += carrier.card ? fmt::format("HUGEPAGES_MIB={}\n", memory_mib) : "#HUGEPAGES_MIB=1024\n";
  text += carrier.card && carrier.card->numa_node >= 0
              ? fmt::format("HUGEPAGES_NODE={}\n", carrier.card->numa_node)
              : "#HUGEPAGES_NODE=0\n";
  text += "\n# The card that is taken from the kernel, by its PCI address.\n";
  const bool vfio = carrier.card && !carrier.card->shared_with_kernel();
  text += vfio ? "DEVICE=" + carrier.card->pci + "\n" : "#DEVICE=0000:01:00.0\n";
  return text + "#DRIVER=vfio-pci\n";
}

std::vector<std::string> host_commands(const Carrier& carrier, uint32_t memory_mib) {
  if (!carrier.card) return {};
  const Card& card = *carrier.card;
  std::string host = fmt::format("HUGEPAGES_MIB={} ", memory_mib);
  if (card.numa_node >= 0) host += fmt::format("HUGEPAGES_NODE={} ", card.numa_node);
  std::vector<std::string> commands;
  if (carrier.binds()) commands.emplace_back("modprobe vfio-pci");
  if (!card.shared_with_kernel()) host += "DEVICE=" + card.pci + " GROUP=$(id -gn) ";
  commands.push_back(host + "/usr/libexec/sluice/sluice-host");
  return commands;
}

}  // namespace sluice::cli
