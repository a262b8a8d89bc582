// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "dataplane/lane/context.h"

namespace sluice::lane {
namespace {

constexpr uint64_t kSolicitIntervalNs = 100'000'000;
constexpr uint64_t kRefreshIntervalNs = 1'000'000'000;

}  // namespace

FlowPath::FlowPath(const board::FlowConfig& config, const uint8_t* mac)
    : local_port_(config.local_port), peer_port_(config.peer_port), checksum_(config.udp_checksum != 0) {
  std::memcpy(local_.bytes, config.local_ip, 16);
  std::memcpy(peer_.bytes, config.peer_ip, 16);
  std::memcpy(mac_, mac, 6);
  template_ = net::FrameTemplate(local_, local_port_, peer_, peer_port_);
}

bool FlowPath::ready(Context& context, uint64_t now_ns) {
  if (resolved_ && now_ns < next_resolve_ns_) return true;
  uint8_t next_hop[6];
  if (context.neighbours.resolve(peer_.bytes, next_hop)) {
    template_.set_macs(mac_, next_hop);
    resolved_ = true;
    offload_ = checksum_ && context.port_info.udp_checksum_offload != 0;
    next_resolve_ns_ = now_ns + kRefreshIntervalNs;
    return true;
  }
  resolved_ = false;
  if (now_ns < next_solicit_ns_) return false;
  next_solicit_ns_ = now_ns + kSolicitIntervalNs;
  context.count(Counter::tx_unresolved);
  uint8_t frame[net::kHeaderRoomBytes];
  const uint32_t bytes = context.neighbours.solicit(peer_.bytes, frame);
  if (bytes > 0) {
    uint8_t* out = context.queue.tx_begin(bytes, nullptr, 0, nullptr, false);
    if (out != nullptr) std::memcpy(out, frame, bytes);
  }
  return false;
}

bool FlowPath::send(Context& context, const wire::Header& header, std::span<const uint8_t> payload,
                    const net::Buffer* owner, const seal::FlowSeal& seal, uint64_t* digest) {
  const auto payload_bytes = static_cast<uint32_t>(payload.size());
  const auto front_bytes = static_cast<uint32_t>(template_.bytes());
  uint8_t* const frame = context.queue.tx_begin(front_bytes + wire::kHeaderBytes, payload.data(),
                                                payload_bytes, owner, offload_);
  if (frame == nullptr) return false;
  template_.write(frame, wire::kHeaderBytes + payload_bytes);
  uint8_t* const sluice = frame + front_bytes;
  const bool copies = owner != nullptr && context.queue.caller_copies();
  *digest = seal.seal(header, payload, std::span<uint8_t, wire::kHeaderBytes>(sluice, wire::kHeaderBytes),
                      copies ? sluice + wire::kHeaderBytes : nullptr);
  if (checksum_) {
    const uint16_t sum = offload_ ? template_.pseudo_checksum(wire::kHeaderBytes + payload_bytes)
                                  : template_.udp_checksum({sluice, wire::kHeaderBytes}, payload);
    wire::store_be16(frame + template_.udp_checksum_at(), sum);
  }
  context.count(Counter::tx_frames);
  context.count(Counter::tx_bytes, front_bytes + wire::kHeaderBytes + payload_bytes);
  return true;
}

}  // namespace sluice::lane
