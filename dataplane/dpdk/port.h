// The data port on one DPDK ethdev: EAL, the device, and a queue pair, packet memory and extents per worker.
//
// EAL starts only here and in bare_ports.h, and no rte_* type leaves this folder. Cold, main thread, except
// the queues.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "dataplane/dpdk/device_args.h"
#include "dataplane/dpdk/device_place.h"
#include "dataplane/dpdk/eal.h"
#include "dataplane/dpdk/ethdev.h"
#include "dataplane/dpdk/queue.h"
#include "dataplane/dpdk/topology.h"
#include "dataplane/memif/link.h"
#include "dataplane/memif/queue.h"
#include "dataplane/net/neighbours.h"
#include "dataplane/net/port.h"

namespace sluice::dpdk {

class Port final : public net::Port {
 public:
  // Starts EAL (hugepages, or --no-huge with a warning through `warn`), opens the device, sets up one
  // queue pair, mempool and extent pool per worker, starts the device. Errors (kDevice,
  // kConfiguration) name the device, the reason and the remedy. Once per process.
  static Result<std::unique_ptr<Port>> open(const config::Node& node, const Warn& warn);
  ~Port() override;  // stops the device, cleans up EAL and what it left on disk
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  board::PortInfo info() const override { return info_; }
  std::unique_ptr<net::DatagramQueue> datagrams(uint32_t worker, board::CounterWriter counters) override;
  // The same worker's frames, for who wants no datagrams.
  net::FrameQueue& frames(uint32_t worker);
  const net::Buffer* pattern() const override { return &pattern_; }
  net::ReceiveQueue receive_queue() const override { return receive_queue_; }
  bool sends_any_memory() const override { return ethdev_.sends_any_memory(); }
  Status launch(std::function<void(uint32_t worker)> body) override;
  void join() override;
  void maintain() override;
  board::Link link() const override;  // of a memif: whether the other side is there
  std::string gone() const override { return place_ ? place_->gone() : ""; }
  uint64_t missed_frames() const override;
  int core_of(uint32_t worker) const override { return cores_.worker_cpus[worker]; }

 private:
  struct Launched {
    Port* port = nullptr;
    uint32_t worker = 0;
  };
  Port(const config::Node& node, Device device, Warn warn);
  Status start();
  static int run_worker(void* launched);
  Status choose_memory_and_cores(EalPlan* plan);
  Status find_device();
  Status check_rights() const;
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
  uint32_t workers_;  // as many as asked for, or as the device has queues for
  CoreChoice cores_;
  bool eal_started_ = false;
  bool hugepages_ = false;
  board::PortInfo info_{};
  std::unique_ptr<net::Neighbours> neighbours_;
  net::Buffer pattern_;
  net::ReceiveQueue receive_queue_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<std::unique_ptr<memif::Queue>> memif_queues_;  // on top of those; empty: another device
  std::unique_ptr<memif::Link> link_;
  std::optional<DevicePlace> place_;
  std::function<void(uint32_t)> body_;
  std::vector<Launched> launched_;
  bool running_ = false;
};

}  // namespace sluice::dpdk
