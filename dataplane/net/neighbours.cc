// Cold, any worker. See neighbours.h.
//
// Hears what was asked for or asks for us: ARP replies and neighbour advertisements sent to our own address,
// ARP requests and neighbour solicitations for it; and announcements. What that changes is the table's rule.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/neighbours.h"

#include <algorithm>
#include <cstring>

#include "dataplane/core/wire.h"

namespace sluice::net {
namespace {

using Bytes = std::span<const uint8_t>;
using wire::load_be16;
using wire::load_be64;
using wire::store_be16;
using wire::store_be64;

constexpr uint32_t kEthernetBytes = 14;
constexpr uint32_t kFrameBytesMin = 60;  // without FCS; shorter ones are padded
constexpr uint32_t kArpBytes = 28;
constexpr uint32_t kIp4Bytes = 20;
constexpr uint32_t kIp6Bytes = 40;
constexpr uint32_t kEchoBytes = 8;
constexpr uint32_t kNdBytes = 24;       // type, code, checksum, flags, target
constexpr uint32_t kNdOptionBytes = 8;  // a link-layer address of six bytes
constexpr uint16_t kTypeIp4 = 0x0800;
constexpr uint16_t kTypeArp = 0x0806;
constexpr uint16_t kTypeIp6 = 0x86dd;
constexpr uint8_t kIcmp = 1;
constexpr uint8_t kIcmp6 = 58;
constexpr uint8_t kEchoRequest4 = 8;
constexpr uint8_t kEchoRequest6 = 128;
constexpr uint8_t kEchoReply6 = 129;
constexpr uint8_t kSolicitation = 135;
constexpr uint8_t kAdvertisement = 136;
constexpr uint8_t kOptionSourceLink = 1;
constexpr uint8_t kOptionTargetLink = 2;
constexpr uint8_t kFlagSolicited = 0x40;
constexpr uint8_t kFlagOverride = 0x20;
constexpr uint8_t kHopLimitNd = 255;  // proves that the sender is on this link
constexpr uint8_t kHopLimit = 64;
constexpr uint8_t kMappedPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr uint8_t kAllNodes[16] = {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
constexpr uint8_t kZero[16] = {};

bool is_zero(const uint8_t* ip) { return memcmp(ip, kZero, 16) == 0; }
bool same(const uint8_t* a, const uint8_t* b, size_t bytes) { return memcmp(a, b, bytes) == 0; }
bool is_mapped(const uint8_t* ip) { return same(ip, kMappedPrefix, sizeof kMappedPrefix); }
bool is_link_local(const uint8_t* ip) { return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80; }
bool is_unicast_mac(const uint8_t* mac) { return (mac[0] & 1) == 0 && !same(mac, kZero, 6); }
bool is_host4(const uint8_t* ip) { return ip[0] != 0 && ip[0] < 224; }
bool is_host6(const uint8_t* ip) { return ip[0] != 0xff && !is_zero(ip); }

bool prefix_matches(const uint8_t* a, const uint8_t* b, uint32_t bits) {
  const uint32_t whole = bits / 8;
  if (!same(a, b, whole)) return false;
  const uint32_t rest = bits % 8;
  return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

void link_local(const uint8_t* mac, uint8_t* ip) {
  memset(ip, 0, 16);
  ip[0] = 0xfe;
  ip[1] = 0x80;
  const uint8_t id[8] = {
      static_cast<uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
  memcpy(ip + 8, id, sizeof id);
}

void solicited_node(const uint8_t* ip, uint8_t* out) {
  memcpy(out, kAllNodes, 16);
  out[11] = 1;
  out[12] = 0xff;
  memcpy(out + 13, ip + 13, 3);
}

uint32_t sum16(Bytes bytes, uint32_t sum) {
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) sum += load_be16(&bytes[i]);
  if (bytes.size() % 2 != 0) sum += uint32_t{bytes.back()} << 8;
  return sum;
}
uint16_t folded(uint32_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}
// Over the pseudo-header and the message; 0 when a received one is right.
uint16_t checksum6(const uint8_t* ip6_header, Bytes message) {
  const uint32_t sum = sum16({ip6_header + 8, 32}, static_cast<uint32_t>(message.size()) + kIcmp6);
  return folded(sum16(message, sum));
}

void write_ethernet(uint8_t* frame, const uint8_t* to, const uint8_t* from, uint16_t type) {
  memcpy(frame, to, 6);
  memcpy(frame + 6, from, 6);
  store_be16(frame + 12, type);
}

void write_ip6(uint8_t* ip, const uint8_t* from, const uint8_t* to, uint32_t payload_bytes,
               uint8_t hop_limit) {
  memset(ip, 0, 8);
  ip[0] = 0x60;
  store_be16(ip + 4, static_cast<uint16_t>(payload_bytes));
  ip[6] = kIcmp6;
  ip[7] = hop_limit;
  memcpy(ip + 8, from, 16);
  memcpy(ip + 24, to, 16);
}

uint32_t padded(std::span<uint8_t> frame, uint32_t bytes) {
  if (bytes >= kFrameBytesMin || frame.size() < kFrameBytesMin) return bytes;
  memset(&frame[bytes], 0, kFrameBytesMin - bytes);
  return kFrameBytesMin;
}

uint32_t write_arp(const HostAddresses& host, uint16_t operation, const uint8_t* link_to,
                   const uint8_t* target_mac, const uint8_t* target_ip, std::span<uint8_t> frame) {
  if (frame.size() < kEthernetBytes + kArpBytes) return 0;
  write_ethernet(frame.data(), link_to, host.mac, kTypeArp);
  uint8_t* const arp = &frame[kEthernetBytes];
  const uint8_t fixed[6] = {0, 1, kTypeIp4 >> 8, kTypeIp4 & 0xff, 6, 4};
  memcpy(arp, fixed, sizeof fixed);
  store_be16(arp + 6, operation);
  memcpy(arp + 8, host.mac, 6);
  memcpy(arp + 14, host.ip4 + 12, 4);
  memcpy(arp + 18, target_mac, 6);
  memcpy(arp + 24, target_ip, 4);
  return padded(frame, kEthernetBytes + kArpBytes);
}

struct Nd {
  uint8_t type, flags, option;
  const uint8_t* target;
};
uint32_t write_nd(const HostAddresses& host, const Nd& nd, const uint8_t* link_to, const uint8_t* from,
                  const uint8_t* to, std::span<uint8_t> frame) {
  constexpr uint32_t kMessageBytes = kNdBytes + kNdOptionBytes;
  if (frame.size() < kEthernetBytes + kIp6Bytes + kMessageBytes) return 0;
  write_ethernet(frame.data(), link_to, host.mac, kTypeIp6);
  uint8_t* const ip = &frame[kEthernetBytes];
  write_ip6(ip, from, to, kMessageBytes, kHopLimitNd);
  uint8_t* const message = ip + kIp6Bytes;
  memset(message, 0, kMessageBytes);
  message[0] = nd.type;
  message[4] = nd.flags;
  memcpy(message + 8, nd.target, 16);
  message[kNdBytes] = nd.option;
  message[kNdBytes + 1] = 1;  // in units of 8 bytes
  memcpy(message + kNdBytes + 2, host.mac, 6);
  store_be16(message + 2, checksum6(ip, {message, kMessageBytes}));
  return kEthernetBytes + kIp6Bytes + kMessageBytes;
}

// The link address in an option of a solicitation or advertisement, or nullptr.
const uint8_t* nd_option(Bytes options, uint8_t wanted) {
  while (options.size() >= 8) {
    const size_t bytes = size_t{options[1]} * 8;
    if (bytes == 0 || bytes > options.size()) return nullptr;
    if (options[0] == wanted && bytes == kNdOptionBytes) return &options[2];
    options = options.subspan(bytes);
  }
  return nullptr;
}

}  // namespace

Neighbours::Neighbours(const HostAddresses& host) : host_(host) {
  for (const FixedNeighbour& each : host.fixed) table_.fix(each.ip, each.link);
}

const uint8_t* Neighbours::next_hop(const uint8_t* destination) const {
  if (is_mapped(destination)) {
    if (is_zero(host_.ip4) || !is_host4(destination + 12)) return nullptr;
    if (prefix_matches(destination + 12, host_.ip4 + 12, host_.prefix4)) return destination;
    return is_zero(host_.gateway4) ? nullptr : host_.gateway4;
  }
  if (is_zero(host_.ip6) || !is_host6(destination)) return nullptr;
  if (is_link_local(destination) || prefix_matches(destination, host_.ip6, host_.prefix6)) return destination;
  return is_zero(host_.gateway6) ? nullptr : host_.gateway6;
}

Neighbours::Found Neighbours::resolve(const uint8_t* hop, uint64_t confirmed_ns, uint64_t now_ns,
                                      std::span<uint8_t> frame) {
  Found found;
  found.taken = taken_.test_and_set(std::memory_order_acquire);
  if (found.taken) return found;
  found.way = table_.want(Address::of(hop), confirmed_ns, now_ns);
  taken_.clear(std::memory_order_release);
  if (found.way.ask == NeighbourTable::Ask::kAll) found.frame_bytes = write_question(hop, nullptr, frame);
  if (found.way.ask == NeighbourTable::Ask::kNeighbour) {
    found.frame_bytes = write_question(hop, found.way.link.bytes, frame);
  }
  return found;
}

void Neighbours::learn(const uint8_t* ip, const uint8_t* mac, Word word, const Frame& frame, Handled* out) {
  if (!is_unicast_mac(mac)) return;
  if (same(mac, host_.mac, 6)) {
    out->own_link = !same(ip, host_.ip4, 16) && !same(ip, host_.ip6, 16);
    return;
  }
  // Only who can be a next hop is learned, so that a stranger cannot fill the table with far addresses.
  if (next_hop(ip) != ip && !same(ip, host_.gateway4, 16) && !same(ip, host_.gateway6, 16)) return;
  if (same(ip, host_.ip4, 16) || same(ip, host_.ip6, 16)) return;
  if (taken_.test_and_set(std::memory_order_acquire)) return;  // as if the wire had lost it
  out->contested = table_.hear(Address::of(ip), LinkAddress::of(mac), word, frame.now_ns);
  taken_.clear(std::memory_order_release);
}

// To everybody, or to one neighbour that may be there still.
uint32_t Neighbours::write_question(const uint8_t* hop, const uint8_t* link, std::span<uint8_t> frame) const {
  if (is_mapped(hop)) {
    const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    return write_arp(host_, 1, link != nullptr ? link : everybody, kZero, hop + 12, frame);
  }
  uint8_t group[16];
  solicited_node(hop, group);
  const uint8_t link_of_group[6] = {0x33, 0x33, group[12], group[13], group[14], group[15]};
  return write_nd(host_, {kSolicitation, 0, kOptionSourceLink, hop}, link != nullptr ? link : link_of_group,
                  host_.ip6, link != nullptr ? hop : group, frame);
}

Neighbours::Handled Neighbours::handle(std::span<const uint8_t> frame, uint64_t now_ns,
                                       std::span<uint8_t> reply) {
  Handled out;
  if (frame.size() < kEthernetBytes) return out;
  const bool to_us = same(frame.data(), host_.mac, 6);
  if (!to_us && (frame[0] & 1) == 0) return out;  // the device is in promiscuous mode
  const Frame whole{frame, now_ns, reply};
  switch (load_be16(&frame[12])) {
    case kTypeArp:
      out.ours = true;
      handle_arp(whole, &out);
      break;
    case kTypeIp4:
      out.ours = to_us && handle_icmp4(whole, &out);
      break;
    case kTypeIp6:
      out.ours = handle_icmp6(whole, &out);
      break;
    default:
      break;
  }
  return out;
}

void Neighbours::handle_arp(const Frame& frame, Handled* out) {
  const Bytes bytes = frame.bytes;
  if (is_zero(host_.ip4) || bytes.size() < kEthernetBytes + kArpBytes) return;
  const uint8_t* const arp = &bytes[kEthernetBytes];
  const uint8_t fixed[6] = {0, 1, kTypeIp4 >> 8, kTypeIp4 & 0xff, 6, 4};
  if (!same(arp, fixed, sizeof fixed) || !same(arp + 8, &bytes[6], 6) || !is_unicast_mac(arp + 8)) return;
  const uint16_t operation = load_be16(arp + 6);
  Ip sender;
  memcpy(sender, kMappedPrefix, sizeof kMappedPrefix);
  memcpy(sender + 12, arp + 14, 4);
  const bool for_us = same(arp + 24, host_.ip4 + 12, 4);
  if (operation != 1 && operation != 2) return;
  if (same(arp + 14, arp + 24, 4)) {  // who moves says so (RFC 5227 3)
    learn(sender, arp + 8, Word::kAnnouncement, frame, out);
  } else if (operation == 1 && for_us) {
    // A sender without an address only asks whether ours is taken.
    if (!same(arp + 14, kZero, 4)) learn(sender, arp + 8, Word::kQuestion, frame, out);
    out->reply_bytes = write_arp(host_, 2, arp + 8, arp + 8, arp + 14, frame.reply);
  } else if (for_us && same(arp + 18, host_.mac, 6) && same(bytes.data(), host_.mac, 6)) {
    learn(sender, arp + 8, Word::kAnswer, frame, out);
  }
}

bool Neighbours::handle_icmp4(const Frame& whole, Handled* out) {
  const Bytes frame = whole.bytes;
  const std::span<uint8_t> reply = whole.reply;
  const Bytes packet = frame.subspan(kEthernetBytes);
  if (is_zero(host_.ip4) || packet.size() < kIp4Bytes || packet[9] != kIcmp) return false;
  const uint32_t header_bytes = (packet[0] & 0xfU) * 4;
  const uint32_t total_bytes = load_be16(&packet[2]);
  if (packet[0] >> 4 != 4 || header_bytes < kIp4Bytes || total_bytes < header_bytes + kEchoBytes ||
      total_bytes > packet.size()) {
    return false;
  }
  const Bytes message = packet.subspan(header_bytes, total_bytes - header_bytes);
  if (!same(&packet[16], host_.ip4 + 12, 4) || message[0] != kEchoRequest4 || message[1] != 0) return false;
  // Fragments, wrong checksums and senders that cannot be answered count as handled, and get no answer.
  const auto reply_total = static_cast<uint32_t>(kIp4Bytes + message.size());
  if ((load_be16(&packet[6]) & 0x3fff) != 0 || folded(sum16(packet.first(header_bytes), 0)) != 0 ||
      folded(sum16(message, 0)) != 0 || !is_host4(&packet[12]) || !is_unicast_mac(&frame[6]) ||
      reply.size() < kEthernetBytes + reply_total) {
    return true;
  }
  write_ethernet(reply.data(), &frame[6], host_.mac, kTypeIp4);
  uint8_t* const ip = &reply[kEthernetBytes];
  memset(ip, 0, kIp4Bytes);
  ip[0] = 0x45;
  store_be16(ip + 2, static_cast<uint16_t>(reply_total));
  ip[8] = kHopLimit;
  ip[9] = kIcmp;
  memcpy(ip + 12, host_.ip4 + 12, 4);
  memcpy(ip + 16, &packet[12], 4);
  store_be16(ip + 10, folded(sum16({ip, kIp4Bytes}, 0)));
  uint8_t* const answer = ip + kIp4Bytes;
  memcpy(answer, message.data(), message.size());
  memset(answer, 0, 4);  // type 0, code 0
  store_be16(answer + 2, folded(sum16({answer, message.size()}, 0)));
  out->reply_bytes = padded(reply, kEthernetBytes + reply_total);
  return true;
}

bool Neighbours::handle_icmp6(const Frame& whole, Handled* out) {
  const Bytes frame = whole.bytes;
  const Bytes packet = frame.subspan(kEthernetBytes);
  if (is_zero(host_.ip6) || packet.size() < kIp6Bytes + kEchoBytes || packet[0] >> 4 != 6 ||
      packet[6] != kIcmp6) {
    return false;
  }
  const uint32_t payload_bytes = load_be16(&packet[4]);
  if (payload_bytes < kEchoBytes || kIp6Bytes + payload_bytes > packet.size()) return false;
  const Bytes message = packet.subspan(kIp6Bytes, payload_bytes);
  Ip local;
  link_local(host_.mac, local);
  const uint8_t* const to = &packet[24];
  const bool to_host = same(to, host_.ip6, 16) || same(to, local, 16);
  const uint8_t type = message[0];
  if (type != kSolicitation && type != kAdvertisement && !(type == kEchoRequest6 && to_host)) return false;
  if (message[1] != 0 || checksum6(packet.data(), message) != 0 || !is_unicast_mac(&frame[6])) return true;
  if (type == kEchoRequest6) {
    out->reply_bytes = answer_echo6(whole, message);
    return true;
  }
  if (packet[7] != kHopLimitNd || message.size() < kNdBytes) return true;
  if (type == kAdvertisement) {
    handle_advertisement(whole, message, to_host, out);
    return true;
  }
  const uint8_t* const target = &message[8];
  Ip group;
  solicited_node(target, group);
  const bool for_us = same(target, host_.ip6, 16) || same(target, local, 16);
  if (for_us && (to_host || same(to, group, 16))) answer_solicitation(whole, message, out);
  return true;
}

void Neighbours::handle_advertisement(const Frame& frame, std::span<const uint8_t> message, bool to_host,
                                      Handled* out) {
  const bool solicited = to_host && (message[4] & kFlagSolicited) != 0;
  const uint8_t* mac = nd_option(message.subspan(kNdBytes), kOptionTargetLink);
  // An answer to one who knows the address may leave it out (RFC 4861 4.4).
  if (mac == nullptr && solicited && message.size() == kNdBytes) mac = &frame.bytes[6];
  if (mac == nullptr) return;
  learn(&message[8], mac, solicited ? Word::kAnswer : Word::kAnnouncement, frame, out);
}

void Neighbours::answer_solicitation(const Frame& frame, std::span<const uint8_t> message, Handled* out) {
  const uint8_t* const from = &frame.bytes[kEthernetBytes + 8];
  const uint8_t* const target = &message[8];
  if (is_zero(from)) {  // somebody wants to take our address, so all are told whose it is
    const uint8_t link_to[6] = {0x33, 0x33, 0, 0, 0, 1};
    out->reply_bytes = write_nd(host_, {kAdvertisement, kFlagOverride, kOptionTargetLink, target}, link_to,
                                target, kAllNodes, frame.reply);
    return;
  }
  const uint8_t* mac = nd_option(message.subspan(kNdBytes), kOptionSourceLink);
  if (mac == nullptr && message.size() == kNdBytes) mac = &frame.bytes[6];  // one that only probes us
  if (mac == nullptr || !is_unicast_mac(mac) || !is_host6(from)) return;
  learn(from, mac, Word::kQuestion, frame, out);
  out->reply_bytes =
      write_nd(host_, {kAdvertisement, kFlagSolicited | kFlagOverride, kOptionTargetLink, target}, mac,
               target, from, frame.reply);
}

uint32_t Neighbours::answer_echo6(const Frame& whole, std::span<const uint8_t> message) const {
  const Bytes frame = whole.bytes;
  const std::span<uint8_t> reply = whole.reply;
  const uint8_t* const packet = &frame[kEthernetBytes];
  const auto bytes = static_cast<uint32_t>(kEthernetBytes + kIp6Bytes + message.size());
  if (!is_host6(packet + 8) || reply.size() < bytes) return 0;
  write_ethernet(reply.data(), &frame[6], host_.mac, kTypeIp6);
  uint8_t* const ip = &reply[kEthernetBytes];
  write_ip6(ip, packet + 24, packet + 8, static_cast<uint32_t>(message.size()), kHopLimit);
  uint8_t* const answer = ip + kIp6Bytes;
  memcpy(answer, message.data(), message.size());
  answer[0] = kEchoReply6;
  memset(answer + 2, 0, 2);
  store_be16(answer + 2, checksum6(ip, {answer, message.size()}));
  return bytes;
}

}  // namespace sluice::net
