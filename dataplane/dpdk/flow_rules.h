// Tells a device which worker's queue takes the frames of which lane, by UDP destination port (rte_flow).
//
// Cold, main thread, once the device runs. Devices that know no such rules spread frames as they like (RSS),
// and workers hand them on (lane::Worker::hand_over): so rules save time and are never needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::dpdk {

struct LanePorts {
  uint16_t udp_port_base = 0;
  uint32_t workers =
      0;  // the lane of port base + i belongs to worker i % workers, which has queue i % workers
  bool ip4 = false;
  bool ip6 = false;
};

struct FlowRules {
  uint32_t wanted = 0;  // one for each port and IP version; 0 with one worker
  uint32_t made = 0;  // 0: the device knows no such rules; fewer than wanted: its table is full, or it knows
                      // one IP version
};

// Those of the lower ports first, which are taken first.
FlowRules steer_lanes(uint16_t port_id, const LanePorts& lanes);

}  // namespace sluice::dpdk
