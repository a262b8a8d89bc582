// A UDP socket of one flow: bound to its local end, connected to its peer, set up as the lanes want it.
//
// Cold. The kernel then hands over what this peer sends to this port and nothing else, tells what the network
// reports of the way there (ICMP), and sets DF on all that leaves (docs/WIRE.md 1). Where the peer is learnt
// from its datagrams, and may move, the socket stays unconnected: it hands over what anybody sends there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>

#include "dataplane/base/unique_fd.h"
#include "dataplane/net/datagram_queue.h"

namespace sluice::udp {

// What is asked for each way; the kernel gives what net.core.rmem_max and wmem_max allow.
inline constexpr uint32_t kSocketBufferBytes = 4U << 20;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
SocketAddress socket_address(const net::Endpoint& endpoint);
net::Endpoint endpoint_of(const sockaddr_storage& storage);

// 0, or errno: EADDRINUSE, EADDRNOTAVAIL, ENETUNREACH, EPERM. What the first link does not carry is refused
// when it is sent, as what a later one does not carry is lost: control finds that out.
int open_socket(const net::PathConfig& config, UniqueFd* socket);

// What the kernel gave, as it counts: with its own book-keeping, which takes half of it and more.
struct SocketBuffers {
  uint32_t rx_bytes = 0;
  uint32_t tx_bytes = 0;
};
SocketBuffers socket_buffers(int socket);

// How many datagrams found no room in the socket so far.
uint32_t socket_drops(int socket);

}  // namespace sluice::udp
