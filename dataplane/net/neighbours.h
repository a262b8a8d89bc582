// The next hop's link address, and what a host on a wire owes its neighbours: ARP (RFC 826),
// neighbour solicitation and advertisement (RFC 4861), echo replies (RFC 792, RFC 4443).
//
// Shared by all workers, which take turns at the table: one that finds it taken goes on without, and comes
// back with its next turn. No DPDK and no clock: takes a frame and the time, writes a frame. Bounded,
// allocation free but for the constructor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/net/neighbour_table.h"

namespace sluice::net {

using Ip = uint8_t[16];  // IPv4 as ::ffff:a.b.c.d

struct FixedNeighbour {
  Address ip;
  LinkAddress link;
};

struct HostAddresses {
  uint8_t mac[6] = {};
  uint8_t ip4[16] = {};  // all zero: none
  uint8_t ip6[16] = {};  // all zero: none (the link-local address is derived from the MAC)
  uint8_t gateway4[16] = {};
  uint8_t gateway6[16] = {};
  uint8_t prefix4 = 0;  // length in bits, of a.b.c.d (0..32)
  uint8_t prefix6 = 0;  // 0..128
  std::vector<FixedNeighbour> fixed = {};
};

class Neighbours {
 public:
  explicit Neighbours(const HostAddresses& host);

  const HostAddresses& host() const { return host_; }

  // Whose link address packets to `destination` go to: itself, or the gateway when it is off-link. nullptr:
  // there is no route (no address of that family here, or off-link without a gateway).
  const uint8_t* next_hop(const uint8_t* destination) const;

  struct Found {
    bool taken = false;  // another worker has the table: ask again with the next turn
    NeighbourTable::Way way;
    uint32_t frame_bytes = 0;  // a question that is to be sent now
  };
  // The link address for packets to `hop`, a next hop; `confirmed_ns` as in NeighbourTable::want. `frame`:
  // room for a question.
  Found resolve(const uint8_t* hop, uint64_t confirmed_ns, uint64_t now_ns, std::span<uint8_t> frame);

  struct Handled {
    bool ours = false;         // ARP, neighbour discovery or an echo request; others count as not ours
    bool own_link = false;     // another host says that it has the link address of this port
    bool contested = false;    // it names another link address for a neighbour that is known
    uint32_t reply_bytes = 0;  // 0: nothing is to be sent
  };
  // Handles a frame that is not a UDP datagram for us: learns from ARP and ND, answers requests for our
  // addresses and echo requests.
  Handled handle(std::span<const uint8_t> frame, uint64_t now_ns, std::span<uint8_t> reply);

 private:
  using Word = NeighbourTable::Word;
  struct Frame {
    std::span<const uint8_t> bytes;
    uint64_t now_ns = 0;
    std::span<uint8_t> reply;
  };
  void learn(const uint8_t* ip, const uint8_t* mac, Word word, const Frame& frame, Handled* out);
  void handle_arp(const Frame& frame, Handled* out);
  bool handle_icmp4(const Frame& frame, Handled* out);
  bool handle_icmp6(const Frame& frame, Handled* out);
  void handle_advertisement(const Frame& frame, std::span<const uint8_t> message, bool to_host, Handled* out);
  void answer_solicitation(const Frame& frame, std::span<const uint8_t> message, Handled* out);
  uint32_t answer_echo6(const Frame& frame, std::span<const uint8_t> message) const;
  uint32_t write_question(const uint8_t* hop, const uint8_t* link, std::span<uint8_t> frame) const;

  HostAddresses host_;
  std::atomic_flag taken_;
  NeighbourTable table_;
};

}  // namespace sluice::net
