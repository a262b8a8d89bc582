// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/flow_channel.h"

namespace sluice::lane {

int FlowChannel::open(net::DatagramQueue& datagrams, const board::FlowConfig& config) {
  datagrams_ = &datagrams;
  seal_ = seal::FlowSeal(static_cast<wire::CrcKind>(config.crc_kind));
  return datagrams.open_path({.local = {net::Address::of(config.local_ip), config.local_port},
                              .peer = {net::Address::of(config.peer_ip), config.peer_port},
                              .header_bytes = wire::kHeaderBytes,
                              .udp_checksum = config.udp_checksum != 0},
                             &path_);
}

}  // namespace sluice::lane
