// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/flow_channel.h"

namespace sluice::lane {

int FlowChannel::open(net::DatagramQueue& datagrams, const board::FlowConfig& config) {
  datagrams_ = &datagrams;
  seal_ = seal::FlowSeal(static_cast<wire::CrcKind>(config.crc_kind));
  return datagrams.open_path({.local = {net::Address::of(config.local_ip), config.local_port},
                              .peer = {net::Address::of(config.peer_ip), config.peer_port},
                              .udp_checksum = config.udp_checksum != 0},
                             &path_);
}

bool FlowChannel::send(const wire::Header& header, const Payload& payload, uint64_t* digest) {
  const net::TxRequest request{.header_bytes = wire::kHeaderBytes,
                               .payload = payload.bytes,
                               .owner = payload.owner,
                               .send_at_ns = payload.send_at_ns};
  const net::TxDatagram datagram = datagrams_->begin(*path_, request);
  if (datagram.header == nullptr) return false;
  *digest = seal_.seal(header, payload.bytes,
                       std::span<uint8_t, wire::kHeaderBytes>(datagram.header, wire::kHeaderBytes),
                       datagram.payload);
  datagrams_->end(*path_, request, datagram);
  return true;
}

}  // namespace sluice::lane
