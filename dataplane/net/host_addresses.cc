// Cold, pure. See host_addresses.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/host_addresses.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <string_view>

namespace sluice::net {
namespace {

bool parse_ip(const std::string& text, bool ip6, uint8_t* out) {
  if (ip6) return inet_pton(AF_INET6, text.c_str(), out) == 1;
  memset(out, 0, 10);
  out[10] = out[11] = 0xff;
  return inet_pton(AF_INET, text.c_str(), out + 12) == 1;
}

Error wrong(std::string_view key, std::string_view text, std::string_view allowed) {
  return {ErrorCode::kConfiguration, fmt::format("[port] {} = \"{}\": expected {}", key, text, allowed)};
}

Status parse_address(std::string_view key, const std::string& text, bool ip6, uint8_t* ip, uint8_t* prefix) {
  if (text.empty()) return {};
  const std::string_view allowed = ip6 ? "an IPv6 address with its prefix, like fd77::1/64"
                                       : "an IPv4 address with its prefix, like 10.77.0.1/24";
  const size_t slash = text.find('/');
  unsigned bits = 0;
  if (slash == std::string::npos || !parse_ip(text.substr(0, slash), ip6, ip))
    return wrong(key, text, allowed);
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + slash + 1, end, bits);
  if (error != std::errc() || rest != end || bits > (ip6 ? 128 : 32)) return wrong(key, text, allowed);
  *prefix = static_cast<uint8_t>(bits);
  return {};
}

// Each must be one that packets can be handed to: on this link.
Status parse_fixed(const config::Node& node, HostAddresses* host) {
  const auto texts = config::parse_neighbours(node.neighbours);
  if (!texts) return texts.error();
  const Neighbours ways(*host);
  for (const config::NeighbourText& each : *texts) {
    FixedNeighbour fixed{.ip = {}, .link = LinkAddress::of(each.mac)};
    parse_ip(each.address, each.ip6, fixed.ip.bytes);
    const bool router =
        memcmp(fixed.ip.bytes, host->gateway4, 16) == 0 || memcmp(fixed.ip.bytes, host->gateway6, 16) == 0;
    if (!router && ways.next_hop(fixed.ip.bytes) != fixed.ip.bytes) {
      return Error{
          ErrorCode::kConfiguration,
          fmt::format("[port] neighbours = \"{}\": {} is not on the network of address4 or address6, "
                      "and no gateway: remove it",
                      node.neighbours, each.address)};
    }
    host->fixed.push_back(fixed);
  }
  return {};
}

}  // namespace

Result<HostAddresses> host_addresses(const config::Node& node, const uint8_t* mac) {
  HostAddresses host;
  memcpy(host.mac, mac, sizeof host.mac);
  Status status = parse_address("address4", node.address4, false, host.ip4, &host.prefix4);
  if (status) status = parse_address("address6", node.address6, true, host.ip6, &host.prefix6);
  if (!status) return status.error();
  if (!node.gateway4.empty() && !parse_ip(node.gateway4, false, host.gateway4)) {
    return wrong("gateway4", node.gateway4, "an IPv4 address");
  }
  if (!node.gateway6.empty() && !parse_ip(node.gateway6, true, host.gateway6)) {
    return wrong("gateway6", node.gateway6, "an IPv6 address");
  }
  if (status = parse_fixed(node, &host); !status) return status.error();
  return host;
}

}  // namespace sluice::net
