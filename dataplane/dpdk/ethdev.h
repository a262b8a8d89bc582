// One DPDK ethdev, from its name to the moment when it can start: how large its frames may be, where it is,
// how it is configured, its queues.
//
// Cold, main thread. EAL has started before `find`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rte_ethdev.h>

#include <cstdint>
#include <span>

#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/dpdk/device_args.h"
#include "dataplane/dpdk/eal.h"
#include "dataplane/dpdk/flow_rules.h"
#include "dataplane/dpdk/queue.h"

namespace sluice::dpdk {

class Ethdev {
 public:
  explicit Ethdev(Device device) : device_(std::move(device)) {}
  ~Ethdev() { close(); }
  Ethdev(const Ethdev&) = delete;
  Ethdev& operator=(const Ethdev&) = delete;

  // What fits, as far as it is known before the device is open.
  Status size_frames(uint32_t mtu, const Warn& warn);
  // `taken`: devices of this process that belong to somebody else.
  Status find(std::span<const uint16_t> taken = {});
  // The MTU is lowered to what the device carries, with a warning.
  Status configure(uint32_t queues, uint32_t mtu, const Warn& warn);
  // The nearest sizes that the device can have.
  Status adjust_rings(uint16_t* rx_ring, uint16_t* tx_ring) const;
  // Fills in what the device decides; `queue` was made of it and is allocated.
  void complete(QueueSetup* setup) const;
  Status add_queue(const QueueSetup& setup, Queue& queue);
  Status start();  // not memif, whose life belongs to memif::Link
  // Started: whether the device may read payloads from the extents of a worker that has so many to send from.
  // Not where its driver would keep them until other frames push them out.
  bool may_send_from_extents(uint32_t extents) const;
  // For the log and `sluice node show`: the driver, what the device does, and what is done for it.
  std::string abilities(uint32_t queues, bool from_extents, const FlowRules& rules) const;
  void take_multicast();
  void take_everything();  // frames for other addresses too
  void close();            // stops it as well, unless it is a memif

  const Device& device() const { return device_; }
  bool is_memif() const { return device_.kind == DeviceKind::kMemif; }
  uint16_t id() const { return port_id_; }
  const rte_ether_addr& mac() const { return mac_; }
  uint32_t frame_bytes_max() const { return frame_bytes_max_; }
  uint32_t rx_room_bytes() const;
  uint32_t queues_max() const { return std::min(info_.max_rx_queues, info_.max_tx_queues); }
  bool sends_any_memory() const;  // as net::Port::sends_any_memory
  bool checksum_offload() const { return checksum_offload_; }

  Error failed(const char* what, int code) const;

 private:
  void join_group(int type);

  Device device_;
  bool configured_ = false;
  bool checksum_offload_ = false;
  bool spreads_ = false;              // by a hash, over its queues
  bool reclaims_when_asked_ = false;  // rte_eth_tx_done_cleanup works
  int send_time_at_ = -1;
  uint64_t send_time_flag_ = 0;
  uint16_t port_id_ = 0;
  uint32_t frame_bytes_max_ = 0;
  rte_eth_dev_info info_{};
  rte_ether_addr mac_{};
  UniqueFd membership_;  // af_packet: while open, the interface takes such frames
};

}  // namespace sluice::dpdk
