// SPDX-License-Identifier: Apache-2.0
#include "dataplane/udp/socket.h"

#include <linux/sock_diag.h>
#include <linux/udp.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "dataplane/net/frame.h"

namespace sluice::udp {
namespace {

bool set(int socket, int level, int option, int value) {
  return ::setsockopt(socket, level, option, &value, sizeof value) == 0;
}

uint32_t get(int socket, int level, int option) {
  int value = 0;
  socklen_t bytes = sizeof value;
  if (::getsockopt(socket, level, option, &value, &bytes) != 0) return 0;
  return static_cast<uint32_t>(std::max(value, 0));
}

void leave_out_checksum(int socket, bool ip4) {
  if (ip4) {
    set(socket, SOL_SOCKET, SO_NO_CHECK, 1);
  } else {
    set(socket, IPPROTO_UDP, UDP_NO_CHECK6_TX, 1);
  }
}

void set_options(int socket, bool ip4) {
  set(socket, SOL_SOCKET, SO_RCVBUF, kSocketBufferBytes);
  set(socket, SOL_SOCKET, SO_SNDBUF, kSocketBufferBytes);
  // Datagrams of one size that arrive together are handed over together.
  set(socket, IPPROTO_UDP, UDP_GRO, 1);
  // DF always, and no belief in what ICMP says of the path: any host could say it.
  if (ip4) {
    set(socket, SOL_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    set(socket, SOL_IP, IP_RECVFRAGSIZE, 1);
  } else {
    set(socket, SOL_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    set(socket, SOL_IPV6, IPV6_DONTFRAG, 1);
    set(socket, SOL_IPV6, IPV6_RECVFRAGSIZE, 1);
    set(socket, SOL_IPV6, IPV6_V6ONLY, 1);
    // A peer whose device does not compute it sends none: our CRC covers header and payload.
    set(socket, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
  }
}

}  // namespace

SocketAddress socket_address(const net::Endpoint& endpoint) {
  SocketAddress address;
  if (endpoint.address.is_ip4()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(endpoint.port);
    std::memcpy(&in.sin_addr, endpoint.address.bytes + 12, 4);
    std::memcpy(&address.storage, &in, sizeof in);
    address.bytes = sizeof in;
  } else {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(endpoint.port);
    std::memcpy(&in.sin6_addr, endpoint.address.bytes, 16);
    std::memcpy(&address.storage, &in, sizeof in);
    address.bytes = sizeof in;
  }
  return address;
}

net::Endpoint endpoint_of(const sockaddr_storage& storage) {
  net::Endpoint endpoint;
  if (storage.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof in);
    endpoint.address.bytes[10] = endpoint.address.bytes[11] = 0xFF;
    std::memcpy(endpoint.address.bytes + 12, &in.sin_addr, 4);
    endpoint.port = ntohs(in.sin_port);
  } else if (storage.ss_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, &storage, sizeof in);
    std::memcpy(endpoint.address.bytes, &in.sin6_addr, 16);
    endpoint.port = ntohs(in.sin6_port);
  }
  return endpoint;
}

int open_socket(const net::PathConfig& config, UniqueFd* out) {
  const bool ip4 = config.local.address.is_ip4();
  UniqueFd socket(::socket(ip4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return errno;
  set_options(socket.get(), ip4);
  if (config.no_udp_checksum) leave_out_checksum(socket.get(), ip4);
  const SocketAddress local = socket_address(config.local);
  if (::bind(socket.get(), local.get(), local.bytes) != 0) return errno;
  if (config.learns_peer) {
    *out = std::move(socket);
    return 0;
  }
  const SocketAddress peer = socket_address(config.peer);
  if (::connect(socket.get(), peer.get(), peer.bytes) != 0) return errno;
  *out = std::move(socket);
  return 0;
}

SocketBuffers socket_buffers(int socket) {
  return {.rx_bytes = get(socket, SOL_SOCKET, SO_RCVBUF), .tx_bytes = get(socket, SOL_SOCKET, SO_SNDBUF)};
}

uint32_t socket_drops(int socket) {
  std::array<uint32_t, SK_MEMINFO_VARS> values{};
  socklen_t bytes = sizeof values;
  if (::getsockopt(socket, SOL_SOCKET, SO_MEMINFO, values.data(), &bytes) != 0) return 0;
  return values[SK_MEMINFO_DROPS];
}

}  // namespace sluice::udp
