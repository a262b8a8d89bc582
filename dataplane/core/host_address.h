// Which addresses are those of another host, so that data may be sent there (docs/WIRE.md 2.2).
//
// Pure. IPv4 addresses are held as ::ffff:a.b.c.d.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace sluice {

using AddressBytes = std::span<const uint8_t, 16>;

// Why nothing may be sent to `ip`, whoever names it; empty: it may. Both are of one family. A node whose own
// address is a loopback has its peers there, too.
inline std::string_view address_problem(AddressBytes ip, AddressBytes own) {
  const auto starts_with = [](AddressBytes address, std::initializer_list<uint8_t> bytes) {
    return std::equal(bytes.begin(), bytes.end(), address.begin());
  };
  const auto loopback = [&](AddressBytes address) {
    return starts_with(address, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127}) ||
           starts_with(address, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  };
  if (std::equal(ip.begin(), ip.end(), own.begin())) return "is this node's own";
  if (loopback(ip)) return loopback(own) ? "" : "is a loopback address";
  if (starts_with(own, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF})) {
    if (ip[12] == 0) return "is no address of a host";
    if (ip[12] >= 240) return "is a broadcast address, or a reserved one";
    return ip[12] >= 224 ? "is a multicast address" : "";
  }
  if (starts_with(ip, {0, 0, 0, 0, 0, 0, 0, 0})) return "is no address of a host";
  return ip[0] == 0xFF ? "is a multicast address" : "";
}

}  // namespace sluice
