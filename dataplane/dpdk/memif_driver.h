// DPDK's net_memif as the driver that memif's link starts, stops and watches.
//
// Cold; the link's thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rte_ethdev.h>

#include "dataplane/memif/driver.h"

namespace sluice::dpdk {

class MemifDriver final : public memif::Driver {
 public:
  explicit MemifDriver(uint16_t port_id) : port_id_(port_id) {}
  bool start() override { return rte_eth_dev_start(port_id_) == 0; }
  void stop() override { rte_eth_dev_stop(port_id_); }
  bool connected() const override {
    rte_eth_link link{};
    return rte_eth_link_get_nowait(port_id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
  }

 private:
  uint16_t port_id_;
};

}  // namespace sluice::dpdk
