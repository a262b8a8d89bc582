// Ethernet, IPv4/IPv6 and UDP around a Sluice datagram: parsing what arrived, prebuilding what leaves.
//
// Pure. No VLAN tags, IP options, extension headers or fragments: Sluice sends none and drops them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/net/address.h"

namespace sluice::net {

inline constexpr size_t kEthernetBytes = 14;
inline constexpr size_t kIp4Bytes = 20;
inline constexpr size_t kIp6Bytes = 40;
inline constexpr size_t kUdpBytes = 8;
inline constexpr size_t kFrameHeaderBytesMax = kEthernetBytes + kIp6Bytes + kUdpBytes;
// Preamble, start delimiter, FCS and inter-frame gap: what a frame costs on the wire beyond itself.
inline constexpr uint32_t kWireOverheadBytes = 24;

// The largest chunk in a frame of so many bytes without FCS; 0: none.
uint32_t chunk_bytes_that_fit(uint32_t frame_bytes, size_t ip_header_bytes);

enum class Parse : uint8_t {
  kUdp,        // fields of UdpFrame are set
  kOther,      // not IP/UDP: perhaps ARP, ND, ICMP
  kMalformed,  // lengths or IPv4 header checksum wrong, options, IPv4 addresses in IPv6
  kFragment,   // of IPv4, or UDP that may have been put together of some: without DF
};

struct UdpFrame {
  Address source;
  Address destination;
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
  uint16_t checksum = 0;         // as found; 0: the sender computed none
  std::span<const uint8_t> udp;  // UDP header and payload
  std::span<const uint8_t> payload;
};
Parse parse_udp(std::span<const uint8_t> frame, UdpFrame* out);

// One's complement sum of the pseudo header and `udp` (RFC 768, RFC 8200 8.1): 0xFFFF when good.
uint16_t udp_sum(const Address& source, const Address& destination, std::span<const uint8_t> udp);

// The constant front of a flow's frames.
class FrameTemplate {
 public:
  FrameTemplate() = default;
  FrameTemplate(const Address& source, uint16_t source_port, const Address& destination,
                uint16_t destination_port);

  void set_macs(const uint8_t* source, const uint8_t* destination);
  size_t bytes() const { return bytes_; }
  // Writes the headers for `payload_bytes` of UDP payload; the UDP checksum is left zero.
  void write(uint8_t* out, uint32_t payload_bytes) const;
  // Checksum over header part and payload part of the UDP payload, to be stored by the caller.
  // `front` must have even length.
  uint16_t udp_checksum(std::span<const uint8_t> front, std::span<const uint8_t> rest) const;
  // Sum of the pseudo header alone, which an offloading device wants in the field.
  uint16_t pseudo_checksum(uint32_t payload_bytes) const;
  size_t udp_checksum_at() const { return bytes_ - 2; }

 private:
  uint8_t front_[kFrameHeaderBytesMax] = {};
  size_t bytes_ = 0;
  uint32_t ip4_sum_ = 0;     // of the constant words of the IPv4 header
  uint32_t pseudo_sum_ = 0;  // of addresses and protocol
  bool ip4_ = true;
};

}  // namespace sluice::net
