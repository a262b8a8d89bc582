// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/datagram_queue.h"

#include <ctime>

#include "dataplane/net/frame.h"

namespace sluice::net {

Path::Path(const PathConfig& config)
    : config_(config),
      wire_overhead_bytes_(static_cast<uint32_t>(kEthernetBytes +
                                                 (config.local.address.is_ip4() ? kIp4Bytes : kIp6Bytes) +
                                                 kUdpBytes + kWireOverheadBytes)),
      knows_peer_(!config.learns_peer) {
  if (config.learns_peer) config_.peer = {};
}

void DatagramQueue::sleep(uint64_t ns) {
  const timespec t{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&t, nullptr);
}

}  // namespace sluice::net
