// SPDX-License-Identifier: Apache-2.0
#include "dataplane/udp/local_addresses.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "dataplane/base/unique_fd.h"
#include "dataplane/net/host_addresses.h"
#include "dataplane/udp/socket.h"

namespace sluice::udp {
namespace {

// Of the blocks for documentation: a socket that is connected there sends nothing, but knows its own end.
constexpr const char* kWorld4 = "::ffff:192.0.2.1";
constexpr const char* kWorld6 = "2001:db8::1";
constexpr uint16_t kAnyPort = 9;

net::Address default_address(const char* world) {
  net::Endpoint there{.address = {}, .port = kAnyPort};
  inet_pton(AF_INET6, world, there.address.bytes);
  const SocketAddress peer = socket_address(there);
  const UniqueFd socket(::socket(peer.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  SocketAddress here;
  here.bytes = sizeof here.storage;
  if (!socket || ::connect(socket.get(), peer.get(), peer.bytes) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here.storage), &here.bytes) != 0) {
    return {};
  }
  return endpoint_of(here.storage).address;
}

uint32_t mtu_of(int socket, const char* interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
  return ::ioctl(socket, SIOCGIFMTU, &request) == 0 ? static_cast<uint32_t>(request.ifr_mtu) : 0;
}

std::string text_of(const net::Address& address) {
  char text[INET6_ADDRSTRLEN] = {};
  const bool ip4 = address.is_ip4();
  inet_ntop(ip4 ? AF_INET : AF_INET6, address.bytes + (ip4 ? 12 : 0), text, sizeof text);
  return text;
}

const InterfaceAddress* find(const HostInterfaces& host, const net::Address& address) {
  for (const InterfaceAddress& each : host.addresses) {
    if (each.address == address) return &each;
  }
  return nullptr;
}

Error not_here(std::string_view key, const std::string& value, const HostInterfaces& host, bool ip4) {
  std::string have;
  for (const InterfaceAddress& each : host.addresses) {
    if (each.address.is_ip4() != ip4) continue;
    have += fmt::format("{}{} ({})", have.empty() ? "" : ", ", text_of(each.address), each.interface);
  }
  return {ErrorCode::kConfiguration,
          fmt::format("[port] {} = \"{}\": no interface of this host that is up has it; it has {}", key,
                      value, have.empty() ? "none of this family" : have)};
}

// The default, or the first that is no loopback, or that.
net::Address any_of(const HostInterfaces& host, const net::Address& preferred, bool ip4) {
  if (!preferred.is_zero() && find(host, preferred) != nullptr) return preferred;
  for (const bool loopback : {false, true}) {
    for (const InterfaceAddress& each : host.addresses) {
      if (each.address.is_ip4() == ip4 && each.loopback == loopback) return each.address;
    }
  }
  return {};
}

}  // namespace

HostInterfaces host_interfaces() {
  HostInterfaces host{
      .addresses = {}, .default4 = default_address(kWorld4), .default6 = default_address(kWorld6)};
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifaddrs* list = nullptr;
  if (!socket || ::getifaddrs(&list) != 0) return host;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    sockaddr_storage storage{};
    std::memcpy(&storage, each->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    const net::Address address = endpoint_of(storage).address;
    // Of use only together with its interface, which a peer cannot name.
    if (address.bytes[0] == 0xFE && (address.bytes[1] & 0xC0) == 0x80) continue;
    host.addresses.push_back({.interface = each->ifa_name,
                              .address = address,
                              .mtu = mtu_of(socket.get(), each->ifa_name),
                              .loopback = (each->ifa_flags & IFF_LOOPBACK) != 0});
  }
  ::freeifaddrs(list);
  return host;
}

Result<LocalAddresses> choose_addresses(const config::Node& node, const HostInterfaces& host,
                                        const std::string& keys) {
  const uint8_t no_mac[6] = {};
  const auto named = net::host_addresses(node, no_mac);
  if (!named) return named.error();
  LocalAddresses local{
      .ip4 = net::Address::of(named->ip4), .ip6 = net::Address::of(named->ip6), .mtu = node.mtu};
  if (!local.ip4.is_zero() && find(host, local.ip4) == nullptr) {
    return not_here(keys + "address4", node.address4, host, true);
  }
  if (!local.ip6.is_zero() && find(host, local.ip6) == nullptr) {
    return not_here(keys + "address6", node.address6, host, false);
  }
  if (local.ip4.is_zero() && local.ip6.is_zero()) {
    local.ip4 = any_of(host, host.default4, true);
    const net::Address ip6 = any_of(host, host.default6, false);
    const InterfaceAddress* const chosen6 = find(host, ip6);
    // Loopbacks are for a host that has nothing else.
    const bool useful = chosen6 != nullptr && (!chosen6->loopback || local.ip4.is_zero());
    if (useful) local.ip6 = ip6;
    const InterfaceAddress* const chosen4 = find(host, local.ip4);
    if (useful && !chosen6->loopback && chosen4 != nullptr && chosen4->loopback) local.ip4 = {};
  }
  if (local.ip4.is_zero() && local.ip6.is_zero()) {
    return Error{
        ErrorCode::kConfiguration,
        "[port] device = \"udp\": this host has no IP address on an interface that is up: set one up"};
  }
  for (const net::Address& each : {local.ip4, local.ip6}) {
    const InterfaceAddress* const found = find(host, each);
    if (found == nullptr) continue;
    if (found->mtu != 0) local.mtu = std::min(local.mtu, found->mtu);
    if (std::ranges::find(local.interfaces, found->interface) == local.interfaces.end())
      local.interfaces.push_back(found->interface);
  }
  return local;
}

}  // namespace sluice::udp
