// A node for the specification handshake. For tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "control/leg/negotiation.h"

namespace sluice::transfer::test {

// With the address 10.77.0.`last`, and nothing that has to be negotiated.
inline Abilities plain_node(uint8_t last) {
  Abilities node;
  node.port.extent_bytes_max = 1U << 20;
  const uint8_t ip[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 77, 0, last};
  std::memcpy(node.port.ip4, ip, 16);
  node.port.chunk_bytes_max_ip4 = 8896;
  return node;
}

}  // namespace sluice::transfer::test
