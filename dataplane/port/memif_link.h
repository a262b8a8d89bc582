// The life of a memif link: connects, notices that the peer went, connects again, while workers run.
//
// A thread of its own; it is the only one that starts and stops the device. Invariant: the driver's
// interrupt handler runs, and the device stops or starts, only while every worker stands at a closed
// gate. DPDK 22.11's client connects only when started, so it is stopped and started again; its server
// reconnects by itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/core/unique_fd.h"
#include "dataplane/port/device_args.h"
#include "dataplane/port/gate.h"
#include "dataplane/port/interrupts.h"

namespace sluice::port {

class MemifLink {
 public:
  // The device is set up, not started. Gates are offline.
  MemifLink(Device device, uint16_t port_id, std::vector<Gate*> gates);
  ~MemifLink();  // workers have ended; leaves the device stopped and the interrupt thread held

  Status start();
  bool up() const { return up_.load(std::memory_order_relaxed); }
  // Sentences for the log since the last call.
  std::vector<std::string> take_news();

 private:
  void run();
  void wait_online();
  void server_offline();
  void client_offline();
  void try_online();
  void go_offline();
  bool device_up() const;
  bool sleep_ms(int timeout_ms);  // true: stopping
  void close_gates(Gate::State state);
  void say(std::string news);

  const Device device_;
  const uint16_t port_id_;
  const std::vector<Gate*> gates_;
  Interrupts& interrupts_ = Interrupts::instance();
  UniqueFd stop_event_;
  UniqueFd greeting_;  // client: a connection that asks whether the server lives
  bool online_ = false;
  bool mismatch_said_ = false;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> up_{false};
  std::mutex news_mutex_;
  std::vector<std::string> news_;
  std::thread thread_;
};

}  // namespace sluice::port
