// Which addresses of this host the data port has, and what fits through their interfaces.
//
// Cold. choose_addresses is pure; host_interfaces asks the kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"
#include "dataplane/net/address.h"

namespace sluice::udp {

struct InterfaceAddress {
  std::string interface;
  net::Address address;
  uint32_t mtu = 0;
  bool loopback = false;
};
struct HostInterfaces {
  std::vector<InterfaceAddress> addresses;  // of interfaces that are up; no link-local ones
  net::Address default4;                    // with which this host speaks to the world; zero: with none
  net::Address default6;
};
HostInterfaces host_interfaces();

struct LocalAddresses {
  net::Address ip4;  // zero: none
  net::Address ip6;
  uint32_t mtu = 0;
  std::vector<std::string> interfaces;  // that have these addresses
};
// Those that node.toml names, or, if it names none, those of the default route; failing these any of the
// host. kConfiguration: this host has no such address.
// `keys`: before the names of the keys, in errors ("fallback_").
Result<LocalAddresses> choose_addresses(const config::Node& node, const HostInterfaces& host,
                                        const std::string& keys = "");

}  // namespace sluice::udp
