// Ethernet frames with a UDP datagram of random bytes and right checksums.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/core/wire.h"
#include "tools/wire/random.h"

namespace sluice::emulator {

// Internet checksum arithmetic of its own: the sum of the pseudo-header and the whole UDP datagram, checksum
// included, must be 0xffff (RFC 768).
inline uint32_t udp_sum(const std::vector<uint8_t>& frame) {
  const bool ip4 = frame[14] >> 4 == 4;
  const size_t ip_bytes = ip4 ? 20 : 40;
  const size_t addresses = ip4 ? 14 + 12 : 14 + 8;
  const size_t udp = 14 + ip_bytes;
  const size_t udp_bytes = frame.size() - udp;
  uint32_t sum = 17;
  const auto add = [&](uint32_t word) {
    sum += word;
    sum = (sum & 0xffff) + (sum >> 16);
  };
  add(static_cast<uint32_t>(udp_bytes));
  for (size_t i = addresses; i < udp; i += 2) add(static_cast<uint32_t>(frame[i] << 8 | frame[i + 1]));
  for (size_t i = udp; i < frame.size(); i += 2) {
    add(static_cast<uint32_t>(frame[i] << 8 | (i + 1 < frame.size() ? frame[i + 1] : 0)));
  }
  return sum;
}

inline std::vector<uint8_t> udp_frame(uint32_t payload_bytes, bool ip6 = false, uint64_t content = 1,
                                      bool with_checksum = true) {
  const uint32_t ip_bytes = ip6 ? 40 : 20;
  std::vector<uint8_t> frame(14 + ip_bytes + 8 + payload_bytes);
  Draws draws(content, payload_bytes, Stage::kCorrupt);
  for (uint8_t& byte : frame) byte = static_cast<uint8_t>(draws.next());
  uint8_t* const ip = frame.data() + 14;
  uint8_t* const udp = ip + ip_bytes;
  wire::store_be16(frame.data() + 12, ip6 ? 0x86dd : 0x0800);
  ip[0] = ip6 ? 0x60 : 0x45;
  ip[ip6 ? 6 : 9] = 17;
  if (!ip6) wire::store_be16(ip + 6, 0);
  wire::store_be16(udp + 4, static_cast<uint16_t>(8 + payload_bytes));
  wire::store_be16(udp + 6, 0);
  if (with_checksum) {
    const auto checksum = static_cast<uint16_t>(~udp_sum(frame));
    wire::store_be16(udp + 6, checksum == 0 ? 0xffff : checksum);
  }
  return frame;
}

}  // namespace sluice::emulator
