// What `sluice node setup` decides: what carries the data, and what the host has to be given for it.
//
// Pure: of the cards that were found and the answers that were given.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/base/error.h"
#include "tools/doctor/cards.h"

namespace sluice::cli {

struct Carrier {
  std::string device;                // for [port] device
  std::optional<doctor::Card> card;  // that it drives

  bool binds() const { return card && !card->shared_with_kernel() && card->driver != "vfio-pci"; }
  // What systemd has to let sluice-dataplane.service do besides: lines of its [Service]. Empty: nothing, as
  // with sockets. A device of the kernel, or one that is shared with it, sees whole frames.
  std::string service_rights() const;
};

// `asked`: udp, an interface, a PCI address, or a device of DPDK. A card that the host itself needs is taken
// only with `take`.
Result<Carrier> carrier_of(const std::vector<doctor::Card>& cards, const std::string& asked, bool take);
// The fastest card that nobody needs and that can be had; nothing: there is none.
const doctor::Card* free_card(const std::vector<doctor::Card>& cards);
// What is taken when nothing was said: the sockets, unless there is an address that this host does not have,
// which then is that of a free card.
Result<std::string> default_device(const std::vector<doctor::Card>& cards, const doctor::Addresses& here,
                                   const std::string& address);
// "eth2  0000:01:00.0  ixgbe  100 Gbit/s  NUMA node 1", and why it is not free.
std::string card_line(const doctor::Card& card);
// DIR/host.conf: what sluice-host.service does before the dataplane starts.
std::string host_file(const Carrier& carrier, uint32_t memory_mib);
// The same as commands, for a node that is not of the services: what the host needs before its dataplane
// starts.
std::vector<std::string> host_commands(const Carrier& carrier, uint32_t memory_mib);

}  // namespace sluice::cli
