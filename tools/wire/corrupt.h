// Damage to frames, of kinds that different checks catch. Pure.
//
// The kinds that leave the Internet checksum right are there because that is what slips through real
// networks (Phatpackets, section 3; docs/SOURCES.md): only an end-to-end CRC finds them. One kind is an
// attacker's: it leaves the CRC right as well.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/wire/random.h"
#include "tools/wire/settings.h"

namespace sluice::emulator {

// What the bytes of a frame are.
enum class Framing : uint8_t {
  kEthernet,    // a whole Ethernet frame without FCS
  kUdpPayload,  // what a UDP datagram carries, without any header: for simulations
};

// Where the UDP header and payload of a frame lie; payload_bytes is 0 if there is none. Understands IPv4
// and IPv6 without VLAN tag, fragments or extension headers; takes lengths only as far as the frame goes.
struct UdpPlace {
  uint32_t ip_offset = 0;
  uint32_t udp_offset = 0;
  uint32_t payload_offset = 0;
  uint32_t payload_bytes = 0;
  bool has_headers = false;
};
UdpPlace find_udp(std::span<const uint8_t> frame, Framing framing);

// The UDP checksum that the frame should carry, as the 16-bit number to be stored in network byte order.
uint16_t udp_checksum(std::span<const uint8_t> frame, const UdpPlace& place);

enum CorruptKind : uint8_t {
  kCorruptBits = 0,
  kCorruptBitsRepaired,
  kCorruptSwapWords,
  kCorruptTruncate,
  kCorruptForge,
  kCorruptKinds,
};

class Corrupter {
 public:
  explicit Corrupter(const CorruptSettings& settings) : settings_(settings) {}
  void set(const CorruptSettings& settings) { settings_ = settings; }

  // The frame itself, or a damaged copy that is valid until the next call. Adds to `counts`, by kind, what
  // was really done: without UDP payload, or with nothing but equal words, some kinds change nothing.
  std::span<const uint8_t> apply(Draws draws, std::span<const uint8_t> frame, Framing framing,
                                 uint64_t (&counts)[kCorruptKinds]);

 private:
  bool on() const {
    return settings_.bits > 0 || settings_.bits_repaired > 0 || settings_.swap_words > 0 ||
           settings_.truncate > 0 || settings_.forge > 0;
  }
  void invert_bits(Draws& draws, std::span<uint8_t> bytes);
  bool repaired(Draws& draws, Framing framing);
  bool swapped(Draws& draws, Framing framing);
  bool forged(Draws& draws, Framing framing);
  void mend_checksum(const UdpPlace& place);

  CorruptSettings settings_;
  std::vector<uint8_t> copy_;
  std::vector<uint32_t> chosen_;
};

}  // namespace sluice::emulator
