// The port on a DPDK ethdev. See port.h for the interface.
//
// Cold, main thread, except the queues.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rte_ethdev.h>

#include <memory>
#include <vector>

#include "dataplane/core/unique_fd.h"
#include "dataplane/port/device_args.h"
#include "dataplane/port/dpdk_queue.h"
#include "dataplane/port/eal.h"
#include "dataplane/port/memif_link.h"
#include "dataplane/port/port.h"
#include "dataplane/port/topology.h"

namespace sluice::port {

class DpdkPort final : public Port {
 public:
  DpdkPort(const config::Node& node, Device device, Warn warn);
  ~DpdkPort() override;
  DpdkPort(const DpdkPort&) = delete;
  DpdkPort& operator=(const DpdkPort&) = delete;

  Status start();

  board::PortInfo info() const override { return info_; }
  const uint8_t* mac() const override { return mac_.addr_bytes; }
  Queue& queue(uint32_t worker) override { return *queues_[worker]; }
  const Buffer* pattern() const override { return &pattern_; }
  Status launch(std::function<void(uint32_t worker)> body) override;
  void join() override;
  void maintain() override;
  int core_of(uint32_t worker) const override { return cores_.worker_cpus[worker]; }

 private:
  struct Launched {
    DpdkPort* port = nullptr;
    uint32_t worker = 0;
  };
  static int run_worker(void* launched);
  Status choose_memory_and_cores(EalPlan* plan);
  Status find_device();
  Status check_frame_size();
  QueueSetup queue_setup(uint32_t worker) const;
  Status configure();
  Status allocate_pattern();
  Status set_up_queues();
  Status start_device();
  void accept_multicast();
  Status describe();
  Error failed(const char* what, int code) const;

  const config::Node node_;
  Device device_;
  const Warn warn_;
  CoreChoice cores_;
  bool eal_started_ = false;
  bool hugepages_ = false;
  bool configured_ = false;
  bool checksum_offload_ = false;
  uint16_t port_id_ = 0;
  uint32_t frame_bytes_max_ = 0;
  rte_eth_dev_info ethdev_{};
  rte_ether_addr mac_{};
  board::PortInfo info_{};
  Buffer pattern_;
  std::vector<std::unique_ptr<DpdkQueue>> queues_;
  std::unique_ptr<MemifLink> link_;
  UniqueFd multicast_;  // af_packet: while open, the interface takes multicast frames
  std::function<void(uint32_t)> body_;
  std::vector<Launched> launched_;
  bool running_ = false;
};

}  // namespace sluice::port
