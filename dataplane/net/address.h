// Addresses as every layer of the dataplane holds them.
//
// Pure. IPv4 addresses are held as ::ffff:a.b.c.d in 16 bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

namespace sluice::net {

struct Address {
  uint8_t bytes[16] = {};
  static Address of(const uint8_t* sixteen_bytes) {
    Address address;
    std::memcpy(address.bytes, sixteen_bytes, sizeof address.bytes);
    return address;
  }
  bool is_ip4() const {
    static constexpr uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    return std::memcmp(bytes, kPrefix, sizeof kPrefix) == 0;
  }
  bool is_zero() const {
    static constexpr uint8_t kZero[16] = {};
    return std::memcmp(bytes, kZero, sizeof kZero) == 0;
  }
  bool operator==(const Address&) const = default;
};

// Where a datagram comes from or goes to.
struct Endpoint {
  Address address;
  uint16_t port = 0;  // UDP
  bool operator==(const Endpoint&) const = default;
};

}  // namespace sluice::net
