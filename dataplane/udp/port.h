// The data port on the UDP sockets of this host (`device = "udp"`): no DPDK, no root, no hugepages.
//
// Cold, main thread, except the queues.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "dataplane/base/config/config.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/net/port.h"
#include "dataplane/udp/local_addresses.h"
#include "dataplane/udp/memory.h"
#include "dataplane/udp/queue.h"

namespace sluice::udp {

using Warn = std::function<void(const std::string&)>;

class Port final : public net::Port {
 public:
  // Finds the addresses and takes the memory. Errors (kConfiguration, kDevice) name the key, the reason and
  // the remedy. Sockets are opened with their flows.
  static Result<std::unique_ptr<net::Port>> open(const config::Node& node, const Warn& warn);
  ~Port() override;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  board::PortInfo info() const override { return info_; }
  std::unique_ptr<net::DatagramQueue> datagrams(uint32_t worker, board::CounterWriter counters) override;
  const net::Buffer* pattern() const override { return &pattern_; }
  bool sends_any_memory() const override { return true; }
  Status launch(std::function<void(uint32_t worker)> body) override;
  void join() override;
  void maintain() override;
  board::Link link() const override;  // down: one of its interfaces is
  // -1: wherever the kernel likes.
  int core_of(uint32_t worker) const override { return node_.cores.empty() ? -1 : node_.cores[worker]; }

 private:
  Port(const config::Node& node, Warn warn) : node_(node), warn_(std::move(warn)) {}
  Status start();
  void describe(const LocalAddresses& local);
  void tell_socket_buffers() const;

  const config::Node node_;
  const Warn warn_;
  board::PortInfo info_{};
  std::vector<Memory> extents_;  // of each worker
  Memory pattern_memory_;
  net::Buffer pattern_;
  std::vector<std::string> interfaces_;  // that have its addresses
  UniqueFd asking_;                      // a socket to ask the kernel about them
  News news_;
  std::vector<Queue*> queues_;  // whoever asked for them owns them
  std::vector<std::thread> threads_;
};

}  // namespace sluice::udp
