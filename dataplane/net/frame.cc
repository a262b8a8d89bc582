// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/frame.h"

#include <algorithm>

#include "dataplane/core/wire.h"

namespace sluice::net {
namespace {

using wire::load_be16;
using wire::store_be16;

constexpr uint16_t kEtherIp4 = 0x0800;
constexpr uint16_t kEtherIp6 = 0x86DD;
constexpr uint8_t kProtocolUdp = 17;
constexpr uint8_t kHopLimit = 64;
constexpr uint16_t kDontFragment = 0x4000;

// Sum of 16-bit words in network order; an odd last byte counts as the high half (RFC 1071).
uint64_t sum_words(const uint8_t* p, size_t n) {
  uint64_t sum = 0;
  // Words are added in host order, since byte order only swaps the two bytes of the sum (RFC 1071, 2 (B)).
  while (n >= 8) {
    uint64_t v;
    std::memcpy(&v, p, 8);
    sum += (v & 0xFFFFFFFF) + (v >> 32);
    p += 8;
    n -= 8;
  }
  while (n >= 2) {
    uint16_t v;
    std::memcpy(&v, p, 2);
    sum += v;
    p += 2;
    n -= 2;
  }
  if (n == 1) sum += *p;
  return sum;
}

uint16_t fold(uint64_t sum) {
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

uint64_t sum_address(const Address& a) {
  return a.is_ip4() ? sum_words(a.bytes + 12, 4) : sum_words(a.bytes, 16);
}

uint64_t in_host(uint16_t network_value) { return __builtin_bswap16(network_value); }

void set_ip4(Address* a, const uint8_t* p) {
  std::memset(a->bytes, 0, 10);
  a->bytes[10] = a->bytes[11] = 0xFF;
  std::memcpy(a->bytes + 12, p, 4);
}

}  // namespace

uint32_t chunk_bytes_that_fit(uint32_t frame_bytes, size_t ip_header_bytes) {
  const auto headers =
      static_cast<uint32_t>(kEthernetBytes + ip_header_bytes + kUdpBytes + wire::kHeaderBytes);
  if (frame_bytes <= headers) return 0;
  return std::min((frame_bytes - headers) / wire::kChunkBytesStep * wire::kChunkBytesStep,
                  wire::kChunkBytesMax);
}

Parse parse_udp(std::span<const uint8_t> frame, UdpFrame* out) {
  if (frame.size() < kEthernetBytes) return Parse::kMalformed;
  const uint16_t ethertype = load_be16(&frame[12]);
  const auto ip = frame.subspan(kEthernetBytes);
  std::span<const uint8_t> udp;
  if (ethertype == kEtherIp4) {
    if (ip.size() < kIp4Bytes || ip[0] != 0x45) return Parse::kMalformed;
    if (fold(sum_words(ip.data(), kIp4Bytes)) != 0xFFFF) return Parse::kMalformed;
    const size_t total = load_be16(&ip[2]);
    if (total < kIp4Bytes || total > ip.size()) return Parse::kMalformed;
    const uint16_t fragment = load_be16(&ip[6]);
    if ((fragment & 0x3FFF) != 0) return Parse::kFragment;  // more of them, or an offset
    if (ip[9] != kProtocolUdp) return Parse::kOther;
    // The kernel below an af_packet device puts fragments together before we see them; what Sluice sends
    // has DF.
    if (fragment != kDontFragment) return Parse::kFragment;
    set_ip4(&out->source, &ip[12]);
    set_ip4(&out->destination, &ip[16]);
    udp = ip.subspan(kIp4Bytes, total - kIp4Bytes);
  } else if (ethertype == kEtherIp6) {
    if (ip.size() < kIp6Bytes || (ip[0] >> 4) != 6) return Parse::kMalformed;
    const size_t length = load_be16(&ip[4]);
    if (length > ip.size() - kIp6Bytes) return Parse::kMalformed;
    if (ip[6] != kProtocolUdp) return Parse::kOther;
    std::memcpy(out->source.bytes, &ip[8], 16);
    std::memcpy(out->destination.bytes, &ip[24], 16);
    // Else a flow of IPv4 could be reached past all that IPv4 is checked for.
    if (out->source.is_ip4() || out->destination.is_ip4()) return Parse::kMalformed;
    udp = ip.subspan(kIp6Bytes, length);
  } else {
    return Parse::kOther;
  }
  if (udp.size() < kUdpBytes || load_be16(&udp[4]) != udp.size()) return Parse::kMalformed;
  out->source_port = load_be16(&udp[0]);
  out->destination_port = load_be16(&udp[2]);
  out->checksum = load_be16(&udp[6]);
  out->udp = udp;
  out->payload = udp.subspan(kUdpBytes);
  return Parse::kUdp;
}

uint16_t udp_sum(const Address& source, const Address& destination, std::span<const uint8_t> udp) {
  const uint64_t sum = sum_address(source) + sum_address(destination) + in_host(kProtocolUdp) +
                       in_host(static_cast<uint16_t>(udp.size())) + sum_words(udp.data(), udp.size());
  return fold(sum);
}

FrameTemplate::FrameTemplate(const Address& source, uint16_t source_port, const Address& destination,
                             uint16_t destination_port)
    : ip4_(source.is_ip4()) {
  uint8_t* p = front_ + kEthernetBytes;
  store_be16(front_ + 12, ip4_ ? kEtherIp4 : kEtherIp6);
  if (ip4_) {
    p[0] = 0x45;
    store_be16(p + 6, kDontFragment);  // the identification stays 0 (RFC 6864, 4.1)
    p[8] = kHopLimit;
    p[9] = kProtocolUdp;
    std::memcpy(p + 12, source.bytes + 12, 4);
    std::memcpy(p + 16, destination.bytes + 12, 4);
    ip4_sum_ = fold(sum_words(p, kIp4Bytes));  // folded, since the sum may have more than 32 bits
    p += kIp4Bytes;
  } else {
    p[0] = 0x60;
    p[6] = kProtocolUdp;
    p[7] = kHopLimit;
    std::memcpy(p + 8, source.bytes, 16);
    std::memcpy(p + 24, destination.bytes, 16);
    p += kIp6Bytes;
  }
  store_be16(p, source_port);
  store_be16(p + 2, destination_port);
  bytes_ = static_cast<size_t>(p + kUdpBytes - front_);
  pseudo_sum_ =
      static_cast<uint32_t>(fold(sum_address(source) + sum_address(destination) + in_host(kProtocolUdp)));
}

void FrameTemplate::set_macs(const uint8_t* source, const uint8_t* destination) {
  std::memcpy(front_, destination, 6);
  std::memcpy(front_ + 6, source, 6);
}

void FrameTemplate::write(uint8_t* out, uint32_t payload_bytes) const {
  std::memcpy(out, front_, bytes_);
  const auto udp_bytes = static_cast<uint16_t>(kUdpBytes + payload_bytes);
  uint8_t* const ip = out + kEthernetBytes;
  if (ip4_) {
    const auto total = static_cast<uint16_t>(kIp4Bytes + udp_bytes);
    store_be16(ip + 2, total);
    const auto checksum = static_cast<uint16_t>(~fold(ip4_sum_ + in_host(total)));
    std::memcpy(ip + 10, &checksum, 2);
  } else {
    store_be16(ip + 4, udp_bytes);
  }
  store_be16(out + bytes_ - 4, udp_bytes);
}

uint16_t FrameTemplate::udp_checksum(std::span<const uint8_t> front, std::span<const uint8_t> rest) const {
  const auto udp_bytes = static_cast<uint16_t>(kUdpBytes + front.size() + rest.size());
  // The four bytes are the ports. The length counts twice: in the pseudo header and in the UDP header.
  const uint64_t sum = pseudo_sum_ + 2 * in_host(udp_bytes) + sum_words(front_ + bytes_ - kUdpBytes, 4) +
                       sum_words(front.data(), front.size()) + sum_words(rest.data(), rest.size());
  const auto checksum = static_cast<uint16_t>(~fold(sum));
  const uint16_t network = __builtin_bswap16(checksum);
  return network == 0 ? 0xFFFF : network;  // 0 means "none" (RFC 768)
}

uint16_t FrameTemplate::pseudo_checksum(uint32_t payload_bytes) const {
  const auto udp_bytes = static_cast<uint16_t>(kUdpBytes + payload_bytes);
  return __builtin_bswap16(fold(pseudo_sum_ + in_host(udp_bytes)));
}

}  // namespace sluice::net
