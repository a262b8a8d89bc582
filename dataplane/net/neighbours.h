// The next hop's link address, and what a host on a wire owes its neighbours: ARP (RFC 826),
// neighbour solicitation and advertisement (RFC 4861), echo replies (RFC 792, RFC 4443).
//
// Shared by all workers: the table is a fixed array of atomics, several writers may store the same
// answer. Pure packet code, no DPDK: takes a frame, writes a reply frame. Bounded, allocation free.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

namespace sluice::net {

using Ip = uint8_t[16];  // IPv4 as ::ffff:a.b.c.d

struct HostAddresses {
  uint8_t mac[6] = {};
  uint8_t ip4[16] = {};  // all zero: none
  uint8_t ip6[16] = {};  // all zero: none (the link-local address is derived from the MAC)
  uint8_t gateway4[16] = {};
  uint8_t gateway6[16] = {};
  uint8_t prefix4 = 0;  // length in bits, of a.b.c.d (0..32)
  uint8_t prefix6 = 0;  // 0..128
};

class Neighbours {
 public:
  static constexpr uint32_t kEntries = 128;
  explicit Neighbours(const HostAddresses& host);

  const HostAddresses& host() const { return host_; }

  // Link address for packets to `destination` (through the gateway when it is off-link). False while
  // unknown: then send what `solicit` writes, at most every 100 ms, and try again.
  bool resolve(const uint8_t* destination, uint8_t* mac_out) const;
  // Writes an ARP request or neighbour solicitation for that next hop; returns its length, 0 when
  // there is no route (no address of that family here, or off-link without a gateway).
  uint32_t solicit(const uint8_t* destination, std::span<uint8_t> frame) const;
  // Handles a frame that is not a UDP datagram for us: learns from ARP and ND, answers requests for
  // our addresses and echo requests. `reply_bytes` is 0 when nothing is to be sent. Returns false
  // when the frame was of no such protocol (the caller counts it as not ours).
  bool handle(std::span<const uint8_t> frame, std::span<uint8_t> reply, uint32_t* reply_bytes);

 private:
  struct Entry {
    std::atomic<uint64_t> ip_high{0}, ip_low{0}, mac{0};  // mac 0: empty
  };
  const uint8_t* next_hop(const uint8_t* destination) const;
  void learn(const uint8_t* ip, const uint8_t* mac);
  bool handle_arp(std::span<const uint8_t> frame, std::span<uint8_t> reply, uint32_t* reply_bytes);
  bool handle_icmp4(std::span<const uint8_t> frame, std::span<uint8_t> reply, uint32_t* reply_bytes);
  bool handle_icmp6(std::span<const uint8_t> frame, std::span<uint8_t> reply, uint32_t* reply_bytes);
  uint32_t answer_solicitation(std::span<const uint8_t> packet, std::span<const uint8_t> message,
                               std::span<uint8_t> reply);
  uint32_t answer_echo6(std::span<const uint8_t> frame, std::span<const uint8_t> message,
                        std::span<uint8_t> reply) const;

  HostAddresses host_;
  Entry entries_[kEntries];
};

}  // namespace sluice::net
