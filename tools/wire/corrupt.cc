// See corrupt.h.
// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/corrupt.h"

#include <algorithm>
#include <utility>

#include "dataplane/core/wire.h"

namespace sluice::emulator {
namespace {

constexpr uint32_t kEthernetBytes = 14;
constexpr uint32_t kIp6Bytes = 40;
constexpr uint32_t kUdpBytes = 8;
constexpr uint16_t kEtherTypeIp4 = 0x0800;
constexpr uint16_t kEtherTypeIp6 = 0x86dd;
constexpr uint8_t kProtocolUdp = 17;
constexpr uint16_t kFragmentMask = 0x3fff;  // more fragments, offset
constexpr int kTries = 16;
// The generator of CRC-64/XZ as its bytes lie in a message: x^64 first, the lowest bit of each byte first.
// Added anywhere it leaves the remainder as it is.
constexpr uint64_t kReflectedGenerator = 0xC96C5795D7870F42;
constexpr uint32_t kGeneratorBytes = 9;

uint64_t sum_words(std::span<const uint8_t> bytes, uint64_t sum = 0) {
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) sum += wire::load_be16(bytes.data() + i);
  if (bytes.size() % 2 != 0) sum += static_cast<uint64_t>(bytes.back()) << 8;
  return sum;
}

}  // namespace

UdpPlace find_udp(std::span<const uint8_t> frame, Framing framing) {
  UdpPlace place;
  if (framing == Framing::kUdpPayload) {
    place.payload_bytes = static_cast<uint32_t>(frame.size());
    return place;
  }
  if (frame.size() < kEthernetBytes + 20 + kUdpBytes) return {};
  const uint8_t* const ip = frame.data() + kEthernetBytes;
  const uint16_t type = wire::load_be16(frame.data() + 12);
  uint32_t ip_bytes = kIp6Bytes;
  if (type == kEtherTypeIp4 && ip[0] >> 4 == 4) {
    ip_bytes = (ip[0] & 0xfU) * 4;
    if (ip_bytes < 20 || ip[9] != kProtocolUdp || (wire::load_be16(ip + 6) & kFragmentMask) != 0) return {};
  } else if (type != kEtherTypeIp6 || ip[0] >> 4 != 6 || ip[6] != kProtocolUdp) {
    return {};
  }
  place.ip_offset = kEthernetBytes;
  place.udp_offset = kEthernetBytes + ip_bytes;
  place.payload_offset = place.udp_offset + kUdpBytes;
  if (frame.size() < place.payload_offset) return {};
  const uint32_t udp_bytes = wire::load_be16(frame.data() + place.udp_offset + 4);
  const auto there = static_cast<uint32_t>(frame.size()) - place.udp_offset;
  if (udp_bytes < kUdpBytes) return {};
  place.payload_bytes = std::min(udp_bytes, there) - kUdpBytes;
  place.has_headers = true;
  return place;
}

uint16_t udp_checksum(std::span<const uint8_t> frame, const UdpPlace& place) {
  const uint32_t udp_bytes = place.payload_bytes + kUdpBytes;
  const bool ip4 = frame[place.ip_offset] >> 4 == 4;
  // The addresses are the last fields of the fixed IPv4 header, and of the IPv6 header.
  uint64_t sum = ip4 ? sum_words(frame.subspan(place.ip_offset + 12, 8))
                     : sum_words(frame.subspan(place.ip_offset + 8, 32));
  sum += kProtocolUdp + udp_bytes;
  sum = sum_words(frame.subspan(place.udp_offset, 6), sum);
  sum = sum_words(frame.subspan(place.payload_offset, place.payload_bytes), sum);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  const auto checksum = static_cast<uint16_t>(~sum);
  return checksum == 0 ? 0xffff : checksum;
}

void Corrupter::invert_bits(Draws& draws, std::span<uint8_t> bytes) {
  const auto bits = static_cast<uint32_t>(bytes.size() * 8);
  chosen_.clear();
  while (chosen_.size() < std::min(settings_.bits_count, bits)) {
    const uint32_t bit = draws.below(bits);
    if (std::ranges::find(chosen_, bit) != chosen_.end()) continue;
    chosen_.push_back(bit);
    bytes[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
  }
}

bool Corrupter::repaired(Draws& draws, Framing framing) {
  const UdpPlace place = find_udp(copy_, framing);
  if (place.payload_bytes == 0) return false;
  invert_bits(draws, std::span(copy_).subspan(place.payload_offset, place.payload_bytes));
  mend_checksum(place);
  return true;
}

void Corrupter::mend_checksum(const UdpPlace& place) {
  if (!place.has_headers) return;
  uint8_t* const checksum = copy_.data() + place.udp_offset + 6;
  // Zero says that the sender made none.
  if (wire::load_be16(checksum) != 0) wire::store_be16(checksum, udp_checksum(copy_, place));
}

// What somebody on the path does who knows that a CRC is linear (docs/WIRE.md 1.2): other bytes, the same
// CRC.
bool Corrupter::forged(Draws& draws, Framing framing) {
  const UdpPlace place = find_udp(copy_, framing);
  if (place.payload_bytes < wire::kHeaderBytes + kGeneratorBytes) return false;
  uint8_t* const sluice = copy_.data() + place.payload_offset;
  if (sluice[0] != wire::kVersion || sluice[1] != static_cast<uint8_t>(wire::Type::kData)) return false;
  const auto room = static_cast<uint32_t>(place.payload_bytes - wire::kHeaderBytes - kGeneratorBytes + 1);
  uint8_t* const at = sluice + wire::kHeaderBytes + draws.below(room);
  const uint64_t low = kReflectedGenerator << 1 | 1;
  for (uint32_t i = 0; i < 8; ++i) at[i] ^= static_cast<uint8_t>(low >> (8 * i));
  at[8] ^= static_cast<uint8_t>(kReflectedGenerator >> 63);
  mend_checksum(place);
  return true;
}

bool Corrupter::swapped(Draws& draws, Framing framing) {
  const UdpPlace place = find_udp(copy_, framing);
  const uint32_t words = place.payload_bytes / 2;
  if (words < 2) return false;
  uint8_t* const payload = copy_.data() + place.payload_offset;
  for (int i = 0; i < kTries; ++i) {
    uint8_t* const one = payload + 2 * draws.below(words);
    uint8_t* const other = payload + 2 * draws.below(words);
    if (std::equal(one, one + 2, other)) continue;
    std::swap_ranges(one, one + 2, other);
    return true;
  }
  return false;
}

std::span<const uint8_t> Corrupter::apply(Draws draws, std::span<const uint8_t> frame, Framing framing,
                                          uint64_t (&counts)[kCorruptKinds]) {
  if (!on() || frame.empty()) return frame;
  // All are drawn first: what is done with one does not move the others' draws.
  const bool swap = draws.chance(settings_.swap_words);
  const bool repair = draws.chance(settings_.bits_repaired);
  const bool bits = draws.chance(settings_.bits);
  const bool cut = draws.chance(settings_.truncate);
  const bool forge =
      settings_.forge > 0 && draws.chance(settings_.forge);  // worlds without it stay as they are
  if (!swap && !repair && !bits && !cut && !forge) return frame;
  copy_.assign(frame.begin(), frame.end());
  if (forge && forged(draws, framing)) ++counts[kCorruptForge];
  if (swap && swapped(draws, framing)) ++counts[kCorruptSwapWords];
  if (repair && repaired(draws, framing)) ++counts[kCorruptBitsRepaired];
  if (bits) {
    invert_bits(draws, copy_);
    ++counts[kCorruptBits];
  }
  // What is left still has its Ethernet header, or a byte.
  const auto length = static_cast<uint32_t>(copy_.size());
  const uint32_t least = framing == Framing::kEthernet ? kEthernetBytes : 1;
  if (cut && length > least) {
    copy_.resize(least + draws.below(length - least));
    ++counts[kCorruptTruncate];
  }
  return copy_;
}

}  // namespace sluice::emulator
