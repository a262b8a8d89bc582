// Some devices in one process, one queue pair each, for a program that passes whole frames between them: no
// addresses, no extents, frames of any kind.
//
// Opening is cold and may block. One thread polls all queues; a memif peer may be killed and come back
// meanwhile (dataplane/memif/link.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/error.h"
#include "dataplane/dpdk/eal.h"
#include "dataplane/net/frame_queue.h"

namespace sluice::memif {
class Link;
}  // namespace sluice::memif

namespace sluice::dpdk {

class Ethdev;
class Queue;

struct BarePortsOptions {
  std::string program;
  std::vector<std::string> devices;  // as [port] device of node.toml; different names
  uint32_t mtu = 9000;
  uint32_t ring = 512;
  std::string memory = "auto";  // "auto", "hugepages", "no-huge"
  uint32_t memory_mib = 96;
  std::vector<int> cores;  // of the polling thread; empty: any
};

class BarePorts {
 public:
  // Once per process, like Port::open.
  static Result<std::unique_ptr<BarePorts>> open(const BarePortsOptions& options, const Warn& warn);
  ~BarePorts();
  BarePorts(const BarePorts&) = delete;
  BarePorts& operator=(const BarePorts&) = delete;

  net::FrameQueue& queue(size_t device);
  const std::string& name(size_t device) const;
  uint32_t frame_bytes_max(size_t device) const;
  bool up(size_t device) const;  // a memif has its peer; others are always up
  bool hugepages() const { return hugepages_; }

  // Runs `body` on the polling thread; returns at once.
  Status launch(std::function<void()> body);
  void join();
  void maintain();  // as net::Port::maintain

 private:
  BarePorts(BarePortsOptions options, Warn warn);
  Status start();
  Status size_memory();
  Status start_environment();
  Status set_up(size_t device);
  Status start_devices();
  static int run_body(void* self);

  const BarePortsOptions options_;
  const Warn warn_;
  uint64_t needed_mib_ = 0;
  bool eal_started_ = false;
  bool hugepages_ = false;
  bool running_ = false;
  std::vector<std::unique_ptr<Ethdev>> ethdevs_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<size_t> link_ends_;  // by device: its number in link_
  std::unique_ptr<memif::Link> link_;
  std::function<void()> body_;
};

}  // namespace sluice::dpdk
