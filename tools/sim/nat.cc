// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/nat.h"

#include "dataplane/core/wire.h"

namespace sluice::sim {
namespace {

constexpr size_t kSourcePortAt = 14 + 20;
constexpr size_t kDestinationPortAt = kSourcePortAt + 2;
constexpr size_t kChecksumAt = kSourcePortAt + 6;
constexpr size_t kHeadersBytes = kSourcePortAt + 8;
constexpr uint16_t kLowestShown = 20000;
constexpr uint16_t kPortsShown = 256;  // after each time that it has forgotten

bool is_udp(std::span<const uint8_t> frame) {
  return frame.size() >= kHeadersBytes && frame[12] == 8 && frame[13] == 0 && frame[23] == 17;
}

// The checksum with it (RFC 1624), if there is one.
void change_port(std::span<uint8_t> frame, size_t at, uint16_t port) {
  const uint16_t checksum = wire::load_be16(&frame[kChecksumAt]);
  if (checksum != 0) {
    uint32_t sum = static_cast<uint16_t>(~checksum) +
                   static_cast<uint32_t>(static_cast<uint16_t>(~wire::load_be16(&frame[at]))) + port;
    while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
    const auto changed = static_cast<uint16_t>(~sum);
    wire::store_be16(&frame[kChecksumAt], changed == 0 ? 0xFFFF : changed);
  }
  wire::store_be16(&frame[at], port);
}

}  // namespace

uint16_t Nat::shown(uint16_t port) const {
  return static_cast<uint16_t>(kLowestShown + kPortsShown * (forgot_ % 100) + port % kPortsShown);
}

void Nat::pass_time(uint64_t now_ns) {
  for (; forgot_ < forgets_ns_.size() && forgets_ns_[forgot_] <= now_ns; ++forgot_) opened_.clear();
}

void Nat::leaves(std::span<uint8_t> frame, uint64_t now_ns) {
  if (!is_udp(frame)) return;
  pass_time(now_ns);
  const uint16_t port = wire::load_be16(&frame[kSourcePortAt]);
  opened_.insert(port);
  change_port(frame, kSourcePortAt, shown(port));
}

bool Nat::comes(std::span<uint8_t> frame, uint64_t now_ns) {
  if (!is_udp(frame)) return true;
  pass_time(now_ns);
  for (const uint16_t port : opened_) {
    if (wire::load_be16(&frame[kDestinationPortAt]) != shown(port)) continue;
    change_port(frame, kDestinationPortAt, port);
    return true;
  }
  ++kept_out_;
  return false;
}

}  // namespace sluice::sim
