// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/flow_channel.h"

#include <cerrno>
#include <cstring>

#include "dataplane/core/host_address.h"
#include "dataplane/core/moved_peer.h"

namespace sluice::lane {

int FlowChannel::open(const WorkerResources& resources, const board::FlowConfig& config,
                      const FlowSecret& secret) {
  datagrams_ = &resources.datagrams;
  store_ = &resources.store;
  keys_ = seal::SecretBox<seal::FlowKeys>::make(secret.protection, secret.secret, resources.key_epoch_bits,
                                                seal::best_gcm_engine(), config.echoes != 0);
  if (!keys_) return ENOMEM;
  seal_ = seal::FlowSeal(static_cast<wire::CrcKind>(config.crc_kind), secret.protection, *keys_,
                         resources.scratch);
  return datagrams_->open_path({.local = {net::Address::of(config.local_ip), config.local_port},
                                .peer = {net::Address::of(config.peer_ip), config.peer_port},
                                .header_bytes = wire::kHeaderBytes,
                                .udp_checksum = config.udp_checksum != 0,
                                .no_udp_checksum = config.udp_checksum == 0 && config.echoes != 0,
                                .learns_peer = config.reach == board::Reach::kPeerOpens},
                               &path_);
}

bool FlowChannel::may_be_moved(const net::RxDatagram& datagram, uint64_t now_ns) const {
  const net::PathConfig& config = path_->config();
  const net::Endpoint& from = datagram.source;
  return config.learns_peer && path_->came_here(datagram) &&
         (!knows_peer() || now_ns - heard_ns_ >= kMovedSilenceNs) && from.port != 0 &&
         from.address.is_ip4() == config.local.address.is_ip4() &&
         address_problem(from.address.bytes, config.local.address.bytes).empty();
}

void FlowChannel::tell_reachable(bool reachable, uint64_t now_ns, board::FlowState& state) {
  unreachable_ = !reachable;
  const uint8_t* const hop = path_->next_hop().bytes;
  for (uint32_t i = 0; i < 2; ++i) {
    uint64_t half = 0;
    std::memcpy(&half, hop + 8 * i, sizeof half);
    state.next_hop[i].store(half, std::memory_order_relaxed);
  }
  state.unreachable_since_ns.store(reachable ? 0 : now_ns, std::memory_order_release);
}

}  // namespace sluice::lane
