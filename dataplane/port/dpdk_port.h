// The port on a DPDK ethdev. See port.h for the interface.
//
// Cold, main thread, except the queues.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "dataplane/port/device_args.h"
#include "dataplane/port/dpdk_queue.h"
#include "dataplane/port/eal.h"
#include "dataplane/port/ethdev.h"
#include "dataplane/port/memif_link.h"
#include "dataplane/port/memif_queue.h"
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
  const uint8_t* mac() const override { return ethdev_.mac().addr_bytes; }
  Queue& queue(uint32_t worker) override { return *queues_[worker]; }
  const Buffer* pattern() const override { return &pattern_; }
  bool sends_any_memory() const override { return ethdev_.sends_any_memory(); }
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
  Status allocate_pattern();
  Status set_up_queues();
  Status start_device();
  Status describe();
  const Device& device() const { return ethdev_.device(); }

  const config::Node node_;
  Ethdev ethdev_;
  const Warn warn_;
  CoreChoice cores_;
  bool eal_started_ = false;
  bool hugepages_ = false;
  board::PortInfo info_{};
  Buffer pattern_;
  std::vector<std::unique_ptr<DpdkQueue>> queues_;
  std::vector<MemifQueue*> memif_queues_;  // among them
  std::unique_ptr<MemifLink> link_;
  std::function<void(uint32_t)> body_;
  std::vector<Launched> launched_;
  bool running_ = false;
};

}  // namespace sluice::port
